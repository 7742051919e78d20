"""Templates: how a record becomes the text of an example.

A template is text with {field}. A field is named as its record has it, dots, digits and
all: `{answers.text}`, `{0}`. What lies within one is `{question[stem]}` or
`{question.stem}`, `{choices[0]}`, or of each entry of a list `{messages[content]}`;
`{choices:, }` joins a list.
"""

import math
import re
import string
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from contamination.errors import InputError
from contamination.testsets.records import Record, are_mappings

# name/version -> how a record becomes the text of an example. The final newline is the
# separator, tokenised with the example. A changed template gets a new version: stores
# are keyed by it.
TEMPLATES = {
    "text/1": "{text}\n",
    "line/1": "{line}\n",  # of its file: see `open_test_set`
    "signature/1": "{name}{signature}: {summary}\n",
    "question/1": "Question: {question}\nAnswer: {answer}\n",
    "parameter/1": "{function}, argument {parameter} ({type}): {description}\n",
    "entry/1": "{name}\n{text}\n\n",
    "choices/1": "Question: {question}\n{choices[text]:\n}\nAnswer: {answerKey}\n",
    "choices/2": "Question: {question}\n{choices:\n}\nAnswer: {answer}\n",
    "boolq/1": "{passage}\nQuestion: {question}?\nAnswer: {answer}\n",
    "hellaswag/1": "{ctx} {endings[0]}\n",
    "openbookqa/1": "{question[stem]}\n{answerKey}\n",
    "openbookqa/2": "{question_stem}\n{choices[text]:\n}\nAnswer: {answerKey}\n",
    "naturalquestions/1": "Question: {question}?\nAnswer: {answer[0]}\n",
    "messages/1": "{messages[content]:\n}\n",
    "mnli/1": "{sentence1}\n{sentence2}\n{gold_label}\n",
    "mnli/2": "{premise}\n{hypothesis}\n{label}\n",
    "truthfulqa/1": "{prompt}{completion}\n",
    "truthfulqa/2": "Q: {question}\nA: {best_answer}\n",
    "piqa/1": "{goal}\n{sol1}\n{sol2}\n",
    "mmlu/1": "{input}\nA. {A}\nB. {B}\nC. {C}\nD. {D}\nAnswer: {target}\n",
    "mmlu/2": "{question}\nA. {choices[0]}\nB. {choices[1]}\n"
    "C. {choices[2]}\nD. {choices[3]}\nAnswer: {answer}\n",
}
MOST_SHOWN = 200  # characters of a template, or of names of fields, in a message
MOST_FIELDS = 1_000
MOST_PADDING = 1_000  # characters that a format may pad a field to
MOST_DIGITS = 9  # of a place in a list
LONGEST_TEXT = 5_000_000  # characters of an example; War and Peace has three million
_NAME = re.compile(r"[^\[]+(\[[^]]*\])*")
_BRACED = re.compile(r"\{\s*([^{}]+?)\s*\}")


class Field(NamedTuple):
    """A field of a template: its name, and the format of Python for its value."""

    name: str
    specification: str = ""
    conversion: str | None = None

    @property
    def typed(self) -> str:
        """All that stands between the braces."""
        conversion = f"!{self.conversion}" if self.conversion else ""
        specification = f":{self.specification}" if self.specification else ""
        return f"{self.name}{conversion}{specification}"


class Template(NamedTuple):
    """A template that was checked.

    Attributes
    ----------
    name
        Name of the template in stores.
    pattern
        Text of the template, with {field}.
    parts
        A text and the field after it, in turn; None where there is none.
    braced
        Contents of doubled braces, which are literal text, whatever fields the record
        has.
    """

    name: str
    pattern: str
    parts: tuple[tuple[str, Field | None], ...]
    braced: tuple[str, ...]

    @property
    def listed(self) -> tuple[Field, ...]:
        """The fields, in order."""
        return tuple(field for _, field in self.parts if field is not None)

    @property
    def fields(self) -> frozenset[str]:
        """Names of fields of the record that it shows, or of which it shows an entry."""
        return frozenset(field.name.partition("[")[0] for field in self.listed)

    @property
    def described(self) -> str:
        """The name of the template in messages."""
        return f"template {self.name[:MOST_SHOWN]!r}"


