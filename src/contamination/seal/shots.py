"""Prompts that show other records of a set, maybe with their published answers.

Texts are compared word by word: blanks, line ends, case and punctuation do not matter.
A record is shown where a prompt has its longest texts, as many as tell it from all other
records, or it by its id with an answer. Of each text it takes the first MOST_WORDS words,
or as many as tell it from all other texts. Records whose texts are all the same are not
told apart, and a record without texts is known by its id alone.

An id of fewer than five digits is a number that may mean anything. It counts where a
word such as "id" stands before it. One above MOST_OPTIONS also counts behind "question"
and the like, and where lines of a prompt are numbers and answers alone and show two or
more records; options are numbered in the same way, so smaller ones do not.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import Any

from contamination.testsets.records import ID_FIELDS

MOST_WORDS = 24  # of a text, from its start, by which it is recognised if no other has them
GAP = 3  # most words between the id of a record and its answer
MOST_OPTIONS = 10
# What may stand before the number of a record; prompts count by the latter what they
# ask, too.
MARKS = (*ID_FIELDS, "record")
COUNTING = ("question", "q", "item", "example", "no")
Text = tuple[str, ...]  # the words of a text
_WORD = re.compile(r"[a-z0-9_]+|[^\sa-z0-9_\W]")
_END = ""  # key of a tree's node whose words are whole; no word is empty


class Shots:
    """Finds records of a set in prompts: by their texts, or by an id with an answer.

    Of each record it takes the texts that every example shows, those first by which it is
    told, its id ("" if it has none), and all right answers by all their names.
    """

    def __init__(
        self,
        texts: Sequence[Sequence[str]],
        ids: Sequence[str],
        answers: Sequence[Sequence[str]],
    ) -> None:
        self.texts = [list(map(words, of_record)) for of_record in texts]
        self.answers = [list(map(words, names)) for names in answers]
        telling = _telling(self.texts)
        self.needed = [frozenset(chosen) for chosen in telling]
        self.by_text: dict[str, Any] = {}
        self.by_id: dict[str, Any] = {}
        self.by_number: dict[str, int] = {}
        self.told_by: dict[Text, list[int]] = {}
        for place, chosen in enumerate(telling):
            for text in chosen:
                _plant(self.by_text, text, text)
            for text in chosen[-1:]:
                self.told_by.setdefault(text, []).append(place)
        for place, name in enumerate(ids):
            if is_name(name):
                _plant(self.by_id, words(name), place)
            elif name.isascii() and name.isdigit():
                self.by_number.setdefault(name, place)

    def shown(self, prompt: str, place: int) -> int | None:
        """Return another record that the prompt of a record shows; None if none.

        >>> shots = Shots([["Who wrote Emma?"], ["Who wrote Ulysses?"]], ["", ""], [[], []])
        >>> shots.shown("Who wrote Emma? Austen. Who wrote Ulysses?", place=1)
        0
        """
        read = words(prompt)
        by_text = self._by_text(read, place)
        if by_text is not None:
            return by_text
        for start in range(len(read)):
            for other, end in _planted(self.by_id, read, start):
                following = read[end : end + GAP + MOST_WORDS]
                if other != place and self._is_answered(other, following):
                    return int(other)
        if not self.by_number:
            return None
        marked = self._marked(read, place)
        if marked is not None:
            return marked
        return self._in_lines(prompt, place)

    def is_in(self, text: str, place: int) -> bool:
        """Return whether a text shows a record: all the texts by which it is told."""
        return self.needed[place] <= self._found(words(text))

    def _by_text(self, read: list[str], place: int) -> int | None:
        """Return another record whose texts are read, and not part of the record's own."""
        found = self._found(read)
        others = set(chain.from_iterable(self.told_by.get(text, ()) for text in found)) - {place}
        shown = [other for other in sorted(others) if self.needed[other] <= found]
        if not shown:
            return None
        own = self._found(list(chain.from_iterable(self.texts[place])))
        foreign = [other for other in shown if not self.needed[other] <= own]
        return foreign[0] if foreign else None

    def _found(self, read: list[str]) -> set[Text]:
        """Return all planted texts that stand in what is read."""
        found = set[Text]()
        for start in range(len(read)):
            found.update(text for text, _ in _planted(self.by_text, read, start))
        return found

    def _marked(self, read: list[str], place: int) -> int | None:
        """Return another record whose number follows a mark and precedes its answer."""
        for start, word in enumerate(read):
            other = self.by_number.get(word)
            if start == 0 or other is None or other == place:
                continue
            mark = read[start - 1]
            counts = mark in COUNTING and int(word) > MOST_OPTIONS
            if mark not in MARKS and not counts:
                continue
            after = read[start + 1 : start + 1 + GAP + MOST_WORDS]
            if self._is_answered(other, after):
                return other
        return None

    def _in_lines(self, prompt: str, place: int) -> int | None:
        """Return the first of two or more records shown as lines of number and answer."""
        others = list[int]()
        for line in prompt.replace("\\n", "\n").splitlines():
            number, *rest = words(line) or [""]
            other = self.by_number.get(number)
            if other is None or other == place or int(number) <= MOST_OPTIONS:
                continue
            if any(rest == name for name in self.answers[other] if name):
                others.append(other)
        return others[0] if len(set(others)) > 1 else None

    def _is_answered(self, place: int, following: list[str]) -> bool:
        """Return whether a right answer of a record follows, after at most GAP words."""
        for name in self.answers[place]:
            if name and _holds(following[: GAP + len(name)], name):
                return True
        return False


