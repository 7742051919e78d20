"""Tasks and logs of evaluation harnesses, as test sets.

- `lm-eval:TASK`: a task of lm-evaluation-harness, by its name or its .yaml file.
- `lm-eval-samples:FILE`: `samples_*.jsonl`, which it writes if asked to log samples.
- `inspect:FILE`: an `.eval` log of Inspect.
- `lighteval:FILE`: `details_*.parquet` of lighteval, since its version 0.11.

They are in the order in which the set was published. A log need not have this order: it
is put back by the numbers that the harness gave the records of the stored data set. A
record has its `text`; of a multiple-choice item also `question`, `choices` and
`answer`, which the axis of options moves.
"""

from pathlib import Path

from contamination.errors import InputError
from contamination.files import writable
from contamination.testsets.lm_eval_tasks import read_task
from contamination.testsets.logs.read import read_log
from contamination.testsets.logs.record import LogRecord
from contamination.testsets.records import Record


def read_harness(what: str) -> tuple[str, list[Record]]:
    """Return name and records of a set that has one of the names above.

    A log has a record once for each filter, sample or epoch, which count once. Raises
    InputError for a task or a log that cannot be read, where the published order or the
    texts cannot be told, and where two different records have one number.
    """
    kind, _, rest = what.partition(":")
    if kind == "lm-eval":
        return writable(Path(rest).stem), read_task(rest)
    once: dict[int, LogRecord] = {}
    for record in read_log(Path(rest)).records:  # what a log is, it says itself
        if record.number is None or not record.doc:
            raise InputError(
                f"{record.place}: the log does not tell this record and its published "
                "place (were named samples shuffled?); give the data set itself"
            )
        first = once.setdefault(record.number, record)
        if first.doc != record.doc:
            raise InputError(
                f"{record.place}: another record than that of {first.place} has the same "
                "number, so the log is of several sets; give the data set itself"
            )
    ordered = [once[number] for number in sorted(once)]
    records = [(record.place, dict(record.doc)) for record in ordered]
    return writable(Path(rest).stem), records
