"""Labels, other options and numbers that texts of options and other fields name.

Options are compared as a set: no result depends on the order in which they stand.
"""

import re
from collections.abc import Sequence
from typing import Any, Literal

from contamination.testsets.records import ID_FIELDS

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
NUMBERS = tuple(map(str, range(27)))
ROMAN = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X")
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "last")
# "(A) ", "A. ", "[A] ", "**A** ", "A - ", "A.x", "A lamp", "ii) "; 1.5 and 1:30 have no
# label.
_LABEL = re.compile(
    r"[\W_]*(?:(?i:option|choice|answer)[\W_]*)?(?:([A-Za-z]|[IVX]{1,4}|[ivx]{1,4})"
    r"(?:[]).:*_>|、．｜]+|\s+[-–—](?=\s)|[\s/–—-]+(?=\w\w))"
    r"|(\d{1,2})(?:[]).:*_>|、]+(?=\s|[^\W\d])|\s+[-–—]\s+(?=[^\W\d])))\s*"
)
_LETTER = re.compile(
    r"\b(?i:options?|answers?|choices?)\b\s*(?i:is|are|was|:|=)?\s*[(\[*\"']{0,3}"
    r"([A-Z]|\d{1,2}|[a-z](?=[)\]*\"']))(?!\w)"
    rf"|\b(?i:(?:{'|'.join(ORDINALS)}) (?:option|choice|answer))\b"
)
_LETTER_ALONE = re.compile(
    r"(?<!\w)[(\[]([A-Za-z])[)\]]|(?:\*\*\(?|[{]|#### ?)([A-Z])\b|\b([A-Z]) (?:is|was) (?:the )?"
    r"(?:in)?(?:correct|right|wrong|false|true|best)\b"
)
# Options that are about the others, and those that custom puts last.
ABOUT_OTHERS = re.compile(
    r"^\W*(all|any|both|either|neither|none|one|two|three|each|some|most)( or more| the)?"
    r"( of)?( the)?( other| remaining)? "
    r"(above|below|these|those|them|options?|answers?|choices?|statements?|alternatives?|following)\b"
    r"|^\W*(all|any|both|either|neither|none|nothing|other|others|unknown|n/?a)\W*$"
    r"|^\W*(all|both|neither|none)( answers| options)? (is|are) (correct|true|false|wrong|right)\b"
    r"|\b(all|any|both|either|none|neither|some|more than one|two) of (the )?above\b"
    r"|\b(not enough|not sufficient|insufficient) information\b"
    r"|\b(cannot|can not|can't|impossible to) (be )?"
    r"(determined?|said|say|tell|told|known?|inferred|predicted|answered)\b"
    r"|^\W*(it |this )?(depends|varies)\W*$|^\W*no (correct |right )?answer\b"
    r"|^\W*((i|we) )?(don'?t|do not) know\W*$|^\W*not (sure|given|known|stated|applicable)\W*$"
    r"|^\W*i have no comment\W*$",
    re.IGNORECASE,
)
# Letters, numerals or numbers of other options, or of statements: "A and C", "(i)
# only", "2, 3".
_NAME = r"\(?(?:[A-J]|[a-j](?=[),. ]|$)|[IVXivx]{1,4}|\d)\)?\.?"
NAMES_OTHERS = re.compile(
    rf"^\W*(([Bb]oth|[Nn]either|[Ee]ither|[Oo]nly|[Ss]tatements?|[Oo]ptions?|[Aa]nswers?|[Cc]hoices?)[\s:]+)*"
    rf"{_NAME}(\s*(,|and|or|nor|&|/|\+)+\s*{_NAME})*(\s+(only|alone|above|are correct))?\W*$"
    r"|\b([Oo]ptions?|[Aa]nswers?|[Cc]hoices?|[Ss]tatements?) \(?([A-J]|[IVX]{1,4}|\d)\b"
    r"|\b([Bb]oth|[Nn]either|[Ee]ither) \(?[A-Ja-j]\)? (and|or|nor) \(?[A-Ja-j]\)?(\W|$)"
)
_WORDS_OF_NUMBERS = (
    "zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen"
    "|sixteen|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
    "|hundreds?|thousands?|millions?|billions?|trillions?|half|quarter|once|twice|first|second"
    "|third|fourth|fifth|january|february|march|april|may|june|july|august|september|october"
    "|november|december|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|am|pm|bce?|ad|ce"
)
_NUMBER = re.compile(rf"\d|\b({_WORDS_OF_NUMBERS})\b", re.IGNORECASE)
# Words that accompany names of options: "option_2", "both A and C", "the second".
_ACCOMPANYING_WORDS = {
    "option",
    "options",
    "choice",
    "choices",
    "answer",
    "answers",
    "ending",
    "sol",
    "op",
    "and",
    "or",
    "both",
    "the",
    "is",
    "correct",
}
_WORD = re.compile(r"[^\W\d_]+|\d+")


