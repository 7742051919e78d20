"""The variants of each record as token ids: what all share, and how each goes on."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerBase

from contamination.errors import InputError
from contamination.testsets.tokens import CHUNK, tokenize

if TYPE_CHECKING:
    from contamination.testsets.variants import VariantSet


class TokenRows(Sequence[np.ndarray]):
    """Token sequences end to end in one array: a million short arrays fill the memory.

    >>> rows = TokenRows([np.array([5, 6]), np.array([7])])
    >>> len(rows), rows[1].tolist()
    (2, [7])
    """

    def __init__(self, rows: Sequence[np.ndarray]) -> None:
        lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        self._ends = np.cumsum(lengths)
        self._tokens = np.concatenate(rows)

    def __len__(self) -> int:
        """Return the number of sequences."""
        return len(self._ends)

    @overload
    def __getitem__(self, number: int) -> np.ndarray: ...
    @overload
    def __getitem__(self, number: slice) -> list[np.ndarray]: ...
    def __getitem__(self, number: int | slice) -> np.ndarray | list[np.ndarray]:
        """Return one sequence, or several."""
        if isinstance(number, slice):
            return [self[place] for place in range(*number.indices(len(self)))]
        place = range(len(self))[number]
        start = self._ends[place - 1] if place else 0
        return self._tokens[start : self._ends[place]]


class Group(NamedTuple):
    """A prefix and its continuations, token ids: a record's variants, or an example's successors.

    Attributes
    ----------
    record
        Index in the set, of the record or of the predecessor.
    prefix
        Common beginning of all variants, shorter than any of them; or the predecessor.
    rests
        The distinct continuations, at least one token each.
    which
        The continuation of each of the N variants, (N,), the published one first.
    """

    record: int
    prefix: np.ndarray
    rests: Sequence[np.ndarray]
    which: Sequence[int] | NDArray[np.int32]


@lru_cache(maxsize=1)  # planned and scored one after the other
def token_groups(
    tokenizer: PreTrainedTokenizerBase,
    variants: "VariantSet",
) -> tuple[Group, ...]:
    """Return the tokens of the records that have more than one variant, in order.

    Texts of some records are in memory at a time. Raises InputError if a variant has no
    token.
    """
    groups: list[Group] = []
    texts: dict[int, tuple[str, ...]] = {}
    characters = 0
    for record, count in enumerate(variants.distinct):
        if count == 1:
            continue
        texts[record] = variants.texts[record]
        characters += sum(map(len, texts[record]))
        if characters >= CHUNK:
            groups += _groups_of(tokenizer, texts, variants.name)
            texts = {}
            characters = 0
    groups += _groups_of(tokenizer, texts, variants.name)
    return tuple(groups)


def _groups_of(
    tokenizer: PreTrainedTokenizerBase,
    texts: Mapping[int, Sequence[str]],
    name: str,
) -> list[Group]:
    """Return the groups of some records of a set, by the texts of their variants."""
    distinct = list(dict.fromkeys(chain.from_iterable(texts.values())))
    ids = dict(zip(distinct, tokenize(tokenizer, distinct), strict=True))
    groups: list[Group] = []
    for record, of_record in texts.items():
        rows = [ids[text] for text in of_record]
        if min(map(len, rows)) == 0:
            raise InputError(
                f"{name}, record {record + 1}: an alternative has no token; end the "
                "template with a separator"
            )
        groups.append(_group(record, rows))
    return groups


def _group(record: int, rows: Sequence[np.ndarray]) -> Group:
    """Return the group of one record, of which these are the variants."""
    common = shared_beginning(rows)
    rests: list[np.ndarray] = []  # the distinct ones, in the order of the variants
    numbers: dict[bytes, int] = {}
    which: list[int] = []
    for row in rows:
        rest = row[common:]
        content = rest.tobytes()
        if content not in numbers:
            numbers[content] = len(rests)
            rests.append(rest)
        which.append(numbers[content])
    prefix = rows[0][:common].copy()  # a view would keep the whole row
    return Group(record, prefix, TokenRows(rests), np.array(which, dtype=np.int32))


def shared_beginning(rows: Sequence[np.ndarray]) -> int:
    """Return how many tokens all rows begin with, of all but the last token of each.

    >>> shared_beginning([np.array([5, 6, 7]), np.array([5, 6])])
    1
    """
    shortest = min(map(len, rows)) - 1
    for position in range(shortest):
        if len({int(row[position]) for row in rows}) > 1:
            return position
    return shortest
