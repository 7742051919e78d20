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
def made_up(run: Experiment, tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put random log-probabilities in the place of a model's; spans of "kept" gain 4 nats."""
    kept = [tuple(ids) for ids in cut_of(tokenizer, run.test_set("kept").examples)]

    def signals(scorer: SimpleNamespace, spans: Sequence[np.ndarray]) -> list[Signals]:
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
    [
        ({"length": 1}, "length 1"),
        ({"validation_spans": 0}, "validation_spans 0"),
        ({"validation_spans": 19}, "canary set kept: .* 1 and 20"),
        ({"fpr": 1.0}, "fpr is 1.0"),
    ],
)
@pytest.mark.usefixtures("made_up")
def test_wrong_arguments(run: Experiment, wrong: dict[str, object], named: str) -> None:
    with pytest.raises(InputError, match=named):
        baseline(run, **wrong)


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