def begin_with_labels(options: Sequence[str]) -> bool:
    """Return whether options begin with labels, each with its own: "(A)", "1.", "b)".

    One may have none ("none of these"). In whatever order: what is decided by this must
    not depend on the published one.
    """
    labels: set[str] = set()
    for match in filter(None, map(_LABEL.match, options)):
        labels.add("".join(filter(None, match.groups())).upper())
    if len(labels) < max(2, len(options) - 1):
        return False
    schemes = (LETTERS, NUMBERS, NUMBERS[1:], ROMAN)
    return any(labels <= {*scheme[: len(options)]} for scheme in schemes)


def names_letter(text: str, count: int, *, alone: bool = True) -> bool:
    """Return whether a text names an option: "option B", or "the first option".

    If `alone`, "(B)" counts, too. The text is a question, or a field beside `count`
    options.
    """
    known = {*LETTERS[:count], *NUMBERS[1 : count + 1]}
    matches = list(_LETTER.finditer(text))
    if alone:
        matches += _LETTER_ALONE.finditer(text)
    for match in matches:
        name = next(filter(None, match.groups()), None)
        if name is None or name.upper() in known:  # None: an ordinal
            return True
    return False


def are_numbers(options: Sequence[str]) -> bool:
    """Return whether options differ in numbers, amounts or dates alone."""
    units = {_unit(option) for option in options}
    return len(units) == 1 and all(map(_NUMBER.search, options))


def _unit(option: str) -> tuple[str, ...]:
    """Return the words of an option that are no numbers, without the s of a plural."""
    words = re.findall(r"[^\W\d_]+", option.casefold())
    others = [word for word in words if not re.fullmatch(_WORDS_OF_NUMBERS, word)]
    return tuple(word.removesuffix("s") for word in others)


def to_declare(
    name: str, value: Any, options: Sequence[str], labels: Sequence[Any], *, tells_apart: bool
) -> Literal["answer", "options"] | None:
    """Return the declaration of a field that looks as if it followed the options; None of others.

    It has an entry for each option, or words that name or repeat options and no others:
    "(B)", "option_2", "A, C", "AC", "0100", "B. river", or a list of such. Labels are
    those of the options in the record; `tells_apart` says whether the field is an id
    that tells the records apart.
    """
    count = len(options)
    numbered = {*labels, *NUMBERS[: count + 1]}
    if isinstance(value, bool):
        return "answer" if count == 2 else None  # a flag of one of two options
    by_label = "." in name and name.rpartition(".")[2] in numbered
    parts = value if isinstance(value, list) else re.split(r"[|\t]", str(value))
    if by_label or len(parts) == count:
        return "options"
    if re.fullmatch(f"[01]{{{count}}}", str(value).strip()):
        return "answer"
    if tells_apart and str(value).strip().isdigit():
        return None  # the number of a record, which may be that of an option by chance
    names = " ".join((*numbered, *LETTERS[:count], *ROMAN[:count], *ORDINALS, *options))
    known = {*_WORD.findall(names.casefold())}
    letters = {*LETTERS[:count].lower()}
    words = {*_WORD.findall(str(value).casefold())} - _ACCOMPANYING_WORDS
    if words and all(word in known or {*word} <= letters for word in words):
        return "answer"
    return None


def tells_apart(name: str, values: Sequence[str], most_options: int) -> bool:
    """Return whether a field, by its values in all records, is an id that tells them apart.

    It differs between them, or has more values than an item has options: a field with
    fewer may name options, whatever it is called.
    """
    different = len(set(values))
    return name in ID_FIELDS and (different == len(values) or different > most_options)
