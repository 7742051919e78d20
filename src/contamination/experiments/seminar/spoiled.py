"""Test sets spoiled on purpose: what is read wrongly, and orders that carry information.

A model that has read none of them may prefer their canonical order all the same, and then a small
p-value says nothing of contamination (Oren, section 4.3, leave such sets out).
"""

from dataclasses import replace

from contamination.errors import InputError
from contamination.files import sha256_of
from contamination.testsets.example_set import ExampleSet


def by_physical_line(test_set: ExampleSet) -> ExampleSet:
    """Take every line of the file for an example, as a careless script does."""
    lines = "".join(test_set.examples).splitlines(keepends=True)
    return _spoiled(test_set, "read by line", tuple(lines), ())


def sorted_by(test_set: ExampleSet, field: str) -> ExampleSet:
    """Sort the records by one of their fields.

    Raises
    ------
    InputError
        The records have no such field.
    """
    if not test_set.records or field not in test_set.records[0]:
        raise InputError(f"{test_set.name}: the records have no field {field!r} to sort by")
    pairs = sorted(
        zip(test_set.records, test_set.examples, strict=True), key=lambda pair: str(pair[0][field])
    )
    records, examples = zip(*pairs, strict=True)
    return _spoiled(test_set, f"sorted by {field}", examples, records)


def numbered(test_set: ExampleSet) -> ExampleSet:
    """Put "1. ", "2. " and so on before the examples."""
    examples = tuple(f"{i}. {text}" for i, text in enumerate(test_set.examples, start=1))
    return _spoiled(test_set, "numbered", examples, test_set.records)


def _spoiled(
    test_set: ExampleSet,
    how: str,
    examples: tuple[str, ...],
    records: tuple[dict[str, object], ...],
) -> ExampleSet:
    return replace(
        test_set,
        name=f"{test_set.name} {how}",
        examples=examples,
        revision=sha256_of(test_set.revision, how),
        records=records,
    )
