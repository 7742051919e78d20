"""The right answer to which a model has committed itself, by what it wrote alone.

`committed` is a function of the text alone: it knows no question, no answer and no
score. `named` compares what it returns with all right answers of the author's list, all
in the same way, whichever of them is published. So given the list, what a model is
taken to have answered depends on the key only as far as its text does: not at all, for
a model that has not read the published set. That is all that the law of hits needs.
Rules that see the published answer, such as a harness's scorers and filters, break it:
of "2, 3 and 6" they take whatever was published.

The rules, in order:

1. What a reasoning model thinks (`<think> ... </think>`, `[THINK] ... [/THINK]`, the
   channel "analysis") is left out; so is all that follows a thought that never ends.
2. Where an answer is declared ("ANSWER: x", "The answer is x", "#### x", `\\boxed{x}`,
   `<answer>x</answer>`), only that counts. Behind "The answer is" it may be the next
   paragraph, and behind a heading "Answer" the last line. Several declarations have to
   name the same answer.
3. Without one, a text of at most MOST_CHARACTERS counts as a whole; a longer one
   commits to none.
4. A right answer is named by a text that is it as a whole, or in which it stands as a
   word, and no other right answer does. A name in a writing without blanks, such as
   Chinese, stands anywhere. Not where the text denies something ("not",
   "neither", "except"), nor as an entry of a list ("2 and 4", "ash or elm"), nor, if it
   is a number or the letter of an option, beside another number or letter.
"""

import re
from collections.abc import Sequence, Set

MOST_CHARACTERS = 200
_TAGS = r"think|thinking|reasoning"
_THOUGHT = re.compile(
    rf"[<\[]({_TAGS})[>\]].*?(?:[<\[]/\1[>\]]|\Z)"
    r"|<\|channel\|>analysis\b.*?(?=<\|channel\|>final\b|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_END_OF_THOUGHT = re.compile(
    rf"[<\[]/(?:{_TAGS})[>\]]|<\|channel\|>final[^<]*<\|message\|>",
    re.IGNORECASE,
)
# Each part stops at the end of a line, or skips lines without letters and digits, so that a
# text is read in time proportional to its length.
_ANSWER = r"[^\w\n]*(?:(?:my|the|final|correct|right|best)[^\S\n]+)*answer[^\w\n:=]*"
_HERE = r"([^\w\n]*\w.*)"
_BELOW = r"(?:[^\w\n]*\n)+([^\w\n]*\w.*(?:\n[^\S\n]*\S.*)*)"  # a paragraph
_DECLARED = re.compile(
    rf"^{_ANSWER}(?:[:=]|\bis\b){_HERE}"
    r"|\b(?:final|correct|right|best|the|my)\s+answer\s+(?:is|would\s+be|must\s+be)\b"
    rf"(?:{_HERE}|{_BELOW})"
    r"|^[^\S\n]*####(.+)$"
    r"|\\boxed\{((?:[^{}]|\{[^{}]*\})*)\}"
    r"|<answer>([^<]*)</answer>",
    re.IGNORECASE | re.MULTILINE,
)
_HEADING = re.compile(rf"{_ANSWER}[:=]?[^\w\n]*", re.IGNORECASE)
_WORD = re.compile(r"\w")
# Thai, Lao, Burmese, Khmer, Kana and Han, which are written without blanks.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_NO_BLANK = re.compile(f"[{_UNSPACED}]")
_BEFORE = rf"(?<![^\W{_UNSPACED}])"  # no word of an alphabet with blanks goes on here
_AFTER = rf"(?![^\W{_UNSPACED}]|\.\w)"
_DENIED = re.compile(
    r"\b(?:not|neither|nor|except|never)\b|n['’]t\b"
    "|不是|不会|不會|并非|並非|没有|沒有|ではない|じゃない|ではありません|ไม่",
    re.IGNORECASE,
)
_ENTRY_BEFORE = re.compile(r"(?:\b(?:and|or|nor)|[,;/&、和或与與及])\s*$", re.IGNORECASE)
_ENTRY_AFTER = re.compile(
    r"\s*(?:(?:,\s*)?(?:and|or|nor)\b|[;/&]\s*\w|,[^,]*(?:,|\band\b|\bor\b)|[、和或与與及])",
    re.IGNORECASE,
)
# An answer, with the marks of Chinese and Japanese.
_AROUND = " .,;:!?\"'`*()[]$\u3001\u3002\u300c\u300d\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f"
_WHOLE_NUMBER = re.compile(r"([+-]?[0-9]+)\.0+")
_NUMBER = re.compile(r"\d(?:[\d.,]*\d)?")
# Of an option: neither "I" nor the article.
_LETTER = re.compile(rf"{_BEFORE}(?<!['’])(?:A(?!\s+[a-z])|[B-HJ-Z])(?!['’]){_AFTER}")


