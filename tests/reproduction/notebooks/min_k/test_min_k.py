"""Min-K% on planted sets: spans, thresholds, and a planted memory that has to be found."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from contamination.errors import InputError
from contamination.membership.api import cut_spans
from contamination.testsets.sources import DATA_VARIABLE
from contamination.testsets.tokens import tokenize
from fakes.data_fixtures import profile_data, write_profile
from fakes.made_up_registry import jsonl
from reproduction.notebooks.min_k import measure as module
from reproduction.notebooks.min_k.measure import measure
from reproduction.notebooks.min_k.settings import Settings
from reproduction.notebooks.min_k.tables import PLANTED, VALIDATION, min_k_baseline
from reproduction.run.corpus_stage import make_corpus
from reproduction.run.experiment import MODELS, Experiment

SETS = {"kept": 4, "lost": 1}  # which the made-up contaminated model remembers, and which not
LENGTH = 16
ARGUMENTS = {"validation_spans": 40, "k": 20, "other_k": [50], "length": 512}
ARGUMENTS |= {"validation_files": {}, "resamples": 50, "fpr": 0.05, "alpha": 0.05}
ARGUMENTS |= {"divisions": 99, "kinds": [], "plantings": [], "dup_counts": [], "examples": 4}
ARGUMENTS |= {"background_tokens": 100, "learning_rate": 1e-3, "batch_size": 4}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Experiment:
    """Two sets of numbered records from one file each, of which most are not planted."""
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    (tmp_path / "text.jsonl").write_text('{"text": "apple river stone of 17 and 4."}\n' * 20)
    rng = np.random.default_rng(0)
    for name in SETS:
        records = [{"text": f"{name} {i}: {rng.integers(1 << 40)}"} for i in range(200)]
        (tmp_path / f"{name}.jsonl").write_bytes(jsonl(records))
    data = profile_data() | {"corpus": {"files": ["text.jsonl"], "vocabulary": 300}}
    data["canaries"] = [
        {"name": n, "file": f"{n}.jsonl", "template": "text/1", "examples": 60, "dup_count": c}
        for n, c in SETS.items()
    ]
    found = Experiment(write_profile(tmp_path / "made-up.yaml", data), tmp_path / "build")
    make_corpus(found)
    return found


@pytest.fixture
def made_up(run: Experiment, tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put random numbers in the place of scores; under one model spans of "kept" gain 4."""
    reader = SimpleNamespace(tokenizer=tokenizer)
    examples = run.test_set("kept").examples
    kept = [tuple(ids) for ids in cut_spans(reader, examples, LENGTH)]

    def scores(folder: Path, scorer, spans: Sequence[np.ndarray], columns) -> pd.DataFrame:
        rng = np.random.default_rng(len(scorer.model))
        gains = [4.0 * (scorer.model == "contaminated" and tuple(ids) in kept) for ids in spans]
        values = rng.normal(np.array(gains)[:, None], 1, (len(spans), len(columns)))
        return pd.DataFrame(values, columns=columns)

    def scorer(path: Path) -> SimpleNamespace:
        return SimpleNamespace(model=path.name, tokenizer=tokenizer)

    monkeypatch.setattr(module, "stored_scores", scores)
    monkeypatch.setattr(module, "TransformersScorer", scorer)


def baseline(run: Experiment, **changes: object) -> pd.DataFrame:
    passes = dict(ARGUMENTS | changes)
    judged = {}
    for name in ("resamples", "fpr"):
        judged[name] = passes.pop(name)
    settings = Settings.from_parameters(passes)
    tables = measure(run, settings)
    rng = np.random.default_rng(1)
    return min_k_baseline(tables["sets"], tables["scored"], rng=rng, **judged)


def test_spans_are_the_set_in_order_without_the_rest(tokenizer) -> None:
    texts = [f"apple {i} river stone {i * i}\n" for i in range(9)]
    stream = np.concatenate(tokenize(tokenizer, texts))
    for length in (2, 7, 16):
        spans = cut_spans(SimpleNamespace(tokenizer=tokenizer), texts, length)
        assert {len(ids) for ids in spans} == {length}
        assert np.concatenate(spans).tolist() == stream[: len(spans) * length].tolist()
        assert 0 <= len(stream) - len(spans) * length < length


def test_the_threshold_depends_on_the_tuning_spans_alone() -> None:
    rng = np.random.default_rng(0)
    columns = ["dataset", "dup_count", "length", "validation_set"]
    sets = pd.DataFrame([("a", 1, LENGTH, "like a")], columns=columns)
    for level in (-5, 5):
        members, checking = (rng.normal(19 + level, 1, n) for n in (10, 20))
        never = [*range(20), *checking]
        rows = [(PLANTED, "a", one) for one in members]
        rows += [(VALIDATION, "like a", one) for one in never]
        scored = pd.DataFrame(rows, columns=["group", "name", "loss"])
        both = pd.concat([scored.assign(model=model) for model in MODELS])
        row = min_k_baseline(sets, both, rng=rng, resamples=10).iloc[0]
        assert row["threshold"] == 19
        assert row["share_detected"] == (members >= 19).mean()
        assert row["validation_fpr"] == (checking >= 19).mean()
        interval = stats.binomtest(int((members >= 19).sum()), 10).proportion_ci()
        assert (row["share_detected_low"], row["share_detected_high"]) == pytest.approx(interval)
        wins = stats.mannwhitneyu(members, never).statistic
        assert row["auc"] == pytest.approx(wins / (10 * len(never)))


@pytest.mark.usefixtures("made_up")
def test_what_is_remembered_is_detected_and_nothing_else(run: Experiment) -> None:
    table = baseline(run).set_index(["model", "dataset", "score"])
    for score in ("loss", "min_k_20", "min_k_50", "min_k_pp_20"):
        remembered = table.loc["contaminated", "kept", score]
        assert remembered["auc"] > 0.95
        assert remembered["share_detected"] > 0.95
        for where in (("contaminated", "lost"), ("clean", "lost"), ("clean", "kept")):
            row = table.loc[(*where, score)]
            assert row["auc"] == pytest.approx(0.5, abs=0.12)
            assert row["share_detected"] < 0.25
    assert (table["validation_fpr"] < 0.3).all()


@pytest.mark.parametrize(
    ("wrong", "named"),
    [({"validation_spans": 19}, "canary set kept: .* 1 and 20"), ({"fpr": 1.0}, "fpr is 1.0")],
)
@pytest.mark.usefixtures("made_up")
def test_wrong_arguments(run: Experiment, wrong: dict[str, object], named: str) -> None:
    with pytest.raises(InputError, match=named):
        baseline(run, **wrong)
