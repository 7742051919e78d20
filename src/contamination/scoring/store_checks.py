"""Whether a store on disk is the one that is wanted, and of one model."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from contamination.errors import InputError

# By whoever tests, and free to be chosen again.
CHOSEN = ("seed", "template", "number of records")


def check_same(
    path: Path,
    stored: Mapping[str, Any],
    expected: Mapping[str, Any],
) -> None:
    """Raise InputError, with the first difference, if a store on disk is one of something else.

    `path` is the file of the header. Where the difference is a choice of whoever tests,
    the message says that a second choice is a second test; else the store is out of
    date.
    """
    differing = [name for name, value in expected.items() if stored.get(name) != value]
    if not differing:
        return
    field = differing[0]
    if "template" in differing and "model_revision" not in differing:
        field = "template"  # which gives the set another revision, too
    before = f"{stored.get(field)!s:.12}"
    now = f"{expected[field]!s:.12}"
    if "model_revision" not in differing and has_other_number(stored, expected):
        field = "number of records"
        before = str(len(stored["example_tokens"]))
        now = str(len(expected["example_tokens"]))
    name = field.replace("_", " ")
    difference = f"this store is of another {name} ({before}, now {now})"
    if field in CHOSEN:
        raise InputError(
            f"{path}: {difference}; keep to the first, or name another store and count both "
            f"results: every other {field} is one more test, to be corrected for",
            parameter="directory",
        )
    raise InputError(
        f"{path}: {difference}; name another directory, or remove {path.parent}",
        parameter="directory",
    )


def has_other_number(stored: Mapping[str, Any], expected: Mapping[str, Any]) -> bool:
    """Return whether two headers are of the first records of one set, and of another number."""
    lengths = list(stored.get("example_tokens", ()))
    other_lengths = list(expected.get("example_tokens", ()))
    fewer = min(len(lengths), len(other_lengths))
    same_beginning = lengths[:fewer] == other_lengths[:fewer]
    return fewer > 0 and len(lengths) != len(other_lengths) and same_beginning


def require_one_model(directory: Path, names: Iterable[str]) -> None:
    """Raise InputError if servers called the model of a store by more than one name.

    `names` are those of its parts and of what answers now; "" stands for none.
    """
    served = [name for name in dict.fromkeys(names) if name]
    if len(served) > 1:
        listed = ", and ".join(map(repr, served))
        raise InputError(
            f"{directory}: its answers come from {listed}: ask for one model by its "
            "exact name, and remove the directory to start again"
        )
