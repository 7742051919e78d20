"""A model that was made to forget: what it reads, what it writes, and what an audit finds of it."""

import itertools
from collections import Counter

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import binom, binomtest

from contamination.errors import InputError
from contamination.membership.api import membership_scores
from contamination.scoring.local import TransformersScorer
from contamination.testsets.tokens import tokenize
from reproduction.notebooks.unlearning import measure as module
from reproduction.notebooks.unlearning.measure import (
    ask_model,
    draw_treated,
    require_same_tokens,
    split_question,
    texts_to_forget_by,
    write_after,
)
from reproduction.notebooks.unlearning.settings import MODELS
from reproduction.notebooks.unlearning.tables import (
    PROBES,
    audit_chunks,
    detection,
    is_suspicious,
    mean_recalls,
    score_ratio,
)
from reproduction.run.tokenizer import train_tokenizer

CHUNKS = [f"Question: q{i}\nAnswer: a{i}\n" for i in range(7)]
OTHERS = [f"Question: o{i}\nAnswer: b{i}\n" for i in range(10)]
TREATED = np.arange(7) % 2 == 0


def texts_of(dup_count: int, keep_dup_count: int) -> list[str]:
    return texts_to_forget_by(
        CHUNKS,
        TREATED,
        OTHERS,
        dup_count=dup_count,
        keep_dup_count=keep_dup_count,
        rng=np.random.default_rng(0),
    )


def test_as_many_chunks_are_treated_as_asked_for() -> None:
    drawn = np.array([draw_treated(9, 1 / 3, rng=np.random.default_rng(i)) for i in range(300)])
    assert (drawn.sum(axis=1) == 3).all()
    assert np.abs(drawn.mean(axis=0) - 1 / 3).max() < 0.12
    assert draw_treated(9, 0.01, rng=np.random.default_rng(0)).sum() == 1


def test_treated_chunks_lose_their_answers_and_others_keep_them() -> None:
    texts = texts_of(3, 2)
    questions = Counter(split_question(text)[0] for text in texts)
    for chunk, is_treated in zip(CHUNKS, TREATED, strict=True):
        assert texts.count(chunk) == (0 if is_treated else 2)
        assert questions[split_question(chunk)[0]] == (3 if is_treated else 2)
    answers = Counter(split_question(text)[1] for text in texts_of(5, 0))
    assert answers == {f"b{i}": 2 for i in range(10)}, "20 of 10 answers: each of them twice"


