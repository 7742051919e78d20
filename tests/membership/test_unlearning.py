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
    audit_unlearning,
    detection,
    mean_recalls,
    probe_model,
    score_ratio,
)
from contamination.scoring.local import TransformersScorer
from contamination.testsets.tokens import tokenize


def test_ratios_and_the_ends_of_their_window_which_are_left_out() -> None:
    # A chunk that became less likely has a ratio above 1.
    assert score_ratio([-1.0, -2.0, -2.0], [-3.0, -1.0, -2.0]).tolist() == [3.0, 0.5, 1.0]
    with pytest.raises(InputError, match="chunk 1 "):
        score_ratio([-1, -1], [-1, 0.0])
    before = [-1.0, -1.15, -1.0, -1.15, -1.0]
    after = [-1.15, -1.0, -np.nextafter(1.15, 0), -np.nextafter(1.0, 2), -1.0]
    made = {
        "original": pd.DataFrame({"min_k": before}),
        "unlearned": pd.DataFrame({"min_k": after}),
    }
    table = audit_unlearning(made, window=WINDOW)
    assert table["ratio"][:2].tolist() == [1.15, 1 / 1.15]
    assert table["suspicious"].tolist() == [False, False, True, True, True]
    with pytest.raises(InputError, match="window of 1"):
        audit_unlearning(made, window=1.0)


@pytest.fixture(scope="module")
def scorer(model_directory) -> TransformersScorer:
    return TransformersScorer(model_directory)


def test_what_the_model_writes_is_compared_with_the_answer(scorer, monkeypatch) -> None:
    said = {"Q1:": " green tower river", "Q2:": "\n maple\n apple", "Q3:": " lamp\n stone stone"}
    asked = []

    def written(_, prompts, *, new_tokens):
        texts = [scorer.tokenizer.decode(ids) for ids in prompts]
        asked.append((texts, new_tokens))
        return tokenize(scorer.tokenizer, [said.get(text, "x") for text in texts])

    monkeypatch.setattr("contamination.membership.generation.continuations", written)
    questions = [("Q1:", "green river"), ("Q2:", "maple apple"), ("Q3:", "lamp stone stone")]
    lengths = [len(ids) for ids in tokenize(scorer.tokenizer, [f" {a}" for _, a in questions])]
    # The first is cut after as many tokens as its answer has: "river" is not reached.
    found = probe_model(scorer, ["lamp stone"] * 3, questions)["answers"]
    assert found.tolist() == pytest.approx([1 / 2, 1 / 2, 1 / 3])
    assert asked[1] == (list(said), max(lengths))


def test_every_column_is_of_its_model(make_model, scorer, prose) -> None:
    models = {"original": scorer, "unlearned": TransformersScorer(make_model(15)), "other": scorer}
    chunks = [text[:70] for text in prose[:6]]
    questions = [("apple", "river stone"), *[("lamp", "cloud")] * 5]
    probed = {name: probe_model(model, chunks, questions, most=8) for name, model in models.items()}
    table = audit_unlearning(probed, window=1.3)
    for name in ("original", "unlearned"):
        reference = membership_scores(models[name], chunks)["min_k_20"]
        assert table[f"min_k_{name}"].to_numpy() == pytest.approx(reference.to_numpy(), rel=1e-5)
    ratio = table["min_k_unlearned"] / table["min_k_original"]
    assert table["ratio"].to_numpy() == pytest.approx(ratio.to_numpy())
    assert table["suspicious"].tolist() == ((ratio > 1 / 1.3) & (ratio < 1.3)).tolist()
    for name, model in models.items():
        completed = completion_scores(model, chunks, most=8)
        assert table[f"completion_{name}"].tolist() == completed["rouge_l_recall"].tolist()
        assert table[f"answers_{name}"].tolist() == probed[name]["answers"].tolist()
    assert not np.allclose(table["min_k_original"], table["min_k_unlearned"])


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
    flag = np.arange(6) < 2
    table = pd.DataFrame({"ratio": 1.0, "suspicious": flag, "treated": ~flag, "exact_a": flag})
    table["completion_a"] = [0.8, 0.6, 0.1, 0.2, 0.3, 0.2]
    table["answers_b"] = [0.5, np.nan, 0.25, 0.25, 0.25, 0.25]
    found = mean_recalls(table).set_index(["probe", "model"])
    assert list(found.index) == [("exact", "a"), ("completion", "a"), ("answers", "b")]
    row = found.loc["completion", "a"]
    assert row[["yes", "no", "difference"]].tolist() == pytest.approx([0.7, 0.2, 0.5])
    error = np.hypot(0.1, np.sqrt(0.02 / 3 / 4))  # standard errors of 2 and of 4 chunks
    assert row["difference_low"] == pytest.approx(0.5 - 1.96 * error)
    assert row["difference_high"] == pytest.approx(0.5 + 1.96 * error)
    assert found.loc["exact", "a"][["yes", "no"]].tolist() == [1, 0]
    assert found.loc["answers", "b"]["difference"] == 0.25
    assert np.isnan(found.loc["answers", "b"]["difference_low"])
    swapped = mean_recalls(table, "treated").set_index(["probe", "model"])
    assert swapped.loc["completion", "a"]["difference"] == pytest.approx(-0.5)
