"""Up to which size a model was found to give the same numbers where a prefix is shared.

Each scorer remembers it: sharing is tried once, and again for larger pieces alone.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from contamination.scoring.local import TransformersScorer

# (span, width) up to which sharing was found to give the right numbers; None where it
# does not.
Agreed = tuple[int, int] | None
UNTRIED: Agreed = (0, 0)
ANY_SIZE: Agreed = (sys.maxsize, sys.maxsize)
_agreed: "WeakKeyDictionary[TransformersScorer, Agreed]" = WeakKeyDictionary()


def agreed_size(scorer: "TransformersScorer") -> Agreed:
    """Return the size up to which sharing agrees, None if it does not."""
    return _agreed.get(scorer, UNTRIED)


def remember(scorer: "TransformersScorer", size: Agreed) -> None:
    """Keep the size up to which sharing agrees, None if it does not."""
    _agreed[scorer] = size


@contextmanager
def taken_for_granted(scorer: "TransformersScorer") -> Iterator[None]:
    """Share prefixes of any size without a trial, for the clock alone.

    What was known before is known again afterwards: the trials of a run, and so its
    numbers, do not depend on whether a forecast came first.
    """
    before = agreed_size(scorer)
    if before is not None:
        remember(scorer, ANY_SIZE)
    try:
        yield
    finally:
        remember(scorer, before)
