"""Whether the column `answer` of a table is what a model wrote, or the right answer.

The names of other columns do not decide that: anybody may call what a model wrote
`output`, `gpt4` or `raw`. So a table may have no other column that a model could have
written. None could have written a field of the published record, a column that gives
the published answer in every row, a judgement or another number beside texts, or a
text that is the same in every row.

Where `answer` itself is the published answer in nearly every row, it may be copied from
the set, and what the model wrote may be a number, a judgement or nothing. Then every
other column has to be accounted for: it repeats a field of the record in a table that
names its model, gives the published answer, or is true exactly where `answer` is the
published one. `prompt` and `messages` must end alike in all rows after the texts of
their records: a reply would stand there.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from contamination.errors import InputError
from contamination.seal.answers import named, said
from contamination.seal.questions import Questions
from contamination.testsets.logs.record import Log, leaves, text_of
from contamination.testsets.logs.table import REPLIES, SHOWN, Row

NOT_TEXT = frozenset({"", "true", "false", "none", "null"})
NO_ANSWERS = (None, 0, 1)  # nothing, or a judgement
MOST_TOLD = 5  # columns in a message
_TAG = re.compile(r"<[^<>]*>")
_REPLY = re.compile(rf"\b(?:{'|'.join(sorted(REPLIES))})\b\W*\w", re.IGNORECASE)
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
    hits = dict[int, bool]()  # by the number of the row
    for number, (record, place) in enumerate(zip(log.records, places, strict=True)):
        if place in questions.published:
            hits[number] = questions.named_by(record, place) == questions.published[place]
    is_key = nearly_all(sum(hits.values()), len(hits))
    unclear = list[str]()
    for name in dict.fromkeys(chain.from_iterable(rows)):
        if name in Row.model_fields or name == questions.key:
            continue
        if name in SHOWN:
            clear = not is_key or _ends_alike(name, rows, places, questions)
        elif is_key:
            clear = _judges(name, rows, hits) or _is_of_the_set(
                name, rows, places, questions, is_key=True
            )
        else:
            clear = not _may_be_written(name, rows) or _is_of_the_set(
                name, rows, places, questions, is_key=False
            )
        if not clear:
            unclear.append(f"`{name}`")
    if not unclear:
        return
    share = ""
    if is_key:
        share = f" (the published answer in {sum(hits.values()):,} of {len(hits):,} rows)"
    raise InputError(
        f"{log.path}: what the model wrote may be in `answer`{share} or in "
        f"{', '.join(unclear[:MOST_TOLD])}; give `id`, `model`, in `answer` what the model wrote "
        "and never the right answer, in `prompt` what it was shown, and no other column"
    )


def _may_be_written(name: str, rows: _Rows) -> bool:
    """Return whether the values of a column are of the kind that a model writes."""
    values = [row.get(name) for row in rows]
    if len({str(value) for value in values}) == 1:
        return False
    if any(_is_text(value) for value in values):
        return True
    if any(_is_text(row["answer"]) for row in rows):
        return False
    numbers = [_number(value) for value in values]
    return any(number not in NO_ANSWERS for number in numbers)


def _judges(name: str, rows: _Rows, hits: Mapping[int, bool]) -> bool:
    """Return whether a column is true where `answer` is the published one, and false elsewhere."""
    judgements = [said(str(rows[number].get(name))) for number in hits]
    return judgements == [str(hit).casefold() for hit in hits.values()]


def _ends_alike(name: str, rows: _Rows, places: Sequence[int], questions: Questions) -> bool:
    """Return whether all prompts end alike after the texts of their records, in no reply.

    The texts are those of the fields that every prompt shows, as they stand there first.
    """
    prompts = [_line(text_of(row.get(name))) for row in rows]
    shown: list[list[str]] = [[] for _ in rows]
    for field in questions.records[0]:
        texts = [_texts(questions.records[place].get(field)) for place in places]
        in_every = all(map(_are_in, texts, prompts))
        if field == questions.answers_of or not in_every:
            continue
        for of_row, some in zip(shown, texts, strict=True):
            of_row += some
    ends = set[str]()
    for prompt, texts_of_row in zip(prompts, shown, strict=True):
        stops = [prompt.index(text) + len(text) for text in texts_of_row]
        ends.add(prompt[max(stops, default=0) :])
    end = ends.pop()
    if ends or _REPLY.search(_TAG.sub(" ", end)):
        return False
    return all(named(end, questions.names[place]) is None for place in places)


def _texts(value: Any) -> list[str]:
    return [_line(leaf) for leaf in leaves(value) if isinstance(leaf, str)]


def _are_in(texts: Sequence[str], prompt: str) -> bool:
    return all(text in prompt for text in texts)


def _line(text: str) -> str:
    return " ".join(text.split())


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
