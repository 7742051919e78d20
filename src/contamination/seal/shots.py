"""Prompts that show other records of a set, maybe with their published answers.

Texts are compared word by word: blanks, line ends, case and punctuation do not matter.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

MOST_WORDS = 24  # of a record, from its start, by which it is recognised
GAP = 3  # most words between the id of a record and its answer
_WORD = re.compile(r"[a-z0-9_]+|[^\sa-z0-9_\W]")
_END = ""  # key of a tree's node whose words are whole; no word is empty


class Shots:
    """Finds records of a set in prompts: by their texts, or by an id with an answer.

    Parameters
    ----------
    texts : the longest text that every example shows of each record.
    ids : of each record, "" where it has none.
    answers : all right answers of each record, by all their names.
    """

    def __init__(
        self, texts: Sequence[str], ids: Sequence[str], answers: Sequence[Sequence[str]]
    ) -> None:
        self.texts = [words(text)[:MOST_WORDS] for text in texts]
        self.answers = [list(map(words, names)) for names in answers]
        self.by_text: dict[str, Any] = {}
        self.by_id: dict[str, Any] = {}
        for place, shown in enumerate(self.texts):
            _plant(self.by_text, shown, place)
        for place, name in enumerate(ids):
            if is_name(name):
                _plant(self.by_id, words(name), place)

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
        return None

    def _is_answered(self, place: int, following: list[str]) -> bool:
        """Return whether a right answer of a record follows, after at most GAP words."""
        for name in self.answers[place]:
            if name and _holds(following[: GAP + len(name)], name):
                return True
        return False


def words(text: str) -> list[str]:
    """Return the words of a text; letters of other alphabets count one by one.

    >>> words("Das Maß: 3 m")
    ['das', 'mass', '3', 'm']
    """
    unescaped = text.replace("\\n", " ").replace("\\t", " ")
    return _WORD.findall(unescaped.casefold())


def is_name(name: str) -> bool:
    """Return whether an id is recognised in a text: a small number may mean anything.

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
