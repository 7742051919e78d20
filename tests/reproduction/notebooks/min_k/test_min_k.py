"""Min-K% on planted sets: spans, thresholds, and a planted memory that has to be found."""

import json
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from contamination.errors import InputError
from contamination.membership import api
from contamination.membership.api import cut_spans, score_tokens
from contamination.membership.scores import TOP, Distribution, Signals
from contamination.scoring.local import TransformersScorer
from contamination.testsets.sources import DATA_VARIABLE
from contamination.testsets.tokens import tokenize
from fakes.data_fixtures import profile_data, write_profile
from reproduction.notebooks.min_k import measure as module
from reproduction.notebooks.min_k.measure import measure
from reproduction.notebooks.min_k.tables import BESIDE, beside_the_tests, judge, min_k_baseline
from reproduction.run.corpus_stage import make_corpus
from reproduction.run.experiment import MODELS, Experiment

SETS = {"kept": 4, "lost": 1}  # which the made-up contaminated model remembers, and which not
LENGTH = 16
MEASURED = {"validation_spans": 40, "k": 20, "other_k": [50], "length": 512, "validation_files": {}}
JUDGED = {"resamples": 50, "fpr": 0.05}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Experiment:
    """Two sets of numbered records from one file each, of which most are not planted."""
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv(DATA_VARIABLE, str(folder))
    (folder / "text.jsonl").write_text('{"text": "apple river stone of 17 and 4."}\n' * 20)
    rng = np.random.default_rng(0)
    for name in SETS:
        lines = [json.dumps({"text": f"{name} {i}: {rng.integers(1 << 40)}"}) for i in range(200)]
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    data = profile_data() | {"corpus": {"files": ["text.jsonl"], "vocabulary": 300}}
    data["canaries"] = [
        {"name": n, "file": f"{n}.jsonl", "template": "text/1", "examples": 60, "dup_count": c}
        for n, c in SETS.items()
    ]
    found = Experiment(write_profile(tmp_path / "made-up.yaml", data), tmp_path / "build")
    make_corpus(found)
    return found


