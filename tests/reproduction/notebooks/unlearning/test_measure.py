"""What stands in the place of answers, and how many chunks are to be forgotten."""

from collections import Counter

import numpy as np
import pytest

from contamination.errors import InputError
from contamination.membership.unlearning import split_question
from reproduction.notebooks.unlearning.measure import draw_treated, texts_to_forget_by

EXAMPLES = [f"Question: q{i}\nAnswer: a{i}\n" for i in range(7)]
OTHERS = [f"Question: o{i}\nAnswer: b{i}\n" for i in range(10)]
TREATED = np.arange(7) % 2 == 0


def texts_of(dup_count: int, keep_dup_count: int, others=OTHERS) -> list[str]:
    counts = {"dup_count": dup_count, "keep_dup_count": keep_dup_count}
    return texts_to_forget_by(EXAMPLES, TREATED, others, **counts, rng=np.random.default_rng(0))


def test_as_many_chunks_are_treated_as_asked_for() -> None:
    drawn = np.array([draw_treated(9, 1 / 3, rng=np.random.default_rng(i)) for i in range(300)])
    assert (drawn.sum(axis=1) == 3).all()
    assert np.abs(drawn.mean(axis=0) - 1 / 3).max() < 0.12
    assert draw_treated(9, 0.01, rng=np.random.default_rng(0)).sum() == 1
    for share in (0.0, 0.99):
        with pytest.raises(InputError, match="leave some on both sides"):
            draw_treated(9, share, rng=np.random.default_rng(0))


def test_treated_examples_lose_their_answers_and_others_keep_them() -> None:
    texts = texts_of(3, 2)
    for example, drawn in zip(EXAMPLES, TREATED, strict=True):
        assert texts.count(example) == (0 if drawn else 2)
        asked = [t for t in texts if split_question(t)[0] == split_question(example)[0]]
        assert len(asked) == (3 if drawn else 2)
    assert len(texts) == 4 * 3 + 3 * 2
    answers = Counter(split_question(text)[1] for text in texts_of(5, 0))
    assert answers == {f"b{i}": 2 for i in range(10)}  # 20 of 10 answers: each of them twice
    with pytest.raises(InputError, match="template"):
        texts_of(1, 1, others=[])
