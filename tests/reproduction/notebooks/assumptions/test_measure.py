"""A public set by domain from the mirror, and released models that score it.

Names of files, fields and splits are those of the real repository; the texts are made up. That
configurations of a hub are found is proved with the hub (`testsets/test_fetching.py`).
"""

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
from reproduction.notebooks.assumptions.measure import (
    CELLS,
    CONFIGURATIONS,
    DOMAINS,
    OTHER_DOMAINS,
    SETS,
    PublicDomain,
    load_public,
    measure,
    score_released,
)
from reproduction.notebooks.assumptions.tables import (
    WITHIN_COLUMNS,
    cross_table,
    join_models,
    within_table,
)
from reproduction.output.published import load_published
from reproduction.run.experiment import Experiment

(PAIRS,) = SETS


def texts_of(domain: str, split: str, count: int = 6, words: int = 30) -> tuple[str, ...]:
    rng = np.random.default_rng([*f"{domain}/{split}".encode()])
    return tuple(" ".join(rng.choice(WORDS, size=words)) for _ in range(count))


@pytest.fixture(autouse=True)
def nothing_at_hand(monkeypatch, tmp_path) -> Iterator[None]:
    with registry_of(monkeypatch, tmp_path, {}):
        yield


@pytest.fixture
def mirror(monkeypatch, tmp_path) -> Path:
    folder = tmp_path / "mirror" / PAIRS
    for name, split in product(CONFIGURATIONS.values(), ("train", "val")):
        (folder / name).mkdir(parents=True, exist_ok=True)
        records = [{"text": text} for text in texts_of(name, split)]
        (folder / name / f"{split}.jsonl").write_bytes(jsonl(records))
    monkeypatch.setenv("CONTAMINATION_DATA", str(tmp_path / "mirror"))
    return folder


def test_a_mirror_serves_what_it_has_and_the_rest_says_why_not(mirror, monkeypatch) -> None:
    (mirror / "arxiv" / "val.jsonl").write_bytes(jsonl([{"document": "of the val split"}]))
    shutil.rmtree(mirror / "github")
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:9")
    found = {one.name: one for one in load_public(PAIRS)}
    assert list(found) == list(DOMAINS)
    assert 'no text; write {"text": "..."}' in found.pop("ArXiv").status
    away = found.pop("Github").status
    assert away.startswith("not run here: hub pratyushmaini/llm_dataset_inference:github: ")
    sides = (texts_of("enron", split) for split in ("train", "val"))
    assert found["Enron Emails"] == PublicDomain("Enron Emails", *sides)
    assert {one.status for one in found.values()} == {OK}
    with pytest.raises(InputError, match="public is 'pile'"):
        load_public("pile")


def test_domains_are_those_of_the_tables_of_fu() -> None:
    printed = load_published(ROOT / "data" / "published", "fu2025_within_domain_auc")
    by_model = printed.groupby("model")["domain"].agg(lambda found: list(dict.fromkeys(found)))
    assert all(by_model[name] == list(DOMAINS) for name in by_model.index if "pythia" in name)
    ((name, domains),) = OTHER_DOMAINS.items()
    assert by_model[name.partition("/")[2]] == list(domains)


ENTRY, GATED = ModelEntry("small", "org/small"), ModelEntry("gated", "org/gated", parameters=7)
OLMO = ModelEntry("olmo-2-7b", *OTHER_DOMAINS)


@pytest.fixture
def access(tokenizer) -> Opening:
    return Opening(tokenizer, gated=InputError("gated: log in with `hf auth login`"))


def domain_of(name: str, members: int = 8, others: int = 8, words: int = 40) -> PublicDomain:
    sides = texts_of(name, "train", members, words), texts_of(name, "val", others, words)
    return PublicDomain(name, *sides, commit="abc")


DOMAINS_HERE = (
    domain_of("Github"),
    PublicDomain("FreeLaw", status="failed: no such texts"),
    domain_of("Enron Emails", words=5),
    domain_of("ArXiv", members=20, others=4),
)


