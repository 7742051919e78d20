"""A public set by domain from the mirror, and released models that score it.

Names of files, fields and splits are those of the real repository; the texts are made up. That
configurations of a hub are found is proved with the hub (`testsets/test_fetching.py`).
"""

import itertools
import shutil
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import huggingface_hub.constants
import numpy as np
import pandas as pd
import pytest

from contamination.errors import InputError
from contamination.scoring.models import ModelEntry
from contamination.scoring.status import OK
from fakes.data_fixtures import ROOT, WORDS, write_profile
from fakes.made_up_registry import jsonl, registry_of
from fakes.made_up_scorer import MadeUpScorer
from fakes.opening import Opening
from reproduction.notebooks.assumptions import measure as passes
from reproduction.notebooks.assumptions.measure import score_released
from reproduction.notebooks.assumptions.public import CONFIGURATIONS, DOMAINS, PUBLIC, PublicDomain
from reproduction.notebooks.assumptions.settings import Settings
from reproduction.notebooks.assumptions.tables import (
    WITHIN_COLUMNS,
    cross_table,
    join_models,
    within_table,
)
from reproduction.output.published import load_published
from reproduction.run.experiment import Experiment

SMALL = ModelEntry("small", "org/small")
GATED = ModelEntry("gated", "org/gated", parameters=7)
MODELS = {"gated": GATED, "small": SMALL}

SETTINGS = Settings(
    models=(),
    length=20,
    shortest=None,
    texts=10,
    spare=1,
    epochs=1,
    learning_rate=1e-3,
    asked=2,
)


def texts_of(domain: str, split: str, count: int = 8, words: int = 40) -> tuple[str, ...]:
    rng = np.random.default_rng([*f"{domain}/{split}".encode()])
    return tuple(" ".join(rng.choice(WORDS, size=words)) for _ in range(count))


@pytest.fixture
def mirror(monkeypatch, tmp_path) -> Iterator[Path]:
    """One domain is missing, one malformed, one short, and one has few non-members."""
    counts = {("arxiv", "train"): 20, ("arxiv", "val"): 4}
    with registry_of(monkeypatch, tmp_path, {}):
        folder = tmp_path / "mirror" / PUBLIC
        for name, split in product(CONFIGURATIONS.values(), ("train", "val")):
            words = 5 if name == "enron" else 40
            texts = texts_of(name, split, counts.get((name, split), 8), words)
            (folder / name).mkdir(parents=True, exist_ok=True)
            (folder / name / f"{split}.jsonl").write_bytes(jsonl([{"text": t} for t in texts]))
        (folder / "freelaw" / "val.jsonl").write_bytes(jsonl([{"document": "of the val split"}]))
        shutil.rmtree(folder / "github")
        monkeypatch.setenv("CONTAMINATION_DATA", str(tmp_path / "mirror"))
        monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:9")
        yield folder


@pytest.fixture
def access(tokenizer) -> Opening:
    return Opening(tokenizer, gated=InputError("gated: log in with `hf auth login`"))


def test_domains_are_those_of_the_tables_of_fu() -> None:
    printed = load_published(ROOT / "data" / "published", "fu2025_within_domain_auc")
    by_model = printed.groupby("model")["domain"].agg(lambda found: list(dict.fromkeys(found)))
    assert all(by_model[name] == list(DOMAINS) for name in by_model.index if "pythia" in name)


def test_what_cannot_be_had_is_a_cell_and_the_rest_is_scored_once(
    mirror, access, tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr(passes, "find_model", MODELS.__getitem__)
    experiment = Experiment(write_profile(tmp_path / "tiny.yaml"), tmp_path / "build")
    settings = SETTINGS.model_copy(update={"models": tuple(MODELS)})
    tables = passes.measure(experiment, settings, access)
    assert access.opened == ["gated", "small"]  # no model is loaded for nothing
    cells = tables["cells"]
    scored = tables["scored"].drop(columns="model")
    table = cells.set_index(["model", "domain"])
    small, gated = table.loc["small", "status"], table.loc["gated", "status"]
    assert list(small.index) == list(gated.index) == list(DOMAINS)
    away = "not run here: hub pratyushmaini/llm_dataset_inference:github: "
    assert small["Github"].startswith(away)
    assert gated["Github"]
    assert 'no text; write {"text": "..."}' in small["FreeLaw"]
    assert small["Enron Emails"].endswith("no member of 8 has 20 tokens; lower `length`")
    assert set(small[3:]) == {OK}
    counts = scored.groupby(["phase", "domain", "member"]).size()
    sides = itertools.product(["pre-training"], DOMAINS[4:], (True, False))
    expected = dict.fromkeys(sides, 8)
    expected |= {("pre-training", "ArXiv", True): 10, ("pre-training", "ArXiv", False): 4}
    assert counts.to_dict() == expected
    assert set(tables["blind"]["benchmark"]) == {PUBLIC}
    assert tables["blind"]["split"].unique().tolist() == list(DOMAINS)

    measured = within_table(scored, rng=np.random.default_rng(0), resamples=20)
    within = join_models({"small": measured}, WITHIN_COLUMNS, cells)
    lost = within[within["status"] != OK]
    assert set(lost["phase"]) == {"pre-training"}
    assert lost["domain"].tolist()[:9] == list(DOMAINS)  # of the gated model
    monkeypatch.setattr(MadeUpScorer, "token_logprobs", None)
    again = passes.measure(experiment, settings, access)
    pd.testing.assert_frame_equal(again["scored"], tables["scored"])


def test_texts_of_any_length_have_the_scores_that_they_are_long_enough_for(
    access, tmp_path
) -> None:
    long = [texts_of("Github", split, 8, 90) for split in ("train", "val")]
    short = [texts_of("ArXiv", split, 8, 5) for split in ("train", "val")]
    both = PublicDomain("Github", *(a + b for a, b in zip(long, short, strict=True)))
    domains = [both, PublicDomain("ArXiv", *short)]
    settings = SETTINGS.model_copy(update={"length": 2048, "shortest": 2, "texts": 20})
    tables = score_released([SMALL], domains, tmp_path, settings, access).scores
    scored = pd.concat(tables).drop(columns="model")
    known = scored["ppl_50"].notna().groupby(scored["domain"]).agg(["sum", "size"])
    assert known.to_numpy().tolist() == [[0, 16], [16, 32]]
    assert scored["min_k_5"].notna().all()
    rng = np.random.default_rng(0)
    pairs = cross_table(scored, ["ppl_50"], rng=rng, resamples=9)
    assert pairs[["members", "non_members"]].to_numpy().tolist() == [[8, 8], [8, 0], [0, 8], [0, 0]]
    assert pairs["auc_percent"].notna().tolist() == [True, False, False, False]
    within = within_table(scored, rng=rng, resamples=9).set_index("metric")
    assert within.loc["ppl_50", "auc_percent"].nunique() == 1  # the mean is that of Github alone
