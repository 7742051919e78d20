"""Public sets by domain from the hub's own files, and released models that score them.

Names of files, fields and splits are those of the real repositories; the texts are made up.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from contamination.errors import InputError
from contamination.membership.blind import blind_table
from contamination.scoring.models import ModelEntry
from contamination.scoring.status import OK
from fakes.data_fixtures import ROOT, WORDS, write_profile
from fakes.hub_server import HubServer, Repository
from fakes.made_up_registry import hub_at, registry_of
from fakes.made_up_scorer import MadeUpScorer
from reproduction.notebooks.assumptions import measure as passes
from reproduction.notebooks.assumptions.measure import (
    CELLS,
    DOMAINS,
    OTHER_DOMAINS,
    SETS,
    PublicDomain,
    load_public,
    measure,
    score_released,
)
from reproduction.notebooks.assumptions.tables import WITHIN_COLUMNS, join_models, within_table
from reproduction.output.published import load_published
from reproduction.run.experiment import Experiment
from reproduction.run.grid import Access

PAIRS, MIMIR = "llm_dataset_inference", "mimir"
PERTURBED = ("synonym_substitution", "butter_fingers", "random_deletion", "change_char_case")


@pytest.fixture(autouse=True)
def nothing_at_hand(monkeypatch, tmp_path) -> Iterator[None]:
    with registry_of(monkeypatch, tmp_path, {}):
        yield


@pytest.fixture
def server(monkeypatch, tmp_path) -> Iterator[HubServer]:
    with hub_at(monkeypatch, tmp_path) as running:
        yield running


def texts_of(domain: str, split: str, count: int = 6, words: int = 30) -> list[str]:
    rng = np.random.default_rng([*f"{domain}/{split}".encode()])
    return [" ".join(rng.choice(WORDS, size=words)) for _ in range(count)]


def card_of(configs: dict[str, list[str]]) -> bytes:
    listed = [
        {
            "config_name": name,
            "data_files": [{"split": split, "path": f"{name}/{split}-*"} for split in splits],
        }
        for name, splits in configs.items()
    ]
    return f"---\n{yaml.safe_dump({'configs': listed})}---\n".encode()


@pytest.fixture
def pairs(server) -> Repository:
    """A directory for each domain with two files, and a card that names them."""
    names = [*SETS[PAIRS].domains.values(), "books3"]
    files = {"README.md": card_of({name: ["train", "val"] for name in names})}
    for name in names:
        for split in ("train", "val"):
            texts = texts_of(name, split)
            columns = {"text": texts} | {field: [t.upper() for t in texts] for field in PERTURBED}
            path = f"{name}/{split}-00000-of-00001.parquet"
            files[path] = pd.DataFrame(columns).to_parquet()
    server.repositories[SETS[PAIRS].id] = Repository()
    server.repositories[SETS[PAIRS].id].push(files)
    return server.repositories[SETS[PAIRS].id]


@pytest.fixture
def mimir(server) -> Repository:
    """JSON strings, a line each; neighbours beside them, and a script that must not run."""
    files = {"README.md": b"---\nlicense: mit\n---\n", "mimir.py": b"raise SystemExit('was run')"}
    for name in SETS[MIMIR].domains.values():
        for folder in ("train", "test", "train_neighbors", "test_neighbors"):
            for overlap in ("7_0.2", "13_0.2", "13_0.8"):
                texts = texts_of(name, f"{folder}{overlap}")
                lines = "".join(f"{json.dumps(text)}\n" for text in texts)
                path = f"cache_100_200_1000_512/{folder}/{name}_ngram_{overlap}.jsonl"
                files[path] = lines.encode()
    server.repositories[SETS[MIMIR].id] = Repository()
    server.repositories[SETS[MIMIR].id].push(files)
    return server.repositories[SETS[MIMIR].id]


# --- the hub --------------------------------------------------------------------------------------


def test_domains_that_are_configurations(pairs, server) -> None:
    found = load_public(PAIRS)
    assert [one.name for one in found] == list(DOMAINS)
    assert {one.status for one in found} == {OK}
    assert {one.commit for one in found} == {pairs.refs["main"]}
    enron = found[DOMAINS.index("Enron Emails")]
    assert enron.members == tuple(texts_of("enron", "train"))
    assert enron.non_members == tuple(texts_of("enron", "val"))
    assert not any("books3" in path for path in server.seen if "resolve" in path)


def test_domains_that_are_files(mimir, server) -> None:
    found = {one.name: one for one in load_public(MIMIR)}
    others = ["DM Mathematics", "PubMed Central", "Wikipedia (en)"]
    assert list(found) == [*DOMAINS, *others]
    wikipedia = found["Wikipedia (en)"]
    assert wikipedia.members == tuple(texts_of("wikipedia_(en)", "train13_0.8"))
    assert wikipedia.non_members == tuple(texts_of("wikipedia_(en)", "test13_0.8"))
    assert wikipedia.commit == mimir.refs["main"]
    asked = {name for name, one in found.items() if one.status == OK}
    assert asked == {"Github", "ArXiv", "HackerNews", "Pile-CC", *others}
    assert found["FreeLaw"].status == "not asked: mimir has no texts of this domain"
    wanted = {f"{name}_ngram_13_0.8.jsonl" for name in SETS[MIMIR].domains.values()}
    assert server.downloaded() == wanted


def test_a_mirror_serves_what_it_has_and_the_rest_says_why_not(
    tmp_path, server, monkeypatch
) -> None:
    server.shutdown()
    server.server_close()
    for split in ("train", "val"):
        path = tmp_path / "mirror" / PAIRS / "cc" / f"{split}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'{{"text": "of the {split} split"}}\n')
    monkeypatch.setenv("CONTAMINATION_DATA", str(tmp_path / "mirror"))
    found = {one.name: one for one in load_public(PAIRS)}
    assert found["Pile-CC"] == PublicDomain(
        "Pile-CC", ("of the train split",), ("of the val split",)
    )
    reason = found["Github"].status
    assert reason.startswith("not run here: hub pratyushmaini/llm_dataset_inference:github: ")
    assert {one.status for one in found.values()} == {OK, reason}


def test_a_domain_that_is_missing_or_malformed_leaves_the_others(mimir, server) -> None:
    files = dict(mimir.commits[mimir.refs["main"]])
    folder = "cache_100_200_1000_512"
    del files[f"{folder}/test/github_ngram_13_0.8.jsonl"]
    files[f"{folder}/train/arxiv_ngram_13_0.8.jsonl"] = b'"a text"\n{"text": "an object"}\n'
    files[f"{folder}/train/hackernews_ngram_13_0.8.jsonl"] = b'{"document": "no text"}\n'
    mimir.push(files)
    found = {one.name: one.status for one in load_public(MIMIR)}
    gone = "(cache_100_200_1000_512/test/github_ngram_13_0.8.jsonl): there is no such file"
    assert gone in found["Github"]
    assert "line 2: write a JSON object, not" in found["ArXiv"]
    assert 'no text; write {"text": "..."}' in found["HackerNews"]
    assert found["Pile-CC"] == OK
    with pytest.raises(InputError, match="public is 'pile': give one of llm_dataset_inference, mi"):
        load_public("pile")


def test_domains_are_those_of_the_tables_of_fu() -> None:
    printed = load_published(ROOT / "data" / "published", "fu2025_within_domain_auc")
    by_model = printed.groupby("model")["domain"].agg(lambda found: list(dict.fromkeys(found)))
    assert all(by_model[name] == list(DOMAINS) for name in by_model.index if "pythia" in name)
    ((name, domains),) = OTHER_DOMAINS.items()
    assert by_model[name.partition("/")[2]] == list(domains)


# --- released models ------------------------------------------------------------------------------

ENTRY, GATED = ModelEntry("small", "org/small"), ModelEntry("gated", "org/gated", parameters=7)
OLMO = ModelEntry("olmo-2-7b", *OTHER_DOMAINS)


class Opening(Access):
    """Opens a made-up model; any other cannot be had. `opened` keeps the names."""

    def __init__(self, tokenizer) -> None:
        self.tokenizer, self.opened = tokenizer, []

    def open_model(self, entry: ModelEntry) -> MadeUpScorer:
        self.opened.append(entry.name)
        if entry is not ENTRY:
            raise InputError(f"{entry.name}: log in with `hf auth login`")
        return MadeUpScorer(self.tokenizer)


@pytest.fixture
def access(tokenizer) -> Opening:
    return Opening(tokenizer)


def domain_of(name: str, members: int = 8, others: int = 8, words: int = 40) -> PublicDomain:
    sides = (texts_of(name, "train", members, words), texts_of(name, "val", others, words))
    return PublicDomain(name, *map(tuple, sides), commit="abc")


@pytest.fixture
def domains() -> list[PublicDomain]:
    return [
        domain_of("Github"),
        PublicDomain("FreeLaw", status="not asked: no such texts"),
        domain_of("Enron Emails", words=5),
        domain_of("ArXiv", members=20, others=4),
    ]


def test_what_cannot_be_had_is_a_cell_and_the_rest_is_scored(access, domains, tmp_path) -> None:
    models = [GATED, ENTRY, OLMO]
    rows, tables, _ = score_released(models, domains, tmp_path, length=20, texts=10, access=access)
    cells, scored = pd.DataFrame(rows, columns=list(CELLS)), pd.concat(tables)
    assert access.opened == ["gated", "small"]  # no model is loaded for nothing
    table = cells.set_index(["model", "domain"])
    gated = "failed: gated: log in with `hf auth login`"
    lost = "not asked: no such texts"
    assert table.loc["gated", "status"].tolist() == [gated] * 4
    assert table.loc["gated", "parameters"].tolist() == [7] * 4
    short = "failed: Enron Emails: no member of 8 has 20 tokens; lower `length`"
    assert table.loc["small", "status"].tolist() == [OK, lost, short, OK]
    counts = table.loc["small", ["members", "non_members"]].dropna()
    assert counts.to_numpy().tolist() == [[8, 8], [10, 4]]
    assert table.loc["olmo-2-7b"].index.tolist() == list(OTHER_DOMAINS[OLMO.id])
    assert table.loc["olmo-2-7b", "status"].str.startswith("not asked: ").all()
    assert scored.groupby(["model", "phase", "domain"]).size().to_dict() == {
        ("small", "pre-training", "Github"): 16,
        ("small", "pre-training", "ArXiv"): 14,
    }


def test_nothing_is_scored_twice(access, domains, tmp_path, monkeypatch) -> None:
    settings = {"length": 20, "texts": 10, "access": access}
    _, first, _ = score_released([ENTRY], domains, tmp_path, **settings)
    monkeypatch.setattr(MadeUpScorer, "token_logprobs", None)
    _, again, _ = score_released([ENTRY], domains, tmp_path, **settings)
    for one, other in zip(first, again, strict=True):
        pd.testing.assert_frame_equal(one, other)


@pytest.fixture
def run(tmp_path: Path, access) -> Callable[..., dict[str, pd.DataFrame]]:
    """Measure under a profile whose corpus was never made."""
    experiment = Experiment(write_profile(tmp_path / "tiny.yaml"), tmp_path / "build")

    def call(**changed: Any) -> dict[str, pd.DataFrame]:
        settings = {"models": ["small"], "public": PAIRS, "length": 20, "texts": 5}
        tuning = {"spare": 1, "epochs": 1, "learning_rate": 1e-3}
        return measure(experiment, **settings | tuning | changed, access=access)

    return call


def test_a_run_without_a_corpus_scores_public_texts(pairs, run, monkeypatch) -> None:
    monkeypatch.setattr(passes, "find_model", {"small": ENTRY, "gated": GATED}.__getitem__)
    tables = run(models=["gated", "small"])
    cells = tables["cells"]
    assert cells.groupby("model")["status"].agg(lambda found: sum(found == OK)).to_dict() == {
        "gated": 0,
        "small": len(DOMAINS),
    }
    assert set(cells["commit"]) == {pairs.refs["main"]}
    scored, rng = tables["scored"].drop(columns="model"), np.random.default_rng(0)
    measured = within_table(scored, model="small", rng=rng, resamples=20)
    within = join_models([measured], WITHIN_COLUMNS, cells)
    assert tuple(within) == WITHIN_COLUMNS
    lost = within[within["status"] != OK]
    assert lost["domain"].tolist() == list(DOMAINS)
    assert set(lost["model"]) == {"gated"}
    assert set(lost["phase"]) == {"pre-training"}
    ours = within[(within["metric"] == "loss") & (within["domain"] == "FreeLaw")]
    assert ours[["members", "non_members"]].to_numpy().tolist() == [[5, 5]]
    blind = blind_table(tables["blind"], rng=rng, resamples=20)
    assert set(blind["benchmark"]) == {PAIRS}
    assert blind["split"].tolist() == [name for name in DOMAINS for _ in range(3)]