@cache
def parse(template: str) -> Template:
    r"""Return a template that was checked, of its name, a field, or its text.

    Raises InputError if it cannot be used.

    Examples
    --------
    >>> parse("question/1").pattern
    'Question: {question}\nAnswer: {answer}\n'
    >>> sorted(parse("{question[stem]} {answer}").fields)
    ['answer', 'question']
    """
    pattern = TEMPLATES.get(template, template)
    if "{" not in pattern and "/" in pattern:
        raise InputError(
            f"unknown template {template!r}: give text, or {', '.join(TEMPLATES)}",
        )
    if "{" not in pattern:  # a field
        template = pattern = f"{{{template}}}\n"
    described = f"template {pattern[:MOST_SHOWN]!r}"
    parts = list[tuple[str, Field | None]]()
    try:
        for text, name, specification, conversion in string.Formatter().parse(pattern):
            field = None
            if name is not None:
                field = Field(name, specification or "", conversion)
            parts.append((text, field))
    except ValueError as error:
        raise InputError(f"{described}: {error}; write {{{{ for a brace") from error
    literal = "".join(text if field is None else f"{text}\0" for text, field in parts)
    braced = tuple(_BRACED.findall(literal))
    parsed = Template(template, pattern, tuple(parts), braced)
    for field in parsed.listed:
        if not _NAME.fullmatch(field.name) or "{" in field.specification:
            raise InputError(
                f"{described}: {{{field.name}}} is no field, or has one in its format; write "
                "{field[key]} or {field[0]}"
            )
        if _pads_far(field.specification):
            raise InputError(
                f"{described}: {{{field.typed[:MOST_SHOWN]}}} pads to more than {MOST_PADDING:,} "
                "characters; write a smaller number"
            )
    if not parsed.listed:
        raise InputError(
            f"{described} has no field, and would make all examples one text; write "
            f"{_with_single_braces(pattern)}"
        )
    if len(parsed.listed) > MOST_FIELDS:
        raise InputError(
            f"{described}: {len(parsed.listed):,} fields; give {MOST_FIELDS:,} at most",
        )
    return parsed


def _pads_far(specification: str) -> bool:
    """Whether a format has a number above MOST_PADDING."""
    most_digits = len(str(MOST_PADDING))
    for digits in re.findall(r"\d+", specification):
        number = digits.lstrip("0")
        if len(number) > most_digits or int(number or 0) > MOST_PADDING:
            return True
    return False


def render(records: Sequence[Record], template: str, where: str) -> tuple[str, ...]:
    r"""Return the text of each record, by the name or text of a template, or by a field.

    Messages call the source of the records `where`. Raises InputError for a template
    that cannot be used, and for the first record that it does not fit.

    Examples
    --------
    >>> records = [("line 1", {"question": "Who?", "options": ["a cat", "a dog"]})]
    >>> render(records, "{question} {options[0]}\n", where="set.jsonl")
    ('Who? a cat\n',)
    """
    parsed = parse(template)
    texts: list[str] = []
    for place, record in records:
        texts.append(_text(record, parsed, f"{where}, {place}"))
    return tuple(texts)


def kept_text(text: str, where: str) -> str:
    """Return a text; InputError if it is too long or holds half a character."""
    if len(text) > LONGEST_TEXT:
        raise InputError(
            f"{where}: {len(text):,} characters; cut it to {LONGEST_TEXT:,} at most",
        )
    return whole_characters(text, where)


