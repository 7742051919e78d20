"""Ratios and their window, edges included; probes that find what is planted, and controls."""

import numpy as np
import pytest

from contamination.errors import InputError
from contamination.membership.api import membership_scores
from contamination.membership.generation import completion_scores
from contamination.membership.probes import (
    answer_recall,
    chunk_scores,
    probe_model,
    split_question,
)
from contamination.membership.unlearning import (
    WINDOW,
    audit_unlearning,
    is_suspicious,
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


def test_the_window_is_the_same_both_ways() -> None:
    rng = np.random.default_rng(0)
    before, after = -rng.uniform(1, 2, (2, 200))
    one, other = (is_suspicious(score_ratio(*pair)) for pair in ((before, after), (after, before)))
    assert 20 < one.sum() < 180
    assert (one == other).all()


def test_scores_and_windows_that_cannot_be() -> None:
    for bad in (0.0, 0.5, -np.inf, np.nan):
        for pair in (([-1, bad], [-1, -1]), ([-1, -1], [-1, bad])):
            with pytest.raises(InputError, match="chunk 1 has score"):
                score_ratio(*pair)
    with pytest.raises(InputError, match="of the same chunks"):
        score_ratio([-1.0], [-1.0, -2.0])
    for window in (1.0, 0.5, np.nan):
        with pytest.raises(InputError, match="give a number above 1"):
            is_suspicious([1.0], window=window)


def test_a_question_is_cut_behind_the_marker() -> None:
    assert split_question("Question: a\nAnswer: b c\n") == ("Question: a\nAnswer:", "b c")
    assert split_question("Q: a A: b A: c", " A:") == ("Q: a A:", "b A: c")
    for text in ("Question: a\n", "Question: a\nAnswer: \n"):
        with pytest.raises(InputError, match="no answer after"):
            split_question(text)


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

    monkeypatch.setattr("contamination.membership.probes.continuations", written)
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


def test_a_model_beside_itself_has_moved_nowhere(run) -> None:
    models, chunks, _ = run
    same = {"original": models["original"], "unlearned": models["original"]}
    table = audited(same, chunks)
    assert table["ratio"].tolist() == [1.0] * 6
    assert table["suspicious"].all()
    assert not [name for name in table if str(name).startswith("answers")]


def test_input_that_cannot_be(run) -> None:
    models, chunks, _ = run
    with pytest.raises(InputError, match="`original` and `unlearned`"):
        audited({"original": models["original"]}, chunks)
    with pytest.raises(InputError, match="at least one chunk"):
        audited(models, [])
    with pytest.raises(InputError, match="questions of 1 chunks, and there are 6"):
        audited(models, chunks, questions=[[]])
    with pytest.raises(InputError, match="a window of 1"):
        audited(models, chunks, window=1)
    with pytest.raises(InputError, match="chunk 1 has 0 token"):
        chunk_scores(models["original"], [chunks[0], ""])