def committed(completion: str) -> tuple[str, ...]:
    """Return the texts in which a completion commits itself to an answer.

    >>> committed("It cannot be 4. The answer is 6")
    ('6',)
    """
    text = _without_thoughts(completion).strip()
    declared = [_first(match.groups()) for match in _DECLARED.finditer(text)]
    lines = [line for line in text.split("\n") if _WORD.search(line)]
    if len(lines) > 1 and _HEADING.fullmatch(lines[-2]):
        declared.append(lines[-1])
    different = dict.fromkeys(_line(each) for each in declared if _WORD.search(each))
    if different:
        return tuple(different)
    if text and len(text) <= MOST_CHARACTERS:
        return (_line(text),)
    return ()


def named(completion: str, names: Sequence[Set[str]]) -> int | None:
    """Return the right answer to which a completion commits itself, by its number.

    None if it commits itself to none or to several.

    Parameters
    ----------
    completion
        The whole text that the model wrote.
    names
        The names of each right answer, as `said` returns them; no name belongs to two
        answers.

    >>> named("The answer is elm.", [{"ash"}, {"elm"}])
    1
    >>> named("ash or elm", [{"ash"}, {"elm"}]) is None
    True
    """
    whole = _whole(completion, names)
    if whole is not None:
        return whole
    picks = {_named_in(text, names) for text in committed(completion)}
    if len(picks) != 1:
        return None
    return picks.pop()


def said(text: str) -> str:
    """Return an answer without what does not change it: case, blanks, punctuation.

    A whole number is that without a point, which tables write where a cell is empty.

    >>> said(" The  Elm. ")
    'the elm'
    >>> said("2.0")
    '2'
    """
    answer = _line(text).casefold().strip(_AROUND)
    whole = _WHOLE_NUMBER.fullmatch(answer)
    return answer if whole is None else whole[1]


def count_mentions(name: str, text: str) -> int:
    """Return how often a name stands in a text as a word; a letter as a capital alone.

    >>> count_mentions("ash", "Ash, or ashes?")
    1
    """
    return len(_pattern(name).findall(text)) if name else 0


def _without_thoughts(text: str) -> str:
    """Return what a model wrote after it thought, or instead of it."""
    text = _THOUGHT.sub("", text)
    return _END_OF_THOUGHT.split(text)[-1]  # a prompt may have opened the thought


def _first(groups: Sequence[str | None]) -> str:
    return next((group for group in groups if group is not None), "")


def _line(text: str) -> str:
    return " ".join(text.split())


def _whole(text: str, names: Sequence[Set[str]]) -> int | None:
    """Return the right answer that a text is as a whole; None if it is none."""
    answer = said(text)
    for pick, names_of_answer in enumerate(names):
        if answer in names_of_answer:
            return pick
    return None


def _named_in(text: str, names: Sequence[Set[str]]) -> int | None:
    """Return the one right answer that a committed text is, or names."""
    whole = _whole(text, names)
    if whole is not None:
        return whole
    if _DENIED.search(text):
        return None
    picks = []
    for pick, names_of_answer in enumerate(names):
        if any(_match(name, text) for name in names_of_answer):
            picks.append(pick)
    if len(picks) != 1:
        return None
    stands_alone = any(_alone(name, text) for name in names[picks[0]])
    return picks[0] if stands_alone else None


def _match(name: str, text: str) -> re.Match[str] | None:
    """Return where a name stands in a text as a word; a letter as a capital alone."""
    return _pattern(name).search(text) if name else None


def _pattern(name: str) -> re.Pattern[str]:
    if _is_letter(name):
        return re.compile(rf"{_BEFORE}(?<!\.){name.upper()}{_AFTER}")
    before = "" if _NO_BLANK.match(name[0]) else rf"{_BEFORE}(?<!\.)"
    after = "" if _NO_BLANK.match(name[-1]) else _AFTER
    return re.compile(before + re.escape(name) + after, re.IGNORECASE)


def _alone(name: str, text: str) -> bool:
    """Return whether a name is the only answer of a text, and no entry of a list."""
    match = _match(name, text)
    if match is None:
        return False
    if _is_letter(name):
        return set(_LETTER.findall(text)) <= {name.upper()}
    if _NUMBER.fullmatch(name):
        return set(_NUMBER.findall(text)) == {name}
    before = text[: match.start()]
    after = text[match.end() :]
    return not _ENTRY_BEFORE.search(before) and not _ENTRY_AFTER.match(after)


def _is_letter(name: str) -> bool:
    return len(name) == 1 and name.isascii() and name.isalpha()