@pytest.fixture
def made_up(run: Experiment, tokenizer, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Put random log-probabilities in the place of a model's; spans of "kept" gain 4 nats.

    Gives what was scored: (model, spans).
    """
    seen: list[tuple[str, int]] = []
    kept = [tuple(ids) for ids in cut_of(tokenizer, run.test_set("kept").examples)]

    def signals(scorer: SimpleNamespace, spans: Sequence[np.ndarray]) -> list[Signals]:
        seen.append((scorer.model, len(spans)))
        found = []
        for ids in spans:  # numbers of its own, whatever is scored with it
            rng = np.random.default_rng([MODELS.index(scorer.model), *ids.tolist()])
            remembered = scorer.model == "contaminated" and tuple(ids) in kept
            values = rng.normal(-9 + 4 * remembered, 1, len(ids)).astype(np.float32)
            ones = np.ones((len(ids), len(TOP)), dtype=np.float32)
            columns = (ones[:, 0], ones[:, 0], -ones[:, 0], ones[:, 0], ones)
            found.append(Signals(values, Distribution(*columns)))
        return found

    monkeypatch.setattr(api, "token_signals", signals)
    monkeypatch.setattr(
        module,
        "TransformersScorer",
        lambda path: SimpleNamespace(
            model=path.name, tokenizer=tokenizer, revision=path.name, batch_tokens=256
        ),
    )
    return seen


def cut_of(tokenizer, texts: Sequence[str], length: int = LENGTH) -> list[np.ndarray]:
    return cut_spans(SimpleNamespace(tokenizer=tokenizer), texts, length)


def baseline(run: Experiment, **changes: object) -> pd.DataFrame:
    measured = measure(run, **{name: changes.get(name, MEASURED[name]) for name in MEASURED})
    judged = {name: changes.get(name, JUDGED[name]) for name in JUDGED}
    return min_k_baseline(**measured, rng=np.random.default_rng(1), **judged)


@pytest.mark.parametrize("length", [2, 7, 16])
def test_spans_are_the_set_in_order_without_the_rest(tokenizer, length: int) -> None:
    texts = [f"apple {i} river stone {i * i}\n" for i in range(9)]
    stream = np.concatenate(tokenize(tokenizer, texts))
    spans = cut_of(tokenizer, texts, length)
    assert {len(ids) for ids in spans} == {length}
    assert np.concatenate(spans).tolist() == stream[: len(spans) * length].tolist()
    assert 0 <= len(stream) - len(spans) * length < length


def test_a_text_shorter_than_a_span_has_none_and_one_as_long_has_one(tokenizer) -> None:
    (ids,) = tokenize(tokenizer, ["apple river stone"])
    assert cut_of(tokenizer, ["apple river stone"], len(ids) + 1) == []
    assert len(cut_of(tokenizer, ["apple river stone"], len(ids))) == 1
    assert cut_of(tokenizer, [], 4) == []


def test_the_threshold_depends_on_the_tuning_spans_alone() -> None:
    rng = np.random.default_rng(0)
    tuning = pd.DataFrame({"loss": np.arange(20.0)})
    for level in (-5, 5):
        members, checking = (pd.DataFrame({"loss": rng.normal(19 + level, 1, n)}) for n in (10, 30))
        (row,) = judge(members, tuning, checking, fpr=0.05, rng=rng, resamples=10).itertuples()
        assert row.threshold == 19
        assert row.share_detected == (members["loss"] >= 19).mean()
        assert row.validation_fpr == (checking["loss"] >= 19).mean()
        test = stats.binomtest(int(10 * row.share_detected), 10).proportion_ci()
        assert (row.share_detected_low, row.share_detected_high) == pytest.approx(tuple(test))
        unseen = np.concatenate([tuning["loss"], checking["loss"]])
        wins = stats.mannwhitneyu(members["loss"], unseen).statistic
        assert row.auc == pytest.approx(wins / (10 * len(unseen)))


def test_without_text_to_check_the_rate_is_unknown() -> None:
    scores = (pd.DataFrame({"loss": np.arange(float(n))}) for n in (3, 20, 0))
    rows = judge(*scores, fpr=0.05, rng=np.random.default_rng(0), resamples=10)
    assert rows["validation_fpr"].isna().all()
    assert rows["share_detected"].tolist() == [0.0]


def test_a_row_per_model_set_and_score(run: Experiment, made_up: list[tuple[str, int]]) -> None:
    table = baseline(run)
    contract = ["dataset", "length", "score", "auc", "auc_low", "auc_high", "tpr_at_5_fpr"]
    assert {*contract, "model", "dup_count", "spans", "threshold", "share_detected"} <= set(table)
    scores = {"loss", "min_k_20", "min_k_50", "min_k_pp_20", "min_k_pp_50", "zlib"}
    assert set(table["score"]) == scores
    assert len(table.groupby(["model", "dataset", "score"])) == len(table) == 2 * 2 * len(scores)
    assert (table["length"] == LENGTH).all()  # the context
    assert (table["dup_count"] == table["dataset"].map(SETS)).all()
    assert table["validation_set"].tolist() == [f"{n}.jsonl as text/1" for n in table["dataset"]]
    assert (table[["tuning_spans", "checking_spans"]] == 20).all(axis=None)
    assert not table.isna().any(axis=None)
    spans = table.drop_duplicates(["model", "dataset"]).groupby("model")["spans"].sum()
    for model in MODELS:  # the validation spans and the sets, each of them once
        assert sum(count for name, count in made_up if name == model) == 2 * 40 + spans[model]


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


@pytest.mark.usefixtures("made_up")
def test_with_little_text_the_threshold_gets_its_twenty_spans_first(run, tmp_path) -> None:
    lines = (tmp_path / "data" / "lost.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "data" / "few.jsonl").write_text("".join(lines[60:84]))
    table = baseline(run, validation_files={"lost": "few.jsonl"})
    rows = table[table["dataset"] == "lost"]
    assert (rows["tuning_spans"] == 20).all()
    assert rows["checking_spans"].between(1, 19).all()
    for too_few in (lines[60:70], lines[:60]):  # the last are planted, all of them
        (tmp_path / "data" / "few.jsonl").write_text("".join(too_few))
        with pytest.raises(InputError, match=r"canary set lost: .* of 1 and 20 needed"):
            baseline(run, validation_files={"lost": "few.jsonl"})


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"length": 1}, "length 1, .*: give at least 2 tokens"),
        ({"validation_spans": 0}, "validation_spans 0: give .* 1 span"),
        ({"validation_spans": 19}, "19 of text never planted .*, of 1 and 20 needed"),
        ({"k": 0}, "k = 0"),
        ({"fpr": 0.0}, "fpr is 0.0: give a rate between 0 and 1"),
        ({"fpr": 1.0}, "fpr is 1.0: give a rate"),
    ],
)
@pytest.mark.usefixtures("made_up")
def test_wrong_arguments(run: Experiment, wrong: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        baseline(run, **wrong)


def test_a_network_is_read_token_by_token(run: Experiment, model_directory: Path) -> None:
    """The score of a span, computed again from the logits of transformers."""
    import torch
    from transformers import AutoModelForCausalLM

    scorer = TransformersScorer(model_directory)
    spans = cut_spans(scorer, run.test_set("kept").examples, LENGTH)[:3]
    scores = score_tokens(scorer, spans, ["loss", "min_k_20"])
    network = AutoModelForCausalLM.from_pretrained(model_directory).eval()
    for (_, row), ids in zip(scores.iterrows(), spans, strict=True):
        inputs = torch.tensor([[scorer.start, *ids[:-1].tolist()]])
        with torch.no_grad():
            found = network(inputs).logits[0].log_softmax(dim=-1).numpy()
        values = found[np.arange(1, LENGTH), ids[1:]]
        assert row["loss"] == pytest.approx(values.mean(), rel=5e-3)  # of bfloat16
        assert row["min_k_20"] == pytest.approx(np.sort(values)[:3].mean(), rel=5e-3)  # of bfloat16


def test_the_layout_of_table_5() -> None:
    rows = [
        (model, name, count, 30 + count, score, share)
        for model in MODELS
        for name, count in (("b", 8), ("a", 1))
        for score, share in (("loss", 0.25), ("min_k_20", count / 8))
    ]
    columns = ["model", "dataset", "dup_count", "spans", "score", "share_detected"]
    table = pd.DataFrame(rows, columns=columns)
    p = {("contaminated", "b"): 1e-9, ("contaminated", "a"): 0.04}
    tested = product(MODELS, ("a", "b"), ("permutation", *BESIDE))
    canaries = pd.DataFrame(tested, columns=["model", "dataset", "test"])
    keys = zip(canaries["model"], canaries["dataset"], strict=True)
    canaries["p"] = [p.get(key, 0.5) for key in keys]
    canaries = canaries.assign(holm_p=2 * canaries["p"], log10_p=np.log10(canaries["p"]))
    shown = beside_the_tests(table, canaries, "contaminated", {"min_k_20": "Min-20%"}, 0.05)
    bold = "**1.0\u00a0×\u00a010⁻⁹**"
    tests = ["Sharded t", "Sharded exact", "Successor"]
    assert list(shown) == ["Set", "Duplication count", "Spans", "Min-20%", *tests]
    assert shown.to_numpy().tolist() == [
        ["b", "8", "38", "100%", *[bold] * 3],
        ["a", "1", "31", "12%", *["0.040"] * 3],
    ]
    clean = beside_the_tests(table, canaries, "clean", {"loss": "PPL"}, 0.05)
    assert clean.to_numpy().tolist() == [
        ["b", "0", "38", "25%", *["0.500"] * 3],
        ["a", "0", "31", "25%", *["0.500"] * 3],
    ]
