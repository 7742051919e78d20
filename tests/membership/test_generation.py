"""What a model that knows texts writes, and how much of them that is."""

import pytest

from contamination.errors import InputError
from contamination.membership.generation import completion_scores, rouge_l


def test_what_was_learnt_comes_back_and_nothing_else_does(taught, members, non_members):
    known, new = (completion_scores(taught, texts) for texts in (members, non_members))
    assert known["verbatim"].mean() > 0.9 and new["verbatim"].mean() == 0
    assert known["rouge_l_f1"].min() > new["rouge_l_f1"].mean() + 0.3


def test_a_text_without_a_half_is_named(taught):
    with pytest.raises(InputError, match="text 1 "):
        completion_scores(taught, ["one two", "lamp"])


@pytest.mark.parametrize(
    ("found", "expected", "common"),
    [
        ("a b c d", "a x c d", 3),
        ("The CAT, sat!", "the cat sat", 3),
        ("c b a", "a b c", 1),
        ("a b", "", 0),
        ("", "", 0),
    ],
)
def test_rouge_l_counts_words_in_order_whatever_their_case(found, expected, common):
    ours, theirs = len(found.split()), len(expected.split())
    f1 = 2 * common / max(1, ours + theirs)
    assert rouge_l(found, expected) == (common / max(1, theirs), f1)
