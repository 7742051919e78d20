"""The plan of a run of released models: tokens as they are scored, and models that do not fit."""

import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from contamination.errors import InputError
from contamination.scoring.cost import Workload
from contamination.scoring.models import ModelEntry
from contamination.scoring.store_format import count_values
from fakes.data_fixtures import ROOT, WORDS
from reproduction.run.experiment import Experiment
from reproduction.stages import costs
from reproduction.stages.costs import Counting, cost_table, count_profile


@pytest.fixture(autouse=True)
def root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(gc, "collect", lambda *_: 0)  # after each model; half a second in tests


def made(*rows: tuple[str, str, int, int]) -> Counting:
    return Counting(pd.DataFrame(rows, columns=["set", "form", "records", "tokens"]))


def lengths(access: Counting, name: str, most: int | None, *, lines: bool = False) -> list[int]:
    model = access.open_model(ModelEntry("gpt2", "org/gpt2", parameters=124_000_000, context=1024))
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
    path.write_text("seven c\nseven d\n")
    assert lengths(known, str(path), None) == [2, 2]


def test_a_model_is_known_by_the_registry_else_by_its_configuration(model_directory: Path) -> None:
    entry = ModelEntry("m", "some/model", parameters=120_000_000, context=512)
    model = made().open_model(entry)
    assert model.parameters == 120_000_000
    assert model.context == 512
    assert model.download == 240_000_000
    model = made().open_model(ModelEntry("m", str(model_directory)))
    assert model.context == 16
    assert model.download == 0
    assert model.parameters > 1000


def test_sums_by_hand() -> None:
    """500 tokens in each of the notebooks 03 and 06."""
    found = made()
    found.open_model(ModelEntry("m", "org/m", parameters=7_000))
    work = Workload(sequences=1, scored=500, read=1000, windows=1, attended=0)
    for notebook in ("03_open_model_audit", "06_wikimia"):
        found.works[notebook, "m", "set"] = work
    (row,) = cost_table(found).to_dict("records")
    assert row["tokens_scored"] == 1000
    assert row["tokens_read"] == 2000
    assert row["flops"] == 2 * 7_000 * 2000
    assert row["download_gb"] == 2 * 7_000 / 1e9


@pytest.mark.parametrize(
    ("memories", "hours"),
    [
        ([13], "10.0"),  # 9.6 GB are 80% of 12
        ([11], "too large"),
        ([13, 13], "5.0"),
        ([7, 7], "10.0"),  # spread over both, of which one works at a time
        ([5, 5], "too large"),
    ],
)
def test_hours_on_the_devices_that_hold_the_weights(memories, hours, monkeypatch, capsys) -> None:
    table = pd.DataFrame([{"model": "m", "parameters": 4_800_000_000, "download_gb": 0.0}])
    table = table.assign(tokens_read=1000, tokens_scored=1000, flops=0.4 * 1e12 * 36_000)
    gigabytes = [memory * 10**9 for memory in memories]
    monkeypatch.setattr(costs, "measure_devices", lambda: (gigabytes, 1e12, 2))
    monkeypatch.setattr(costs, "count_profile", lambda experiment: None)
    monkeypatch.setattr(costs, "cost_table", lambda counting: table)
    costs.print_costs(Experiment("profiles/open.yaml", "build"))
    (row,) = (line for line in capsys.readouterr().out.splitlines() if " m " in f" {line} ")
    assert row.strip(" │").endswith(hours)


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
    profile = tmp_path / "mine.yaml"
    folder = tmp_path / "build"
    content = {"seed": 1, "notebooks": {"03_open_model_audit": parameters}}
    profile.write_text(yaml.safe_dump(content))
    (model,) = cost_table(count_profile(Experiment(profile, folder))).to_dict("records")
    assert model["download_gb"] == 0

    build = ("--profile", profile, "--build", folder)
    monkeypatch.setattr(costs, "measure_devices", lambda: ([10**9], 1e12, 4))
    _, shown, _ = call("stage", "costs", *build)
    assert "PROFILE=mine" in shown
    assert "1 models" in shown
    folder.mkdir()
    call("stage", "measure", "notebooks/03_open_model_audit.ipynb", *build)
    stored = (folder / "stores" / "open_models").rglob("part-*.parquet")
    assert model["tokens_scored"] == sum(map(count_values, stored)) > 1000


def test_every_notebook_of_a_profile_has_work_for_every_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(costs, "available", lambda name: False)
    for profile in ("open-small", "checkpoints"):
        experiment = Experiment(f"profiles/{profile}.yaml", tmp_path)
        counting = count_profile(experiment)
        passes = set(experiment.profile.notebooks) - {"13_beside_the_papers"}
        assert {notebook for notebook, *_ in counting.works} == passes
        assert {*cost_table(counting)["model"]} == {*counting.models}


def test_a_profile_of_which_no_notebook_reads_a_model(tmp_path: Path) -> None:
    profile = tmp_path / "mine.yaml"
    profile.write_text("seed: 1\nnotebooks: { 13_beside_the_papers: {} }\n")
    with pytest.raises(InputError, match="no notebook of this profile reads a model"):
        count_profile(Experiment(profile, tmp_path))


def test_a_mirror_that_is_not_there_is_named(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("CONTAMINATION_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match="nowhere"):
        count_profile(Experiment("profiles/pocket.yaml", tmp_path))
