"""A test set: examples in canonical order, each one record rendered by a named template.

Oren (section 2) takes a dataset as a sequence of examples whose order carries no
information. An example is one record (`contamination.testsets.records`) and its text,
which ends in the separator.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from contamination.errors import InputError
from contamination.files import sha256_of
from contamination.testsets.records import Record, check_ids
from contamination.testsets.templates import parse, render

MOST_TEXT = 40  # characters of a text in a message


@dataclass(frozen=True)
class Declared:
    """Declarations of an author about fields; `choices.correct` is a field within `choices`.

    Attributes
    ----------
    answer
        They name the right option: by label, index from 0, text, or a flag for each
        option.
    options
        They hold the options, as one list or a field for each, or are lists parallel to
        them.
    other
        They say nothing of the options, whatever they look like; "*" is every field.
    """

    answer: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    other: tuple[str, ...] = ()


@dataclass(frozen=True)
class ExampleSet:
    """Examples in canonical order.

    Attributes
    ----------
    examples
        Rendered texts, separator included; at least one.
    template
        Name/version of the rendering, or the template itself.
    revision
        SHA-256 of the examples and the name of their template, whatever file they came
        from.
    records
        The fields behind each example, if they are known.
    declared
        What the author declared about the fields of multiple-choice items.
    started
        Whether every example begins with the tokenizer's start token, if it has one.
    """

    name: str
    examples: tuple[str, ...]
    template: str
    revision: str
    records: tuple[dict[str, Any], ...] = ()
    declared: Declared = Declared()
    started: bool = False


def start_each(test_set: ExampleSet, wanted: bool = True) -> ExampleSet:
    """Return the set with a start token before each example, if that is `wanted`.

    So the public script of Oren et al. encodes a set: each example is a text of its own,
    and tokenizers such as those of Llama 2 and Mistral put a start token before it. The
    set has another revision, and with it other stores and orderings.
    """
    if not wanted:
        return test_set
    revision = sha256_of(test_set.revision, "started")
    return replace(test_set, started=True, revision=revision)


def make_test_set(
    name: str,
    records: Sequence[Record],
    template: str,
    where: str,
    max_records: int | None = None,
) -> ExampleSet:
    """Render records as a test set.

    Parameters
    ----------
    name
        Name of the set, for people.
    records
        Records in canonical order.
    template
        Same as in `contamination.testsets.sources.open_test_set`.
    where
        Name of the records' source in error messages.
    max_records
        Number of records to take from the start; the set must have them. None takes all.

    Raises
    ------
    InputError
        For an unknown template, a missing field, a text longer than LONGEST_TEXT, a
        record that comes twice with its id, and if most examples are blank or equal.

    Examples
    --------
    >>> records = [("line 1", {"q": "1 + 1?"}), ("line 2", {"q": "2 + 2?"})]
    >>> make_test_set("sums", records, "Question: {q}\\n", where="sums.jsonl").examples
    ('Question: 1 + 1?\\n', 'Question: 2 + 2?\\n')
    """
    if max_records is not None and not 1 <= max_records <= len(records):
        raise InputError(
            f"{where}: {len(records)} records, {max_records} wanted; ask for fewer",
        )
    chosen = records[:max_records]
    check_ids(chosen, where)
    examples = render(chosen, template, where)
    check_texts(examples, where)
    fields = tuple(record for _, record in chosen)
    template = parse(template).name
    return ExampleSet(name, examples, template, sha256_of(template, *examples), fields)


def check_texts(examples: Sequence[str], where: str) -> None:
    """Raise InputError if most examples are blank, or one text.

    They then have hardly an order. Blanks are not compared: texts that differ in them
    alone are one.
    """
    counts = Counter(" ".join(text.split()) for text in examples)
    text, count = counts.most_common(1)[0]
    if count == 1 or 2 * count <= len(examples):
        return
    shown = f"the text {text[:MOST_TEXT]!r}" if text else "blank"
    raise InputError(
        f"{where}: {count:,} of {len(examples):,} examples are {shown}, and their "
        "order says nothing; give a template with fields that differ, or remove what "
        "repeats",
        parameter="template",
    )
