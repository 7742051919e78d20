"""A result that a command printed, checked against the schema that the package promises."""

import json
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from contamination.audit import export

SCHEMA = json.loads(Path(export.__file__).with_name("result-1.schema.json").read_text("utf-8"))
Draft202012Validator.check_schema(SCHEMA)
VALIDATOR = Draft202012Validator(SCHEMA)


def errors_of(result: Any) -> list[str]:
    """What of a result breaks the schema."""
    return [error.message for error in VALIDATOR.iter_errors(result)]


def result_of(text: str) -> dict[str, Any]:
    """Read a result."""
    found: dict[str, Any] = json.loads(text)
    assert errors_of(found) == []
    return found