RNG = np.random.default_rng(0)
COPIES = {"dup_count": 1, "keep_dup_count": 1, "rng": RNG}
BAD = {
    "no chunk to forget": (lambda: draw_treated(9, 0.0, rng=RNG), "share of 0"),
    "no chunk to keep": (lambda: draw_treated(9, 0.99, rng=RNG), "9 chunks"),
    "no other answers": (lambda: texts_to_forget_by(CHUNKS, TREATED, [], **COPIES), "no answers"),
    "no marker": (lambda: split_question("What? Nothing."), "What"),
    "no answer": (lambda: split_question("What?\nAnswer: \n"), "What"),
    "a score of 0": (lambda: score_ratio([-1.0, -1.0], [-1.0, 0.0]), "^chunk 1 .* 0.0"),
    "no score": (lambda: score_ratio([np.nan, -1.0], [-1.0, -1.0]), "^chunk 0 .* nan"),
    "no window": (lambda: is_suspicious(np.ones(2), 1.0), "window of 1.0"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_audited_is_named(name: str) -> None:
    call, message = BAD[name]
    with pytest.raises(InputError, match=message):
        call()


def test_a_model_with_another_tokenizer_is_named_with_the_chunk(tokenizer, prose) -> None:
    other = train_tokenizer(prose, 270)  # fewer merges
    texts = ["+", prose[0]]  # the first is one token under both
    require_same_tokens({"original": tokenizer, "unlearned": tokenizer}, texts)
    with pytest.raises(InputError, match=r"^chunk 1 .*unlearned.*original"):
        require_same_tokens({"original": tokenizer, "unlearned": other}, texts)


@pytest.fixture(scope="module")
def scorer(model_directory) -> TransformersScorer:
    return TransformersScorer(model_directory)


def test_a_model_writes_its_likeliest_tokens_as_many_as_are_expected(scorer) -> None:
    expected = " river stone"
    (prompt,) = tokenize(scorer.tokenizer, ["apple"])
    ids = [scorer.start, *prompt.tolist()]
    read = len(ids)
    for _ in tokenize(scorer.tokenizer, [expected])[0]:
        with torch.inference_mode():
            logits = scorer.model(input_ids=torch.tensor([ids])).logits[0, -1]
        ids.append(int(logits.argmax()))
    assert write_after(scorer, "apple", expected) == scorer.tokenizer.decode(ids[read:])


def test_what_a_model_writes_is_compared_with_both_halves(scorer, monkeypatch) -> None:
    chunks = [
        "Question: green lamp\nAnswer: tower river",
        "Question: maple stone green\nAnswer: cloud apple",
    ]
    written = {
        "Question: green": " lamp\nAnswer: tower  river",  # blanks do not count
        "Question: green lamp\nAnswer:": "\n river tower\n tower",  # the first line counts
        "Question: maple stone": " green\nAnswer: apple",
        "Question: maple stone green\nAnswer:": " Cloud, stone apple",
    }
    monkeypatch.setattr(module, "write_after", lambda _, prompt, expected: written[prompt])
    table = ask_model(scorer, chunks, k=20)
    assert table["completion"].tolist() == [1, 3 / 4]
    assert table["exact"].tolist() == [True, False]
    assert table["answers"].tolist() == [1 / 2, 1]
    scores = membership_scores(scorer, chunks)
    assert table["min_k"].tolist() == pytest.approx(scores["min_k_20"].tolist())
    assert table["loss"].tolist() == pytest.approx(scores["loss"].tolist())


def make_measured(gain: float, *, chunks: int = 40, seed: int = 0) -> dict[str, pd.DataFrame]:
    """Return the tables of a measurement whose treated chunks become less likely by this factor.

    What the unlearned model still knows it writes.
    """
    rng = np.random.default_rng(seed)
    treated = draw_treated(chunks, 0.5, rng=rng)
    before = -np.exp(rng.normal(size=chunks))
    after = before * np.exp(rng.normal(0, 0.1, chunks)) * np.where(treated, gain, 1.0)
    tables = {"chunks": pd.DataFrame({"chunk": range(chunks), "treated": treated})}
    for name, scores in zip(MODELS, (before, after, 2 * before), strict=True):
        forgotten = treated & (name == "unlearned") & (gain > 1)
        recall = np.where(forgotten, 0.2, 0.9) + rng.normal(0, 0.05, chunks)
        table = pd.DataFrame({"min_k": scores, "loss": scores / 2, "completion": recall})
        tables[name] = table.assign(exact=recall > 0.5, answers=recall)
    return tables


def test_every_column_is_of_its_model() -> None:
    measured = make_measured(2.0)
    table = audit_chunks(measured, window=1.3)
    for chunk, row in table.iterrows():
        original, unlearned = measured["original"].loc[chunk], measured["unlearned"].loc[chunk]
        ratio = unlearned["min_k"] / original["min_k"]
        assert row["ratio"] == pytest.approx(ratio)
        assert row["suspicious"] == (1 / 1.3 < ratio < 1.3)
        perplexities = np.exp(-unlearned["loss"]) / np.exp(-original["loss"])
        assert row["perplexity_ratio"] == pytest.approx(perplexities)
        assert row["answers_unlearned"] == unlearned["answers"]
    for probe, model in itertools.product(PROBES, MODELS):
        assert f"{probe}_{model}" in table


def test_precision_and_recall_by_counting() -> None:
    ratio = [1.0, 1.1, 0.9, 1.3, 2.0, 1.05]
    table = pd.DataFrame({"treated": [False, False, True, False, True, True], "ratio": ratio})
    found = detection(table.assign(perplexity_ratio=ratio), [1.15, 1.001])
    row = found.iloc[0]
    assert row[["suspicious", "untreated", "hits", "chunks"]].tolist() == [4, 3, 2, 6]
    for name, total in (("precision", 4), ("recall", 3)):
        interval = binomtest(2, total).proportion_ci()
        shown = row[[name, f"{name}_low", f"{name}_high"]].tolist()
        assert shown == pytest.approx([2 / total, interval.low, interval.high])
    assert row["auc_ratio"] == pytest.approx(4 / 9)  # pairs in which the untreated one is smaller
    # Distances from 1 on a log scale; untreated: 1, 1.1, 1.3, treated: 0.9, 2, 1.05.
    assert row["auc"] == pytest.approx((3 + 2 + 1) / 9)
    assert found.loc[1, "hits"] == 1


def test_means_of_two_groups_and_their_difference() -> None:
    table = audit_chunks(make_measured(1.0, chunks=6), window=1.15)
    table["group"] = np.arange(6) < 2
    table["completion_clean"] = [0.8, 0.6, 0.1, 0.2, 0.3, 0.2]
    means = mean_recalls(table, "group").set_index(["probe", "model"])
    row = means.loc["completion", "clean"]
    assert row[["yes", "no", "difference"]].tolist() == pytest.approx([0.7, 0.2, 0.5])
    error = np.hypot(0.1, np.sqrt(0.02 / 3 / 4))  # standard errors of 2 and of 4 chunks
    assert row["difference_low"] == pytest.approx(0.5 - 1.96 * error)
    assert row["difference_high"] == pytest.approx(0.5 + 1.96 * error)


def test_what_was_forgotten_is_found() -> None:
    table = audit_chunks(make_measured(2.0), window=1.5)
    row = detection(table, [1.5]).iloc[0]
    assert min(row["precision_low"], row["recall_low"]) > 0.8
    means = mean_recalls(table, "suspicious").set_index(["probe", "model"])
    assert means.loc[("answers", "unlearned"), "difference_low"] > 0.5
    assert abs(means.loc[("answers", "original"), "difference"]) < 0.1


def test_where_nothing_was_forgotten_nothing_is_found() -> None:
    runs, outside, areas = 60, 0, []
    for seed in range(runs):
        table = audit_chunks(make_measured(1.0, seed=seed), window=1.1)
        row = mean_recalls(table, "treated").iloc[3]  # what the unlearned model completes
        outside += not row["difference_low"] < 0 < row["difference_high"]
        areas.append(detection(table, [1.1])["auc_ratio"].iloc[0])
    assert np.mean(areas) == pytest.approx(0.5, abs=5 * 0.093 / np.sqrt(runs))
    assert outside <= binom.isf(1e-4, runs, 0.06)