def whole_characters(text: str, where: str) -> str:
    """Return a text; InputError if it holds half a character, which no file can keep."""
    half = re.search("[\ud800-\udfff]", text)
    if half is not None:
        raise InputError(
            f"{where}: {half[0]!a} is half of a surrogate pair; write the character itself"
        )
    return text


def no_text(value: Any) -> str | None:
    """Return what a value, or one within it, is that no text can show.

    Return None if all of it can be shown.
    """
    if value is None:
        return "null"
    if isinstance(value, float) and not math.isfinite(value):
        return "not a finite number"
    if isinstance(value, bytes):
        return "bytes that are not UTF-8"
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        return next(filter(None, map(no_text, value)), None)
    return None


def _text(record: Mapping[str, Any], template: Template, where: str) -> str:
    """Return the text of one record."""
    for name in template.braced:
        if name in record:
            braced = f"{{{name}}}"
            raise InputError(
                f"{where}: {template.described} writes {braced} as it is, in "
                f"doubled braces; write {_with_single_braces(template.pattern)}"
            )
    pieces = list[str]()
    for text, field in template.parts:
        pieces.append(text)
        if field is not None:
            pieces.append(_written(record, field, template, where))
    return kept_text("".join(pieces), where)


def _written(
    record: Mapping[str, Any],
    field: Field,
    template: Template,
    where: str,
) -> str:
    """Return the text of one field of a record."""
    if field.typed in record:  # a name may hold a colon
        field = Field(field.typed)
    try:
        value = look_up(record, field.name)
    except LookupError as error:
        raise InputError(
            f"{where}: field {field.name!r} is missing, which {template.described} "
            f"needs; the record has {field_names(record)}"
        ) from error
    problem = no_text(value)
    if problem:
        raise InputError(
            f"{where}: field {field.name!r} is {problem}; write a text there, or name another field"
        )
    try:
        return _formatted(value, field)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"{where}: {template.described} does not fit ({error})",
        ) from error


def _formatted(value: Any, field: Field) -> str:
    """Write a value as its field asks for; a list is joined by its specification."""
    converted = string.Formatter().convert_field(value, field.conversion)
    if isinstance(converted, list) and field.specification:
        return field.specification.join(map(str, converted))
    return format(converted, field.specification)


def look_up(record: Mapping[str, Any], name: str) -> Any:
    """Return what a field, or an entry within one, holds.

    Raise LookupError if it is not there.

    A field of this very name comes first. No attribute of a value is ever read.
    """
    if name in record:
        return record[name]
    head = name.partition("[")[0]
    path = [head] if head in record else head.split(".")
    path += re.findall(r"\[([^]]*)\]", name)
    value: Any = record
    for key in path:
        value = _entry(value, key)
    return value


def _entry(value: Any, key: str) -> Any:
    """Return what lies in a mapping or a list.

    Of a list of mappings, return the entry of each.
    """
    if isinstance(value, Mapping):
        return value[key]
    if isinstance(value, list) and are_mappings(value, key):
        return [inner[key] for inner in value]
    is_place = key.isdecimal() and len(key) <= MOST_DIGITS
    if isinstance(value, list | str) and is_place:
        return value[int(key)]
    raise KeyError(key)


def field_names(record: Mapping[str, Any]) -> str:
    """Return the names of the fields of a record for a message, as `answers.text`."""
    names = list[str]()
    for name, value in record.items():
        inner = value if isinstance(value, Mapping) else {}
        names += [f"{name}.{key}" for key in inner] or [str(name)]
    return ", ".join(sorted(names))[:MOST_SHOWN] or "no fields"


def _with_single_braces(pattern: str) -> str:
    """Return a template with {field} in the place of {{ field }}, for a message."""
    single = re.sub(r"\{\{\s*([^{}]+?)\s*\}\}", r"{\1}", pattern)
    if single == pattern:
        return "fields in braces, such as {question}"
    return repr(single[:MOST_SHOWN])
