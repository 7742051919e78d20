"""A test set: examples in canonical order, each one record rendered by a named template.

Oren (section 2) takes a dataset as a sequence of examples whose order carries no information. An
example is one record (`contamination.testsets.records`) and its text, which ends in the separator.
"""

import re
import string
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

from contamination.errors import InputError
from contamination.files import sha256_of
from contamination.testsets.records import Record, check_ids

# name/version -> how a record becomes the text of an example. The final newline is the separator,
# tokenised with the example. A changed template gets a new version: stores are keyed by it.
TEMPLATES = {
    "text/1": "{text}\n",
    "line/1": "{line}\n",  # that of its file: see `contamination.testsets.sources.open_test_set`
    "signature/1": "{name}{signature}: {summary}\n",
    "question/1": "Question: {question}\nAnswer: {answer}\n",
    "parameter/1": "{function}, argument {parameter} ({type}): {description}\n",
    "entry/1": "{name}\n{text}\n\n",
    "choices/1": "Question: {question}\n{choices[text]:\n}\nAnswer: {answerKey}\n",
    "boolq/1": "{passage}\nQuestion: {question}?\nAnswer: {answer}\n",
    "hellaswag/1": "{ctx} {endings[0]}\n",
    "openbookqa/1": "{question[stem]}\n{answerKey}\n",
    "openbookqa/2": "{question_stem}\n{choices[text]:\n}\nAnswer: {answerKey}\n",
    "naturalquestions/1": "Question: {question}?\nAnswer: {answer[0]}\n",
    "mnli/1": "{sentence1}\n{sentence2}\n{gold_label}\n",
    "mnli/2": "{premise}\n{hypothesis}\n{label}\n",
    "truthfulqa/1": "{prompt}{completion}\n",
    "truthfulqa/2": "Q: {question}\nA: {best_answer}\n",
    "piqa/1": "{goal}\n{sol1}\n{sol2}\n",
    "mmlu/1": "{input}\nA. {A}\nB. {B}\nC. {C}\nD. {D}\nAnswer: {target}\n",
    "mmlu/2": "{question}\nA. {choices[0]}\nB. {choices[1]}\nC. {choices[2]}\nD. {choices[3]}\n"
    "Answer: {answer}\n",
}

MOST_SHOWN = 200  # characters of a template or of names of fields in a message, which is one line
LONGEST_TEXT = 5_000_000  # characters of an example; War and Peace has three million


@dataclass(frozen=True)
class Declared:
    """What an author says of fields, by name; `choices.correct` is one within `choices`.

    Attributes
    ----------
    answer : they name the right option: by label, index from 0, text, or a flag for each option.
    options : they hold the options, as one list or a field for each, or are lists parallel to them.
    other : they say nothing of the options, whatever they look like; "*" is every field.
    """

    answer: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    other: tuple[str, ...] = ()


@dataclass(frozen=True)
class ExampleSet:
    """Examples in canonical order.

    Attributes
    ----------
    examples : rendered texts, separator included; at least one.
    template : name/version of the rendering, or the template itself.
    revision : SHA-256 of the examples and the name of their template, whatever file they came from.
    records : the fields behind each example, where they are known.
    declared : what is said of them, for sets of multiple-choice items.
    started : whether a tokenizer that begins texts with a special token begins every example so.
    """

    name: str
    examples: tuple[str, ...]
    template: str
    revision: str
    records: tuple[dict[str, Any], ...] = ()
    declared: Declared = Declared()
    started: bool = False


class Template(NamedTuple):
    """A template that was checked: what stores call it, its text with {field}, and the fields."""

    name: str
    pattern: str
    fields: frozenset[str] = frozenset()


def start_each(test_set: ExampleSet, wanted: bool = True) -> ExampleSet:
    """Return the set as the public script of Oren et al. encodes it, if that is `wanted`.

    Each example is then a text of its own: tokenizers such as those of Llama 2 and Mistral put a
    start token before it. The set has another revision, and with it other stores and orderings.
    """
    if not wanted:
        return test_set
    return replace(test_set, started=True, revision=sha256_of(test_set.revision, "started"))


