"""The plan of a run of released models: tokens as they are scored, and models that do not fit."""

import gc
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from contamination.errors import InputError
from contamination.scoring.cost import Shape, Workload
from contamination.scoring.models import ModelEntry
from contamination.scoring.store_format import count_values
from contamination.testsets import hub
from fakes.data_fixtures import ROOT, WORDS
from fakes.hub_server import Repository
from fakes.made_up_registry import hub_at
from reproduction.output.figures import short_count
from reproduction.run.experiment import Experiment
from reproduction.stages import costs
from reproduction.stages.costs import (
    NONE,
    Counting,
    Device,
    cost_table,
    count_profile,
    described,
)


@pytest.fixture(autouse=True)
def no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(costs, "in_reach", lambda: False)
    monkeypatch.setattr(gc, "collect", lambda *_: 0)  # after each model; half a second in tests


def made(*rows: tuple[str, str, int, int]) -> Counting:
    return Counting(pd.DataFrame(rows, columns=["set", "form", "records", "tokens"]))


def lengths(access: Counting, name: str, most: int | None, *, lines: bool = False) -> list[int]:
    model = access.open_model(ModelEntry("gpt2", "openai-community/gpt2"))
    examples = access.open_set(name, max_records=most, lines=lines).examples
    return [len(ids) for ids in model.tokenizer(examples)["input_ids"]]


def test_a_set_that_is_not_at_hand_is_as_long_as_the_table_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(costs, "available", lambda name: False)
    known = made(("piqa", "record", 3084, 3084 * 57), ("canaries/piqa", "line", 1000, 70_000))
    assert lengths(known, "piqa", 500) == [57] * 500
    assert len(lengths(known, "piqa", None)) == 3084
    assert lengths(known, "canaries/piqa", 10, lines=True) == [70] * 10
    # Nobody has measured these.
    assert lengths(known, "gsm8k", None) == [100] * 1319
    assert lengths(known, "org/name", 20) == [100] * 20
    # What is at hand has its own text, of which four characters count as a token.
    path = tmp_path / "mine.txt"
    path.write_text("seven c\nseven c\n")
    assert lengths(known, str(path), None) == [2, 2]