def words(text: str) -> list[str]:
    """Return the words of a text; letters of other alphabets count one by one.

    >>> words("Was it 3 m?")
    ['was', 'it', '3', 'm']
    """
    unescaped = text.replace("\\n", " ").replace("\\t", " ")
    return _WORD.findall(unescaped.casefold())


def is_name(name: str) -> bool:
    """Return whether an id is recognised wherever it stands: a small number is not.

    >>> [is_name("q-17"), is_name("17"), is_name("10017")]
    [True, False, True]
    """
    return bool(re.search(r"[^\W\d]|\d{5}", name))


def _telling(texts: Sequence[Sequence[list[str]]]) -> list[list[Text]]:
    """Return the texts of each record that tell it from all others, cut to their starts.

    It takes one text after the other until no other record has them all, so the last of
    them belongs to few records.
    """
    starts = _starts(chain.from_iterable(texts))
    holders = dict[Text, set[int]]()
    for place, of_record in enumerate(texts):
        for text in of_record:
            holders.setdefault(starts[tuple(text)], set()).add(place)
    telling = list[list[Text]]()
    for of_record in texts:
        chosen = list[Text]()
        alike = set(range(len(texts)))
        for text in of_record:
            if len(alike) > 1 and text:
                chosen.append(starts[tuple(text)])
                alike &= holders[chosen[-1]]
        telling.append(chosen)
    return telling


def _starts(texts: Iterable[list[str]]) -> dict[Text, Text]:
    """Return the start of each text by which it is told from all others.

    It has MOST_WORDS words, or one more than it shares with another text.
    """
    ordered = sorted({tuple(text) for text in texts})
    shared = [_shared(first, second) for first, second in pairwise(ordered)]
    starts = dict[Text, Text]()
    for text, before, after in zip(ordered, [0, *shared], [*shared, 0], strict=True):
        starts[text] = text[: max(MOST_WORDS, before + 1, after + 1)]
    return starts


def _shared(first: Text, second: Text) -> int:
    """Return how many words two texts share from their start."""
    pairs = enumerate(zip(first, second, strict=False))
    different = (number for number, (left, right) in pairs if left != right)
    return next(different, min(len(first), len(second)))


def _plant(tree: dict[str, Any], path: Sequence[str], planted: object) -> None:
    """Add words to a tree of words, with what they stand for."""
    if not path:
        return
    node = tree
    for word in path:
        node = node.setdefault(word, {})
    node.setdefault(_END, planted)  # one of records with the same id is enough


def _planted(
    tree: dict[str, Any],
    read: Sequence[str],
    start: int,
) -> Iterator[tuple[Any, int]]:
    """Yield what is planted by the words at a place of a text, and where these end."""
    node = tree
    for end in range(start, len(read)):
        child = node.get(read[end])
        if child is None:
            return
        node = child
        if _END in node:
            yield node[_END], end + 1


def _holds(text: Sequence[str], part: Sequence[str]) -> bool:
    """Return whether words stand in others, one after the other."""
    starts = range(len(text) - len(part) + 1)
    return any(text[start : start + len(part)] == part for start in starts)