def make_test_set(
    name: str,
    records: Sequence[Record],
    template: str,
    where: str,
    max_records: int | None = None,
) -> ExampleSet:
    """Render records as a test set; `where` is what error messages call their source.

    `template` is as in `contamination.testsets.sources.open_test_set`. `max_records` takes so many
    from the start; there must be as many. Raises InputError for an unknown template, a missing
    field, a text longer than LONGEST_TEXT, and a record that comes twice with its id.
    """
    if max_records is not None and not 1 <= max_records <= len(records):
        raise InputError(f"{where}: {len(records)} records, {max_records} wanted; ask for fewer")
    chosen = records[:max_records]
    check_ids(chosen, where)
    examples = render(chosen, template, where)
    fields = tuple(record for _, record in chosen)
    template = parse(template).name
    return ExampleSet(name, examples, template, sha256_of(template, *examples), fields)


@cache
def parse(template: str) -> Template:
    """Check a template, given by name, as a field or as text; InputError if it cannot be used."""
    pattern = TEMPLATES.get(template, template)
    if "{" not in pattern and "/" in pattern:
        raise InputError(f"unknown template {template!r}: give text, or {', '.join(TEMPLATES)}")
    if "{" not in pattern:  # a field
        template = pattern = f"{{{template}}}\n"
    found = Template(template, pattern)
    try:
        fields = [part[1:3] for part in string.Formatter().parse(pattern) if part[1] is not None]
    except ValueError as error:
        raise InputError(
            f"template {found.name[:MOST_SHOWN]!r}: {error}; write {{{{ for a brace"
        ) from error
    for name, specification in fields:
        # "{question.__class__}" would read what Python keeps with a text, which is no field of it.
        if not re.fullmatch(r"[^.\[]+(\[[^]]*\])*", name or "") or "{" in (specification or ""):
            raise InputError(
                f"template {found.name[:MOST_SHOWN]!r}: {{{name}}} is no field, or has one in its "
                "format; write {field[key]} or {field[0]}"
            )
    return found._replace(fields=frozenset(name.partition("[")[0] for name, _ in fields if name))


def render(records: Sequence[Record], template: str, where: str) -> tuple[str, ...]:
    """Render records; raises InputError that names the first one that the template does not fit."""
    parsed = parse(template)
    return tuple(_text(record, parsed, f"{where}, {place}") for place, record in records)


class _Formatter(string.Formatter):
    def format_field(self, value: Any, format_spec: str) -> Any:
        """Join a list by its specification: {choices:, } is "a, b"."""
        if isinstance(value, list) and format_spec:
            return format_spec.join(map(str, value))
        return super().format_field(value, format_spec)


def _text(record: dict[str, Any], template: Template, where: str) -> str:
    named = f"template {template.name[:MOST_SHOWN]!r}"
    if missing := sorted(template.fields - record.keys()):
        raise InputError(
            f"{where}: field {missing[0]!r} is missing, which {named} needs; "
            f"the record has {', '.join(sorted(record))[:MOST_SHOWN] or 'no fields'}"
        )
    try:
        text = _Formatter().vformat(template.pattern, (), record)
    # Inner fields that are not there, and format specifications.
    except (KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{where}: {named} does not fit the record ({error})") from error
    return kept_text(text, where)


def kept_text(text: str, where: str) -> str:
    """Return a text, or raise InputError for one that is too long or holds half a character."""
    if len(text) > LONGEST_TEXT:
        raise InputError(f"{where}: {len(text):,} characters; cut it to {LONGEST_TEXT:,} at most")
    if half := re.search("[\ud800-\udfff]", text):
        raise InputError(
            f"{where}: {half[0]!a} is half of a surrogate pair; write the character itself"
        )
    return text
