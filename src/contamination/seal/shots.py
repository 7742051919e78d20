"""Prompts that show other records of a set, maybe with their published answers.

Texts are compared word by word: blanks, line ends, case and punctuation do not matter.

An id of fewer than five digits is a number that may mean anything. It counts where a
word such as "id" stands before it. One above MOST_OPTIONS also counts behind "question"
and the like, and where lines of a prompt are numbers and answers alone and show two or
more records; options are numbered in the same way, so smaller ones do not.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from contamination.testsets.records import ID_FIELDS

MOST_WORDS = 24  # of a record, from its start, by which it is recognised
GAP = 3  # most words between the id of a record and its answer
MOST_OPTIONS = 10
# What may stand before the number of a record; prompts count by the latter what they
# ask, too.
MARKS = (*ID_FIELDS, "record")
COUNTING = ("question", "q", "item", "example", "no")
_WORD = re.compile(r"[a-z0-9_]+|[^\sa-z0-9_\W]")
_END = ""  # key of a tree's node whose words are whole; no word is empty


class Shots:
    """Finds records of a set in prompts: by their texts, or by an id with an answer.

    Of each record it takes the longest text that every example shows, its id ("" if it
    has none), and all right answers by all their names.
    """

    def __init__(
        self, texts: Sequence[str], ids: Sequence[str], answers: Sequence[Sequence[str]]
    ) -> None:
        self.texts = [words(text)[:MOST_WORDS] for text in texts]
        self.answers = [list(map(words, names)) for names in answers]
        self.by_text: dict[str, Any] = {}
        self.by_id: dict[str, Any] = {}
        self.by_number: dict[str, int] = {}
        for place, shown in enumerate(self.texts):
            _plant(self.by_text, shown, place)
        for place, name in enumerate(ids):
            if is_name(name):
                _plant(self.by_id, words(name), place)
            elif name.isascii() and name.isdigit():
                self.by_number.setdefault(name, place)

    def shown(self, prompt: str, place: int) -> int | None:
        """Return another record that the prompt of a record shows; None if none.

        >>> shots = Shots(["Who wrote Emma?", "Who wrote Ulysses?"], ["", ""], [[], []])
        >>> shots.shown("Who wrote Emma? Austen. Who wrote Ulysses?", place=1)
        0
        """
        read = words(prompt)
        own = self.texts[place]
        for start in range(len(read)):
            for other, _ in _planted(self.by_text, read, start):
                if not _holds(own, self.texts[other]):
                    return other
            for other, end in _planted(self.by_id, read, start):
                following = read[end : end + GAP + MOST_WORDS]
                if other != place and self._is_answered(other, following):
                    return other
        if not self.by_number:
            return None
        marked = self._marked(read, place)
        if marked is not None:
            return marked
        return self._in_lines(prompt, place)

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


def _plant(tree: dict[str, Any], path: Sequence[str], place: int) -> None:
    """Add the words of a record to a tree of words."""
    if not path:
        return
    node = tree
    for word in path:
        node = node.setdefault(word, {})
    node.setdefault(_END, place)  # one of records with the same words is enough


def _planted(
    tree: dict[str, Any],
    read: Sequence[str],
    start: int,
) -> Iterator[tuple[int, int]]:
    """Yield the records whose words stand at a place of a text, and where these end."""
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
