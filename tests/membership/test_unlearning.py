"""Ratios and their window, edges included; probes that find what is planted, and controls."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from contamination.errors import InputError
from contamination.membership.api import membership_scores
from contamination.membership.evaluate import auc
from contamination.membership.generation import completion_scores
from contamination.membership.unlearning import (
    WINDOW,
    answer_recall,
    audit_unlearning,
    detection,
    is_suspicious,
    mean_recalls,
    probe_model,
    score_ratio,
)
from contamination.scoring.local import TransformersScorer
from contamination.testsets.tokens import tokenize


def test_ratios_and_the_ends_of_their_window_which_are_left_out() -> None:
    # A chunk that became less likely has a ratio above 1.
    assert score_ratio([-1.0, -2.0, -2.0], [-3.0, -1.0, -2.0]).tolist() == [3.0, 0.5, 1.0]
    before = [-1.0, -1.15, -1.0, -1.15, -1.0]
    after = [-1.15, -1.0, -np.nextafter(1.15, 0), -np.nextafter(1.0, 2), -1.0]
    ratio = score_ratio(before, after)
    assert ratio[0] == 1.15
    assert ratio[1] == 1 / 1.15
    assert is_suspicious(ratio).tolist() == [False, False, True, True, True]
    assert is_suspicious([0.5, 0.51, 1.99, 2.0], window=2).tolist() == [False, True, True, False]


@pytest.fixture(scope="module")
def scorer(model_directory) -> TransformersScorer:
    return TransformersScorer(model_directory)


def test_what_the_model_writes_is_compared_with_the_answer(scorer, monkeypatch) -> None:
    said = {"Q1:": " green tower river", "Q2:": "\n maple\n apple", "Q3:": " lamp\n stone stone"}
    asked = []

    def written(_, prompts, *, new_tokens):
        texts = [scorer.tokenizer.decode(ids) for ids in prompts]
        asked.append((texts, new_tokens))
        return [tokenize(scorer.tokenizer, [said[text]]) for text in texts]

    monkeypatch.setattr("contamination.membership.generation.continuations", written)
    questions = [("Q1:", "green river"), ("Q2:", "maple apple"), ("Q3:", "lamp stone stone")]
    lengths = [len(ids) for ids in tokenize(scorer.tokenizer, [f" {a}" for _, a in questions])]
    # The first is cut after as many tokens as its answer has: "river" is not reached.
    assert answer_recall(scorer, questions).tolist() == pytest.approx([1 / 2, 1 / 2, 1 / 3])
    assert asked == [(list(said), max(lengths))]


@pytest.fixture(scope="module")
def run(make_model, scorer, prose):
    models = {"original": scorer, "unlearned": TransformersScorer(make_model(15)), "other": scorer}
    chunks = [text[:70] for text in prose[:6]]
    questions = [[("apple", "river stone"), ("lamp", "cloud")], [], *([[("apple", "maple")]] * 4)]
    return models, chunks, questions


def audited(models, chunks, questions=(), window=WINDOW, **settings):
    probed = {
        name: probe_model(model, chunks, questions, **settings) for name, model in models.items()
    }
    return audit_unlearning(probed, window=window)


def test_every_column_is_of_its_model(run) -> None:
    models, chunks, questions = run
    table = audited(models, chunks, questions, window=1.3, most=8)
    assert table["chunk"].tolist() == list(range(6))
    for name in ("original", "unlearned"):
        reference = membership_scores(models[name], chunks)["min_k_20"]
        assert table[f"min_k_{name}"].to_numpy() == pytest.approx(reference.to_numpy(), rel=1e-5)
    ratio = table["min_k_unlearned"] / table["min_k_original"]
    assert table["ratio"].to_numpy() == pytest.approx(ratio.to_numpy())
    assert table["suspicious"].tolist() == ((ratio > 1 / 1.3) & (ratio < 1.3)).tolist()
    for name, model in models.items():
        completed = completion_scores(model, chunks, most=8)
        assert table[f"completion_{name}"].tolist() == completed["rouge_l_recall"].tolist()
        assert table[f"exact_{name}"].dtype == bool
        flat = [question for some in questions for question in some]
        recalls = answer_recall(model, flat, most=8)
        assert table.loc[0, f"answers_{name}"] == recalls[:2].mean()
        assert np.isnan(table.loc[1, f"answers_{name}"])
        assert table.loc[5, f"answers_{name}"] == recalls[-1]
    assert not np.allclose(table["min_k_original"], table["min_k_unlearned"])


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda run: score_ratio([-1, -1], [-1, 0.0]), "chunk 1 "),
        (lambda run: is_suspicious([1.0], window=1.0), "window of 1"),
        (lambda run: audited({"original": run[0]["original"]}, run[1]), "`unlearned`"),
        (lambda run: audited(run[0], run[1], [[]]), "1 chunks"),
    ],
)
def test_input_that_cannot_be(run, call, named) -> None:
    with pytest.raises(InputError, match=named):
        call(run)


def test_precision_and_recall_by_counting() -> None:
    ratio = np.array([1.0, 1.1, 0.9, 1.3, 2.0, 1.05])
    untreated = np.array([True, True, False, True, False, False])
    table = detection(ratio, untreated, [1.15, 1.5, 1.001]).set_index("window")
    assert table.loc[1.15, ["suspicious", "untreated", "hits", "chunks"]].tolist() == [4, 3, 2, 6]
    assert table.loc[1.15, "precision"] == 2 / 4
    assert table.loc[1.15, "recall"] == 2 / 3
    interval = tuple(stats.binomtest(2, 4).proportion_ci())
    assert tuple(table.loc[1.15, ["precision_low", "precision_high"]]) == pytest.approx(interval)
    interval = tuple(stats.binomtest(2, 3).proportion_ci())
    assert tuple(table.loc[1.15, ["recall_low", "recall_high"]]) == pytest.approx(interval)
    assert table.loc[1.5, "recall"] == 1
    nearness = -np.abs(np.log(ratio))
    assert (table["auc"] == auc(nearness, untreated)).all()
    # Pairs in which the untreated one is smaller.
    assert table["auc_ratio"].to_numpy() == pytest.approx(4 / 9)


def test_means_of_two_groups_and_their_difference() -> None:
    rng = np.random.default_rng(0)
    flag = np.arange(40) % 4 == 0
    table = pd.DataFrame({"ratio": 1.0, "suspicious": flag, "treated": ~flag})
    table["completion_a"] = 0.5 * flag + rng.uniform(0, 0.2, 40)
    table["exact_a"] = flag
    table["answers_b"] = np.where(np.arange(40) < 4, np.nan, 0.25)
    found = mean_recalls(table).set_index(["probe", "model"])
    assert list(found.index) == [("completion", "a"), ("exact", "a"), ("answers", "b")]
    row = found.loc["completion", "a"]
    yes, no = table.loc[flag, "completion_a"], table.loc[~flag, "completion_a"]
    assert (row["yes"], row["no"]) == (yes.mean(), no.mean())
    assert row["difference"] == pytest.approx(yes.mean() - no.mean())
    error = np.hypot(yes.sem(), no.sem())
    assert row["difference_high"] - row["difference"] == pytest.approx(1.96 * error)
    assert row["difference_low"] > 0.35
    assert (found.loc["exact", "a"]["yes"], found.loc["exact", "a"]["no"]) == (1, 0)
    assert found.loc["answers", "b"]["difference"] == 0
    swapped = mean_recalls(table, "treated").set_index(["probe", "model"])
    assert swapped.loc["completion", "a"]["difference"] == pytest.approx(-row["difference"])
