"""Whether the column `answer` of a table is what a model wrote, or the right answer.

The names of other columns do not decide that: anybody may call what a model wrote
`output`, `gpt4` or `raw`. So a table may have no other column that a model could have
written. None could have written a field of the published record, a column that gives
the published answer in every row, a judgement or another number beside texts, or a
text that is the same in every row. Where `answer` itself is the published answer in
nearly every row, it may be copied from the set, and less is taken on trust: no text,
though it is always the same, and no field of the record if no model is named.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from contamination.errors import InputError
from contamination.seal.answers import said
from contamination.seal.questions import Questions
from contamination.testsets.logs.record import Log
from contamination.testsets.logs.table import SHOWN, Row

KNOWN = frozenset({*Row.model_fields, *SHOWN})
NOT_TEXT = frozenset({"", "true", "false", "none", "null"})
NO_ANSWERS = (None, 0, 1)  # nothing, or a judgement
MOST_TOLD = 5  # columns in a message
_Rows = Sequence[Mapping[str, Any]]


def nearly_all(part: int, whole: int) -> bool:
    """Return whether a part is at least nine tenths, and not nothing."""
    return part > 0 and 10 * part >= 9 * whole


def refuse_unclear(log: Log, places: Sequence[int], questions: Questions) -> None:
    """Raise InputError for a table of which another column may be what a model wrote.

    Parameters
    ----------
    log
        A table; other logs have no rows.
    places
        Place of each record of the log in the set.
    questions
        The set.
    """
    rows = [record.row for record in log.records if record.row]
    if not rows:
        return
    hits = 0
    counted = 0
    for record, place in zip(log.records, places, strict=True):
        if place in questions.published:
            counted += 1
            hits += questions.named_by(record, place) == questions.published[place]
    is_key = nearly_all(hits, counted)
    unclear = list[str]()
    for name in dict.fromkeys(chain.from_iterable(rows)):
        if name in KNOWN or name == questions.key:
            continue
        if not _may_be_written(name, rows, is_key=is_key):
            continue
        if not _is_of_the_set(name, rows, places, questions, is_key=is_key):
            unclear.append(f"`{name}`")
    if not unclear:
        return
    share = f" (the published answer in {hits:,} of {counted:,} rows)" if is_key else ""
    raise InputError(
        f"{log.path}: what the model wrote may be in `answer`{share} or in "
        f"{', '.join(unclear[:MOST_TOLD])}; give `id`, `model`, what the model wrote as `answer` "
        "and what it was shown as `prompt`, and take the other columns out"
    )


def _may_be_written(name: str, rows: _Rows, *, is_key: bool) -> bool:
    """Return whether the values of a column are of the kind that a model writes."""
    values = [row.get(name) for row in rows]
    if not is_key and len({str(value) for value in values}) == 1:
        return False
    if any(_is_text(value) for value in values):
        return True
    if any(_is_text(row["answer"]) for row in rows):
        return False
    numbers = [_number(value) for value in values]
    return any(number not in NO_ANSWERS for number in numbers)


def _is_of_the_set(
    name: str,
    rows: _Rows,
    places: Sequence[int],
    questions: Questions,
    *,
    is_key: bool,
) -> bool:
    """Return whether a column repeats a field of the set, or gives its answers."""
    repeats = True
    gives_answers = True
    for row, place in zip(rows, places, strict=True):
        value = str(row.get(name))
        published = questions.records[place]
        trusted = not is_key or bool(row.get("model"))
        repeats &= trusted and name in published and value == str(published[name])
        gives_answers &= questions.is_published(value, place)
    return repeats or gives_answers


def _is_text(value: Any) -> bool:
    return said(str(value)) not in NOT_TEXT and _number(value) is None


def _number(value: Any) -> float | None:
    try:
        return float(str(value))
    except ValueError:
        return None