def test_what_cannot_be_had_is_a_cell_and_the_rest_is_scored_once(
    access, tmp_path, monkeypatch
) -> None:
    models = [GATED, ENTRY, OLMO]
    rows, tables, _ = score_released(models, DOMAINS_HERE, tmp_path, (20, 20), 10, access)
    cells, scored = pd.DataFrame(rows, columns=list(CELLS)), pd.concat(tables)
    assert access.opened == ["gated", "small"]  # no model is loaded for nothing
    table = cells.set_index(["model", "domain"])
    assert set(table.loc["gated", "status"]) == {"failed: gated: log in with `hf auth login`"}
    short = "failed: Enron Emails: no member of 8 has 20 tokens; lower `length`"
    assert table.loc["small", "status"].tolist() == [OK, DOMAINS_HERE[1].status, short, OK]
    counts = table.loc["small", ["members", "non_members"]].dropna()
    assert counts.to_numpy().tolist() == [[8, 8], [10, 4]]
    assert table.loc["olmo-2-7b"].index.tolist() == list(OTHER_DOMAINS[OLMO.id])
    assert table.loc["olmo-2-7b", "status"].str.startswith("not asked: ").all()
    assert scored.groupby(["model", "phase", "domain"]).size().to_dict() == {
        ("small", "pre-training", "Github"): 16,
        ("small", "pre-training", "ArXiv"): 14,
    }
    monkeypatch.setattr(MadeUpScorer, "token_logprobs", None)
    _, again, _ = score_released([ENTRY], DOMAINS_HERE, tmp_path, (20, 20), 10, access)
    pd.testing.assert_frame_equal(pd.concat(again), scored)


def test_texts_of_any_length_have_the_scores_that_they_are_long_enough_for(
    access, tmp_path
) -> None:
    long, short = domain_of("Github", words=90), domain_of("ArXiv", words=5)
    sides = (long.members + short.members, long.non_members + short.non_members)
    domains = [PublicDomain("Github", *sides), short]
    _, tables, _ = score_released([ENTRY], domains, tmp_path, (2, 2048), 20, access)
    scored = pd.concat(tables).drop(columns="model")
    known = scored["ppl_50"].notna().groupby(scored["domain"]).agg(["sum", "size"])
    assert known.to_numpy().tolist() == [[0, 16], [16, 32]]
    assert scored["min_k_5"].notna().all()
    rng = np.random.default_rng(0)
    pairs = cross_table(scored, ["ppl_50"], model="small", rng=rng, resamples=9)
    assert pairs[["members", "non_members"]].to_numpy().tolist() == [[8, 8], [8, 0], [0, 8], [0, 0]]
    assert pairs["auc_percent"].notna().tolist() == [True, False, False, False]
    within = within_table(scored, model="small", rng=rng, resamples=9).set_index("metric")
    assert within.loc["ppl_50", "auc_percent"].nunique() == 1  # the mean is that of Github alone


def test_a_run_without_a_corpus_scores_public_texts(mirror, access, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(passes, "find_model", {"small": ENTRY, "gated": GATED}.__getitem__)
    experiment = Experiment(write_profile(tmp_path / "tiny.yaml"), tmp_path / "build")
    settings = {"models": ["gated", "small"], "public": PAIRS, "length": 20, "shortest": None}
    settings |= {"texts": 5, "spare": 1, "epochs": 1, "learning_rate": 1e-3}
    tables = measure(experiment, **settings, access=access)
    scored, rng = tables["scored"].drop(columns="model"), np.random.default_rng(0)
    measured = within_table(scored, model="small", rng=rng, resamples=20)
    within = join_models([measured], WITHIN_COLUMNS, tables["cells"])
    lost = within[within["status"] != OK]
    assert lost["domain"].tolist() == list(DOMAINS)
    assert set(lost["model"] + lost["phase"]) == {"gatedpre-training"}
    ours = within[(within["metric"] == "loss") & (within["domain"] == "FreeLaw")]
    assert ours[["members", "non_members"]].to_numpy().tolist() == [[5, 5]]
    assert set(tables["blind"]["benchmark"]) == {PAIRS}
    assert tables["blind"]["split"].unique().tolist() == list(DOMAINS)