def test_a_model_is_known_by_its_configuration_and_files_else_estimated(
    tmp_path: Path, model_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a gated model the registry's numbers have to do; weights are never fetched."""
    entry = ModelEntry("m", "some/model", parameters=120_000_000, context=512)
    model = made().open_model(entry)
    assert (model.parameters, model.context, model.download) == (120_000_000, 512, 240_000_000)
    # 12 x 10 layers x 1000^2 weights: 10 layers of 1000 channels.
    assert model.shape == Shape(120_000_000, 0, 10_000)
    assert made().open_model(ModelEntry("m", "some/model")).parameters is None
    model = made().open_model(ModelEntry("m", str(model_directory)))
    assert (model.context, model.download, model.shape.channels) == (16, 0, 2 * 32)

    monkeypatch.setattr(costs, "in_reach", hub.in_reach)
    config = (model_directory / "config.json").read_bytes()
    with hub_at(monkeypatch, tmp_path) as server:
        for name in ("org/open", "org/gated"):
            server.models[name] = Repository()
            server.models[name].push({"config.json": config, "model.safetensors": b"w" * 4321})
        server.models["org/gated"].gated = True
        known = made()
        found = known.open_model(ModelEntry("open", "org/open", parameters=7))
        assert (found.download, found.context, found.shape.channels) == (4321, 16, 2 * 32)
        gated = known.open_model(ModelEntry("gated", "org/gated", parameters=7))
        assert gated.parameters == 7
        assert not [path for path in server.downloaded() if "safetensors" in str(path)]


@pytest.mark.parametrize(
    ("parameters", "devices", "placement", "rate"),
    [
        (4_800_000_000, 1, "one device", 1),  # 9.6 GB are 80% of 12
        (4_900_000_000, 1, "too large", None),
        (4_800_000_000, 2, "one device", 2),
        (9_600_000_000, 2, "spread over all", 1),
        (9_700_000_000, 2, "too large", None),
    ],
)
def test_sums_by_hand_and_what_fits(parameters, devices, placement, rate) -> None:
    """500 tokens in each of the notebooks 03 and 06."""
    found = made()
    found.open_model(ModelEntry("m", "org/m", parameters=parameters))
    work = Workload(sequences=1, scored=500, read=1000, windows=1, attended=0)
    for notebook in ("03_open_model_audit", "06_wikimia"):
        found.works[notebook, "m", "set"] = work
    table = cost_table(found, [Device("made up", int(12e9), 1e12)] * devices)
    (row,) = table.to_dict("records")
    assert (row["tokens_scored"], row["tokens_read"], row["notebooks"]) == (
        1000,
        2000,
        {"03", "06"},
    )
    assert (row["flops"], row["placement"]) == (2 * parameters * 2000, placement)
    assert (row["download_gb"], row["memory_gb"]) == (2 * parameters / 1e9, 2 * parameters / 1e9)
    hours = row["flops"] / (0.4 * rate * 1e12) / 3600 if rate else np.nan
    assert row["hours"] == pytest.approx(hours, nan_ok=True)


@pytest.mark.parametrize("text", ["24", "a:b", "-1:5", "24:165:1"])
def test_a_description_of_a_gpu_that_makes_no_sense(text: str) -> None:
    with pytest.raises(InputError, match="GB:TFLOPS"):
        described(text)


def test_planned_tokens_are_those_that_the_measurement_scores(
    tmp_path: Path, make_model, call: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A profile that audits a tiny model on two sets of its own."""
    rng = np.random.default_rng(0)
    sets = []
    for name, count in (("one", 40), ("two", 23)):
        texts = [" ".join(rng.choice(WORDS, size=rng.integers(3, 9))) for _ in range(count)]
        (tmp_path / f"{name}.txt").write_text("\n".join(texts) + "\n")
        sets.append(str(tmp_path / f"{name}.txt"))
    parameters: dict[str, Any] = {"models": [str(make_model(48))], "sets": sets}
    parameters |= {"tests": ["sharded_t", "sharded_exact", "successor"], "permutations": 3}
    parameters |= {"max_records": 30}
    profile, folder = tmp_path / "mine.yaml", tmp_path / "build"
    content = {"seed": 1, "notebooks": {"03_open_model_audit": parameters}}
    profile.write_text(yaml.safe_dump(content))
    (model,) = cost_table(
        count_profile(Experiment(profile, folder)), [described("24:165")]
    ).to_dict("records")
    assert model["download_gb"] == 0

    monkeypatch.setenv("COLUMNS", "140")
    build = ("--profile", profile, "--build", folder)
    _, shown, _ = call("stage", "costs", *build, "--gpu", "24:165", "--gpu", "24:165")
    for part in ("devices: 2 of 24 GB and 165 TFLOP/s", "PROFILE=mine", "1 models"):
        assert part in shown
    folder.mkdir()
    call("stage", "measure", "notebooks/03_open_model_audit.ipynb", *build)
    stored = (folder / "stores" / "open_models").rglob("part-*.parquet")
    assert model["tokens_scored"] == sum(map(count_values, stored)) > 1000


def test_the_page_has_the_numbers_of_the_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(costs, "available", lambda name: False)
    page = (ROOT / "docs" / "how-to" / "reproduce.md").read_text("utf-8")
    rows = [line for line in page.splitlines() if "`make plan PROFILE=" in line]
    rows = [line.strip("| ").split(" | ") for line in rows if line.startswith("|")]
    assert len(rows) == 3
    for _, command, *shown in rows[1:]:  # the first has another device alone
        profile, gpu = re.findall(r"=([\w:.-]+)", command)
        counting = count_profile(Experiment(f"profiles/{profile}.yaml", tmp_path))
        table = cost_table(counting, [described(gpu)])
        assert set.union(*table["notebooks"]) == {"03", "04", "06", "08"}
        assert (table["tokens_read"] > 0).all()
        fit = table[table["placement"] != NONE]
        gigabytes, hours = fit["download_gb"].sum(), fit["hours"].sum()
        assert shown == [
            f"{len(fit)} of {len(table)}",
            f"{gigabytes:.{0 if gigabytes > 10 else 1}f}",
            short_count(fit["tokens_read"].sum()),
            f"{hours:.{0 if hours > 10 else 1}f}",
        ], command
