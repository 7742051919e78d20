"""The author's side: a file is sealed, all at once or not at all.

::

    DIR/public/NAME.jsonl    the sealed set, to be published
    DIR/public/seal.json     what was sealed, and the commitment, to be published
    DIR/private/key.json     the seed and unpublished wordings, for its owner alone (mode 0600)
"""

import datetime
import json
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from contamination.errors import InputError
from contamination.files import replacing
from contamination.testsets.alternatives import FEWEST as FEWEST_ITEMS
from contamination.testsets.alternatives import Keep, permitted_places
from contamination.testsets.example_set import ExampleSet, make_test_set
from contamination.testsets.options import item_of, items_of, template_of_item
from contamination.testsets.records import Record, read_records
from contamination.testsets.seal import (
    ALGORITHM,
    SEED_BYTES,
    VERSION,
    Entry,
    Published,
    arrange,
    commitment,
    content_of,
    duplicates,
    entry_of,
)
from contamination.testsets.sealed import (
    WORDINGS,
    Seal,
    sha256,
    sorted_sha256,
    to_json,
    verify,
    wording_alternatives,
)

TEXT = "text/1"
FEWEST_RECORDS = 10  # fewer have hardly an order to be recognised by
ALGORITHMS = f"{ALGORITHM}: draws by HMAC-SHA256, commitment by SHA-256"
NOTHING_STAYS = Keep(numbers=False, repeated=False)  # but options that are about others


@dataclass(frozen=True)
class SealFiles:
    """Where the three files of a sealed set are."""

    published: Path
    seal: Path
    key: Path


def seal_file(
    path: Path,
    directory: Path,
    *,
    template: str | None = None,
    options: bool = True,
    wordings_of: str | None = None,
    date: str | None = None,
) -> tuple[Seal, SealFiles]:
    """Seal the records of a file by a seed that the operating system draws now.

    Either all three files are there afterwards, or `directory` is as it was: absent or empty.

    Parameters
    ----------
    path : a .jsonl, .json, .csv, .parquet or .txt file; its order does not matter.
    template : as in `contamination.testsets.example_set.load_test_set`, for whoever audits. None is
        the field `text`; records with options need one that shows them.
    options : whether the options of multiple-choice items are permuted, too. All may move, numbers
        as well, but those that are about others: see `permitted_places`.
    wordings_of : the field that a wording fills. A record may then have a field `wordings`: a list
        of all its wordings, each a whole text of that field. All such records have equally many.
    date : of the seal, YYYY-MM-DD; None is today (UTC).

    Raises
    ------
    InputError
        Records that cannot be read, are too few (FEWEST_RECORDS), come twice, or do not fit the
        template; options without a template; no options, or fewer than two items whose options may
        move; wordings without a field that they fill, or that are no list of different texts; a
        date that is none; a directory with anything in it.
    """
    date = date or f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}"
    if not _is_date(date):
        raise InputError(f"date is {date[:40]!r}: write YYYY-MM-DD, such as 2026-02-28")
    rows = read_records(path)
    if len(rows) < FEWEST_RECORDS:
        raise InputError(f"{path}: too few records ({len(rows)}); seal at least {FEWEST_RECORDS}")
    wordings = _all_wordings(path, rows, wordings_of)
    placed = [
        (place, _without_wordings(record, wordings_of, each))
        for (place, record), each in zip(rows, wordings, strict=True)
    ]
    if template is None:
        template = _default_template(path, placed[0], options)
    rendered = make_test_set(path.stem, placed, template, str(path))  # refuses what it does not fit
    free = _free(path, rendered, wordings, wordings_of) if options else [()] * len(rows)
    entries = _entries(path, placed, free, wordings, wordings_of)
    for first, later in duplicates(entries):
        raise InputError(
            f"{path}, {rows[later][0]}: the record of {rows[first][0]} again; remove it"
        )
    content, seed = content_of(entries), secrets.token_bytes(SEED_BYTES)
    drawn = arrange(content, seed, wordings_of)
    text = "".join(f"{_line(one.record)}\n" for one in drawn)
    each = max(len(entry.wordings) for entry in entries)
    seal = Seal(
        version=VERSION,
        algorithm=ALGORITHMS,
        date=date,
        template=rendered.template,
        records=len(entries),
        options=options,
        moving=sum(len(entry.free) > 1 for entry in entries),
        fixed=_fixed(drawn, content) if options else {},
        wordings_of=wordings_of,
        wordings=max(each, 1),
        sha256=sha256(text.encode()),
        sorted_sha256=sorted_sha256(text.encode()),
    )
    seal = Seal(**seal.facts, commitment=commitment(seed, content, seal.facts))
    key = {
        "version": VERSION,
        "seed": seed.hex(),
        "commitment": seal.commitment,
        "seal_sha256": sha256(to_json(vars(seal))),
        WORDINGS: _unpublished(drawn, content),
    }
    with replacing(directory, new=True) as temporary:
        made = _files(temporary, path.stem)
        made.seal.parent.mkdir(parents=True)
        made.published.write_text(text, encoding="utf-8", newline="\n")
        made.seal.write_bytes(to_json(vars(seal)))
        _write_private(made.key, to_json(key))
        found = verify(made.published, made.seal, made.key)  # what an auditor will find
        if wordings_of is not None:
            wording_alternatives(found)
    return seal, _files(directory, path.stem)


