import re
from collections import Counter

import numpy as np
import pytest

from contamination.errors import InputError
from contamination.membership.neighbours import word_neighbours

TEXT = "one two\nthree  four five six seven eight nine ten eleven twelve"


def neighbours(text: str, count: int, seed: int = 0) -> list[str]:
    return word_neighbours(text, count, rng=np.random.default_rng(seed))


def test_a_neighbour_swaps_or_leaves_out_one_word_in_ten():
    kinds = Counter()
    for made in neighbours(TEXT, 300):
        assert made != TEXT
        before, after = TEXT.split(), made.split()
        missing = Counter(before) - Counter(after)
        assert not Counter(after) - Counter(before)
        kinds[sum(missing.values())] += 1
        if not missing:  # a swap: exactly two places differ, and they are next to each other
            (i, j) = (i for i in range(12) if before[i] != after[i])
            assert j == i + 1
            assert re.findall(r"\s+", made) == re.findall(r"\s+", TEXT)
    assert kinds.keys() == {0, 1}
    assert 100 < kinds[0] < 200


def test_longer_texts_change_in_more_places():
    text = " ".join(f"w{i}" for i in range(100))
    changed = [
        sum(a != b for a, b in zip(text.split(), made.split(), strict=True))
        for made in neighbours(text, 400)
        if len(made.split()) == 100
    ]
    lost = [100 - len(made.split()) for made in neighbours(text, 50)]
    assert max(lost) <= 10 and np.mean(lost) > 3
    assert all(c <= 20 for c in changed)


def test_the_seed_decides():
    assert neighbours(TEXT, 5) == neighbours(TEXT, 5)
    assert neighbours(TEXT, 5) != neighbours(TEXT, 5, seed=1)
    assert len(set(neighbours(TEXT, 5))) > 1


def test_spaces_around_a_text_stay():
    for made in neighbours("  one two  ", 20):
        assert made.startswith("  ") and made.endswith("  ")


@pytest.mark.parametrize("text", ["word", " word\n", "", "  "])
def test_a_single_word_has_no_neighbour(text):
    with pytest.raises(InputError, match="one word and so no neighbour"):
        neighbours(text, 1)
