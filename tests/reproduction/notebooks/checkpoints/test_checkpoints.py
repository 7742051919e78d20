"""Figures 2 and 3 and Table 5 on scorers that stand in for the released checkpoints."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from contamination.errors import InputError
from contamination.randomness import random_stream
from contamination.scoring.models import ModelEntry
from contamination.scoring.store import open_store
from contamination.statistics import sharded_exact_test, sharded_t_test
from contamination.testsets.sources import open_test_set
from fakes.data_fixtures import ROOT, released_data, write_profile
from fakes.opening import Opening
from fakes.remembering_scorer import RemembersLines
from reproduction.notebooks.checkpoints import tables
from reproduction.notebooks.checkpoints.measure import STORES, measure, sample_spans
from reproduction.notebooks.checkpoints.settings import Settings
from reproduction.run import experiment as runs
from reproduction.run.experiment import Experiment

PUBLISHED = ROOT / "data" / "published"
PERMUTATIONS = 5


class Bench(Opening):
    """Sets of lines, of which one model has read two."""

    def __init__(self, root: Path, tokenizer, prose: list[str]) -> None:
        super().__init__(tokenizer)
        self.experiment = Experiment(
            write_profile(root / "p.yaml", released_data()), root / "build"
        )
        texts = [text.replace("\n", " ")[:40] for text in prose]
        self.paths = {}
        for number, name in enumerate(("planted", "tuning", "unread")):
            path = root / f"{name}.jsonl"
            own = texts[20 * number : 20 * number + 20]
            path.write_text("".join(json.dumps({"text": text}) + "\n" for text in own))
            self.paths[name] = str(path)
        read = [
            open_test_set(Path(self.paths[name]), template="line/1")
            for name in ("planted", "tuning")
        ]
        self.scorers["bad"] = RemembersLines(tokenizer, *read, revision="bad")

    def settings(self, **changes) -> Settings:
        given = {
            "models": ["bad", "old"],
            "ablation_sets": [self.paths["planted"]],
            "shards": [2, 4],
            "permutations": PERMUTATIONS,
            "max_records": None,
            "min_k_sets": [self.paths["planted"]],
            "tuning_members": [self.paths["tuning"]],
            "tuning_non_members": [self.paths["unread"]],
            "length": 40,
            "spans": 40,
            "k": 100.0,  # of all tokens, since the first of a span are not recognised
        }
        return Settings(**given | changes)

    def run(self, **changes) -> dict[str, pd.DataFrame]:
        return measure(self.experiment, self.settings(**changes), access=self)

    def rates(self, spans: pd.DataFrame, fpr: float = 0.05) -> pd.DataFrame:
        return tables.detection_rates(
            spans,
            sets=[self.paths["planted"]],
            members=[self.paths["tuning"]],
            non_members=[self.paths["unread"]],
            fpr=fpr,
            published=PUBLISHED,
        )


@pytest.fixture
def bench(tmp_path, tokenizer, prose, monkeypatch) -> Bench:
    bench = Bench(tmp_path, tokenizer, prose)

    def find(name: str) -> ModelEntry:
        counts = {bench.paths["planted"]: 10 if name == "bad" else 0}
        return ModelEntry(name, f"org/{name}", planted=counts)

    monkeypatch.setattr(runs, "find_model", find)
    return bench


def test_both_tests_of_every_store_are_those_of_its_numbers(bench):
    cells = bench.run()["cells"]
    directory = bench.experiment.build / STORES
    rows = tables.by_shards(cells, PERMUTATIONS, directory=directory)
    assert len(rows) == 2 * 2 * 2  # models, shards, tests
    for cell in cells.to_dict("records"):
        log_probs = open_store(directory / cell["store"]).log_probs(PERMUTATIONS)
        same = (rows["model"] == cell["model"]) & (rows["shards"] == cell["shards"])
        own = rows[same].set_index("test")["log10_p"]
        assert own["sharded_t"] == sharded_t_test(log_probs).log10_p
        assert own["sharded_exact"] == sharded_exact_test(log_probs).log10_p


def test_what_was_planted_is_found_and_what_was_not_read_is_not(bench):
    measured = bench.run()
    rows = tables.by_shards(
        measured["cells"], PERMUTATIONS, directory=bench.experiment.build / STORES
    )
    exact = rows[rows["test"] == "sharded_exact"].groupby("model")["log10_p"].min()
    assert exact["bad"] < -1.5 < exact["old"]
    rates = bench.rates(measured["spans"]).set_index("model")
    assert rates.loc["bad", "rate_percent"] > 80
    assert rates.loc["old", "rate_percent"] < 40
    assert (rates["tuned_fpr"] <= 0.05).all()
    assert rates["dup_count"].to_dict() == {"bad": 10, "old": 0}


def test_fewer_permutations_are_a_subset_with_the_canonical_order(bench):
    cells = bench.run()["cells"]
    directory = bench.experiment.build / STORES
    rows = tables.by_permutations(
        cells,
        [1, PERMUTATIONS],
        scored=PERMUTATIONS,
        shards=4,
        directory=directory,
        replicates=3,
        rng=random_stream(0, "test"),
    )
    assert rows.groupby(["model", "permutations", "test"]).size().eq(3).all()
    whole = tables.by_shards(cells[cells["shards"] == 4], PERMUTATIONS, directory=directory)
    key = ["model", "test"]
    all_of_them = rows[rows["permutations"] == PERMUTATIONS].groupby(key)["log10_p"]
    expected = whole.set_index(key)["log10_p"].sort_index()
    assert np.allclose(all_of_them.min(), expected)  # in any order the same numbers
    assert np.allclose(all_of_them.max(), expected)


def test_spans_lie_in_the_set_and_begin_anywhere(bench, tokenizer):
    examples = open_test_set(Path(bench.paths["unread"]), template="line/1")
    scorer = bench.scorers["bad"]
    spans = sample_spans(scorer, examples, bench.settings(), seed=0)
    stream = tokenizer("".join(examples.examples), add_special_tokens=False)["input_ids"]
    parts = {tuple(stream[i : i + 40]) for i in range(len(stream) - 39)}
    assert len(spans) == 40
    assert {tuple(span.tolist()) for span in spans} <= parts
    assert len({span.tobytes() for span in spans}) > 20


def test_what_is_unavailable_is_a_row_that_says_why(bench):
    gone = "/nowhere/gone.jsonl"
    measured = bench.run(ablation_sets=[gone], tuning_non_members=[gone])
    assert all("gone.jsonl" in status for status in measured["cells"]["status"])
    rows = tables.by_shards(measured["cells"], PERMUTATIONS, directory=Path("none"))
    assert rows["log10_p"].isna().all()
    assert tables.panels_of(rows) == {}
    rates = bench.rates(measured["spans"])
    assert all("tuning_non_members" in status for status in rates["status"])


def test_a_set_shorter_than_a_span_says_so(bench):
    spans = bench.run(length=100_000)["spans"]
    assert all("100000" in status for status in spans["status"])


@pytest.mark.parametrize("changes", [{"length": 1}, {"spans": 0}])
def test_numbers_that_cannot_be_are_named(bench, changes):
    with pytest.raises(InputError, match=next(iter(changes))):
        bench.run(**changes)


@pytest.mark.parametrize("fpr", [0, 1, -0.1])
def test_a_rate_that_cannot_be_is_named(bench, fpr):
    with pytest.raises(InputError, match="fpr"):
        bench.rates(pd.DataFrame(), fpr)


def test_figure_2_has_the_checkpoint_of_fewer_copies_first():
    rows = pd.DataFrame(
        {
            "model": ["higher", "higher", "lower", "control"],
            "dup_count": [1, 100, 7, 0],
            "status": ["ok", "ok", "ok", "ok"],
        }
    )
    panels = tables.power_panels(rows, ["higher", "lower", "control"])
    assert list(panels) == ["lower", "higher"]
    assert panels["higher"]["dup_count"].tolist() == [1, 100]