def _default_template(path: Path, first: Record, options: bool) -> str:
    """Return the template of texts; refuse an item, whose `text` cannot follow its options."""
    place, record = first
    try:
        wanted = template_of_item(record)
    except InputError:  # no item
        return TEXT
    if not options and "text" in record:
        return TEXT
    raise InputError(
        f"{path}, {place}: a record with options; name a template that shows them, such as "
        f"--template {wanted!r}"
    )


def _files(directory: Path, name: str) -> SealFiles:
    public = directory / "public"
    return SealFiles(
        public / f"{name}.jsonl", public / "seal.json", directory / "private" / "key.json"
    )


def _write_private(path: Path, data: bytes) -> None:
    """Write a file that nobody else may read at any moment, and that git does not take along."""
    path.parent.mkdir(mode=0o700)
    (path.parent / ".gitignore").write_text("*\n", encoding="utf-8")
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(data)


def _all_wordings(path: Path, rows: Sequence[Record], field: str | None) -> list[list[str]]:
    """Return the wordings of every record, checked."""
    wordings = [_wordings(record, field, f"{path}, {place}") for place, record in rows]
    counts = {len(each) for each in wordings if each}
    if field is not None and not counts:
        raise InputError(f"{path}: no record has {WORDINGS}; leave out --wordings-of, or give them")
    if len(counts) > 1:
        raise InputError(
            f"{path}: records have {min(counts)} to {max(counts)} {WORDINGS}; give each record "
            "that has any the same number"
        )
    return wordings


def _free(
    path: Path, rendered: ExampleSet, wordings: Sequence[Sequence[str]], field: str | None
) -> list[tuple[int, ...]]:
    """Return the places of each record among which its options may move."""
    alone = "seal the order of records alone (--axis order)"
    try:
        items = items_of(replace(rendered, name=str(path)))
    except InputError as error:
        raise InputError(f"{error}; or {alone}") from error
    for number, (record, each) in enumerate(zip(rendered.records, wordings, strict=True)):
        if field is not None and any(
            item_of({**record, field: text}, "").options != items[number].options for text in each
        ):
            raise InputError(f"{path}, record {number + 1}: {field!r} is an option; word another")
    free = [places if len(places) > 1 else () for places in permitted_places(items, NOTHING_STAYS)]
    if (able := sum(map(bool, free))) < FEWEST_ITEMS:
        raise InputError(
            f"{path}: the options of {able} items may move, a test needs {FEWEST_ITEMS}; {alone}"
        )
    return free


def _entries(
    path: Path,
    placed: Sequence[Record],
    free: Sequence[tuple[int, ...]],
    wordings: Sequence[Sequence[str]],
    field: str | None,
) -> list[Entry]:
    """Return the entries of records, in their order."""
    found = []
    for (place, record), places, each in zip(placed, free, wordings, strict=True):
        try:
            entry = entry_of(record, free=places, field=field, wordings=each)
            _ = entry.line  # what JSON cannot keep is refused
        except InputError as error:
            raise InputError(f"{path}, {place}: {error}") from error
        found.append(entry)
    return found


def _wordings(record: Mapping[str, Any], field: str | None, where: str) -> list[str]:
    """Return all wordings of a record, checked; none if it has none."""
    if WORDINGS not in record:
        if field is not None and field not in record:
            raise InputError(f"{where}: neither {field!r} nor {WORDINGS!r} is there; give one")
        return []
    if field is None:
        raise InputError(
            f"{where}: there are {WORDINGS}, of which the key is to pick one: name the field that "
            "it fills (--wordings-of), or remove them"
        )
    given = record[WORDINGS]
    if (
        not isinstance(given, list)
        or len(given) < 2
        or not all(isinstance(text, str) and text.strip() for text in given)
        or len(set(given)) < len(given)
    ):
        raise InputError(f"{where}: {WORDINGS} is no list of 2 or more different texts; write one")
    if record.get(field, given[0]) not in given:
        raise InputError(
            f"{where}: {field!r} is none of its {WORDINGS}; list all of them, that one included"
        )
    return given


def _without_wordings(
    record: Mapping[str, Any], field: str | None, wordings: Sequence[str]
) -> dict[str, Any]:
    """Put a wording where it will be published: in its field, or in the place of the list."""
    if field is None or not wordings:
        return dict(record)
    place = field if field in record else WORDINGS
    return {
        field if name == place else name: wordings[0] if name == place else value
        for name, value in record.items()
        if name == place or name != WORDINGS
    }


def _fixed(drawn: Sequence[Published], content: Sequence[Entry]) -> dict[str, list[int]]:
    """Places of options that stay, by lines of the published file."""
    fixed = {}
    for number, one in enumerate(drawn, start=1):
        count, free = len(item_of(one.record, "").options), content[one.entry].free
        if stays := [place for place in range(count) if place not in free]:
            fixed[str(number)] = stays
    return fixed


def _unpublished(drawn: Sequence[Published], content: Sequence[Entry]) -> dict[str, list[str]]:
    """Wordings that the key did not pick, by lines of the published file."""
    return {
        str(number): [text for text in content[one.entry].wordings if text != one.wording]
        for number, one in enumerate(drawn, start=1)
        if one.wording is not None
    }


def _line(record: Mapping[str, Any]) -> str:
    """JSON of a published record, its fields in the author's order."""
    return json.dumps(record, ensure_ascii=False, allow_nan=False)


def _is_date(text: str) -> bool:
    try:
        return datetime.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
