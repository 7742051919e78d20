"""Completion, variation and multiple choice: on a model that knows its texts by heart."""

import numpy as np
import pytest

from contamination.errors import InputError
from contamination.membership import generation
from contamination.membership.generation import (
    completion_scores,
    completions,
    generation_variation,
    metadata_gain,
)
from contamination.membership.similarity import rouge_l
from contamination.scoring.loading import ModelSource
from contamination.scoring.local import TransformersScorer
from contamination.testsets.tokens import tokenize


@pytest.fixture(scope="module")
def scorer(trained) -> TransformersScorer:
    return TransformersScorer(ModelSource(str(trained), precision="float32"))


def test_what_was_learnt_comes_back_and_nothing_else_does(scorer, seen_and_unseen):
    seen, unseen = seen_and_unseen
    known, new = (completion_scores(scorer, texts) for texts in (seen, unseen))
    assert list(known) == ["verbatim", "rouge_l_recall", "rouge_l_f1"]
    assert known["verbatim"].mean() > 0.9 and new["verbatim"].mean() == 0
    assert known["rouge_l_f1"].min() > new["rouge_l_f1"].mean() + 0.3


def test_a_completion_is_compared_with_the_rest_of_the_text(scorer, seen_and_unseen):
    text = seen_and_unseen[1][0]
    (ids,) = tokenize(scorer.tokenizer, [text])
    (one,) = completions(scorer, [text], share=0.25, most=5)
    cut = len(ids) // 4
    assert one.expected == scorer.tokenizer.decode(ids[cut : cut + 5])
    assert len(tokenize(scorer.tokenizer, [one.found])[0]) <= 6
    assert one.exact == (one.found == one.expected)
    assert one.rouge_l == rouge_l(one.found, one.expected)


def test_metadata_stands_before_the_prompt(monkeypatch, scorer, seen_and_unseen):
    asked = []

    def written(scorer, prompts, *, new_tokens):
        asked.extend(scorer.tokenizer.decode(ids) for ids in prompts)
        return [[ids[:0]] for ids in prompts]

    text = seen_and_unseen[0][0]
    monkeypatch.setattr(generation, "continuations", written)
    (one,) = completions(scorer, [text], share=0.5, metadata="The set, split test:\n")
    assert asked == [f"The set, split test:\n{text.removesuffix(one.expected)}"]
    assert one.found == "" and not one.exact


def test_the_gain_from_metadata(scorer, seen_and_unseen):
    seen, unseen = seen_and_unseen
    plain = completions(scorer, seen[:4])
    with_it = completions(scorer, seen[:4], metadata=unseen[0][:60])
    gain = metadata_gain(scorer, seen[:4], unseen[0][:60])
    wanted = [a.rouge_l.recall - b.rouge_l.recall for a, b in zip(with_it, plain, strict=True)]
    assert gain.tolist() == wanted
    assert gain.min() < 0
    with pytest.raises(InputError, match="the metadata is empty"):
        metadata_gain(scorer, seen[:4], "")


@pytest.mark.parametrize(
    ("texts", "share", "message"),
    [
        (["one two"], 0.0, "a prompt of 0 of the text"),
        (["one two"], 1.0, "a prompt of 1 of the text"),
        (["one two", "lamp"], 0.5, r"text 1 has 1 token\(s\): a completion needs 2"),
    ],
)
def test_completions_that_cannot_be(scorer, texts, share, message):
    with pytest.raises(InputError, match=message):
        completions(scorer, texts, share=share)


def test_texts_known_by_heart_vary_less(scorer, seen_and_unseen):
    seen, unseen = seen_and_unseen
    arguments = {"share": 0.5, "samples": 8, "new_tokens": 20}
    known = generation_variation(scorer, seen[:8], **arguments)
    new = generation_variation(scorer, unseen[:8], **arguments)
    assert known.mean() > new.mean() + 0.2
    assert (known <= 1).all() and (new >= 0).all()


def test_the_peak_is_the_share_of_samples_near_the_greedy_text(monkeypatch, scorer):
    """CDD by hand: a threshold of 0.25 times the longest of all, which has 8 tokens."""
    greedy = [np.array([1, 2, 3, 4])]
    samples = [
        np.array([1, 2, 3, 4]),  # 0 edits
        np.array([1, 9, 9, 4]),  # 2
        np.array([9, 9, 9, 4]),  # 3
        np.array([1, 2, 3, 4, 5, 6, 7, 8]),  # 4
    ]
    asked = []

    def written(scorer, prompts, *, new_tokens, temperature=0.0, samples=1, seed=0):
        asked.append((len(prompts[0]), new_tokens, temperature, samples, seed))
        return [greedy] if temperature == 0 else [all_samples]

    all_samples = samples
    monkeypatch.setattr(generation, "continuations", written)
    found = generation_variation(scorer, ["lamp stone"], alpha=0.25, seed=7)
    length = len(tokenize(scorer.tokenizer, ["lamp stone"])[0])
    assert asked == [(length, 100, 0.0, 1, 0), (length, 100, 0.8, 50, 7)]
    assert found.tolist() == [0.5]
    assert generation_variation(scorer, ["lamp stone"], alpha=0).tolist() == [0.25]
