"""A result that a command printed, checked against the schema that the package promises."""

import json
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from contamination.audit import export


def _schema(name: str) -> Any:
    text = Path(export.__file__).with_name(name).read_text("utf-8")
    schema = json.loads(text)
    Draft202012Validator.check_schema(schema)
    return schema


SCHEMA = _schema("result-1.schema.json")
VALIDATOR = Draft202012Validator(SCHEMA)
COMPARISONS = Draft202012Validator(_schema("comparison-1.schema.json"))


def errors_of(result: Any) -> list[str]:
    """Return the parts of a result that break the schema."""
    return [error.message for error in VALIDATOR.iter_errors(result)]


def result_of(text: str) -> dict[str, Any]:
    """Read a result."""
    found: dict[str, Any] = json.loads(text)
    assert errors_of(found) == []
    return found


def comparison_of(text: str) -> dict[str, Any]:
    """Read a comparison, all names of which the schema has."""
    found: dict[str, Any] = json.loads(text)
    assert [error.message for error in COMPARISONS.iter_errors(found)] == []
    assert set(found) <= set(COMPARISONS.schema["properties"])
    return found
