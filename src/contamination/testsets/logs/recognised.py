"""A log that is given as if it were a test set."""

from collections.abc import Mapping
from typing import Any

from contamination.errors import InputError
from contamination.testsets.logs import helm, inspect_log, lighteval, lm_eval

SAMPLE = frozenset(lm_eval.Sample.model_fields) - {"filter"}
WHOLE = frozenset({"eval", "samples"})


def refuse_log(record: Mapping[str, Any], where: str) -> None:
    """Raise InputError for the first record of a log, with the name that opens the log."""
    fields = set(record)
    if fields >= SAMPLE:
        raise log_as_set(where, lm_eval.NAME, "lm-eval-samples")
    if fields >= WHOLE:
        raise log_as_set(where, inspect_log.NAME, "inspect")
    if lighteval.has(fields):
        raise log_as_set(where, lighteval.NAME, "lighteval")
    if helm.FIELD in fields:
        raise InputError(
            f"{where}: this is a log of {helm.NAME}, which is no test set; give the data set itself"
        )


def log_as_set(where: str, harness: str, prefix: str) -> InputError:
    """Return the error for a log of a harness that was named without its prefix."""
    return InputError(
        f"{where}: this is a log of {harness}; name it {prefix}:{where}, which sorts its records "
        "by the numbers of the data set"
    )
