"""A set like WikiMIA from dated pages of one's own (Shi et al., section 2).

Pages created before a day are members for any model trained on such pages after that day; pages
created on or after a later day are non-members for any model that was finished before. The days
between are a gap of which nothing is known. The benchmark can so be made anew for younger models.

The two sides may differ in more than membership: younger pages are about other things, in other
words. A model that has read neither side shows how much of an AUC that is.

Pages come in two forms: a file of records (.jsonl, .json, .csv, .parquet) with the fields `title`,
`text` and `date`, or a folder of text files with a `pages.csv` that has the columns `file`, `title`
and `date`. `date` is when a page was created, `changed` (optional) when it was changed last:
YYYY-MM-DD, with or without a time after it. `paraphrase` (optional) is another wording.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from itertools import product
from json import dumps
from pathlib import Path
from typing import Any

from contamination.errors import InputError
from contamination.files import sha256_of, write_json, write_text
from contamination.randomness import random_stream
from contamination.testsets.records import read_records, read_text

LENGTHS = (32, 64, 128, 256)  # words of a text
ORIGINAL, PARAPHRASED = "original", "paraphrased"

INDEX, PROVENANCE = "pages.csv", "provenance.json"
NO_PROSE = re.compile(r"(timeline|lists?) of\b", re.IGNORECASE)  # titles of pages without prose
DAY = re.compile(r"\d{4}-\d\d-\d\d(?=[T ]|$)")

# Why a page is left out, in the order in which that is asked.
TITLE = "title starts with Timeline of or List of"
SHORT = "fewer words than the shortest length"
DUPLICATE = "begins like an older page"
GAP = "created between the two dates"
CHANGED = "member changed since it counts as read"
SURPLUS = "drawn out, so that both classes are as many"


def split_name(length: int, variant: str = ORIGINAL) -> str:
    """Name of a split: WikiMIA_length32, or WikiMIA_length32_paraphrased."""
    return f"WikiMIA_length{length}" + (f"_{variant}" if variant != ORIGINAL else "")


@dataclass(frozen=True)
class Page:
    """A page that was created on a known day.

    Attributes
    ----------
    place : file and line, for messages. changed : day of the last change, if that is known.
    paraphrase : the same in other words, or "".
    """

    place: str
    title: str
    text: str
    created: date
    changed: date | None = None
    paraphrase: str = ""


@dataclass(frozen=True)
class Rules:
    """Which pages are taken; raises InputError for days or lengths that contradict each other.

    Attributes
    ----------
    members_before : pages created before that day are members.
    non_members_from : pages created on that day or later are non-members.
    lengths : words of the texts.
    balanced : draw as many pages of one class as the other has, as the paper does with 394 each.
        Shorter pages are missing from longer lengths, so a length can still have more of one.
    drop_changed : leave out members that were changed on or after `members_before`, whose text
        need not be what was read.
    seed : of the draw.
    """

    members_before: date
    non_members_from: date
    lengths: tuple[int, ...] = LENGTHS
    balanced: bool = True
    drop_changed: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse rules that cannot be followed."""
        if self.members_before > self.non_members_from:
            raise InputError(
                f"members before {self.members_before} and non-members from "
                f"{self.non_members_from} overlap: let the second be no earlier"
            )
        lengths = list(self.lengths)
        if not lengths or min(lengths) < 1 or len(set(lengths)) < len(lengths):
            raise InputError(f"lengths {lengths}: give numbers of words, each once")

    def label(self, page: Page) -> int | None:
        """1 for a member, 0 for a non-member, None in the gap."""
        if page.created < self.members_before:
            return 1
        return 0 if page.created >= self.non_members_from else None

    def changed(self, page: Page) -> bool:
        """Whether a page is a member whose text need not be what was read."""
        since = page.changed is not None and page.changed >= self.members_before
        return since and self.label(page) == 1


def build_wikimia(pages: Path | str, out: Path | str, rules: Rules) -> dict[str, Any]:
    """Write a split for each length into `out`, and `provenance.json` with what was done and why.

    A text is the first words of a page with single blanks between them; a page with fewer is left
    out of that length. Pages with a `paraphrase` are written a second time in that wording, in
    splits of their own. A length without members or without non-members is not written. The same
    pages and rules give the same bytes.

    Returns the provenance: rules, checksum of the input, pages found, kept and dropped (by reason,
    and each with its place and title), and members and non-members of each split. Raises InputError
    for pages that cannot be read, and where none is left of a class.
    """
    found, files = read_pages(pages)
    reasons = _reasons(found, rules)
    sides = [
        [page for page in found if page.place not in reasons and rules.label(page) == label]
        for label in (1, 0)
    ]
    if not all(sides):
        counts = (f"{count}: {why}" for why, count in Counter(reasons.values()).items())
        raise InputError(
            f"{pages}: {len(sides[0])} members and {len(sides[1])} non-members are left of "
            f"{len(found)} pages ({'; '.join(counts) or 'nothing was dropped'}); move the dates or "
            "add pages"
        )
    if rules.balanced:
        fewest, rng = min(map(len, sides)), random_stream(rules.seed, "surplus pages")
        for side in sides:
            surplus = rng.permutation(len(side))[fewest:]
            reasons |= {side[i].place: SURPLUS for i in surplus}
    kept = [page for page in found if page.place not in reasons]
    made = {Path(out) / f"{name}.jsonl": rows for name, rows in _splits(kept, rules)}
    for path in [*made, Path(out) / PROVENANCE]:
        if path.exists() and any(path.samefile(file) for file in files):
            raise InputError(f"{path} is read, and would be written; give another directory")
    splits = {}
    for path, rows in made.items():
        members = sum(row["label"] for row in rows)
        splits[path.stem] = {"members": members, "non_members": len(rows) - members}
        if 0 < members < len(rows):
            write_text(path, "".join(dumps(row, ensure_ascii=False) + "\n" for row in rows))
        else:
            path.unlink(missing_ok=True)  # of an earlier build
    members, days = sum(rules.label(page) == 1 for page in kept), [page.created for page in kept]
    folder = f"{Path(pages).parent}/"  # left out: provenance must not depend on the machine
    provenance = {
        "pages": {"name": Path(pages).name, "sha256": sha256_of(*files)},
        "rules": {key: str(v) if isinstance(v, date) else v for key, v in asdict(rules).items()},
        "filters": [TITLE, SHORT, DUPLICATE, GAP, *([CHANGED] if rules.drop_changed else [])],
        "found": len(found),
        "kept": {
            "members": members,
            "non_members": len(kept) - members,
            "members_changed_since": sum(map(rules.changed, kept)),
            "first_day": str(min(days)),
            "last_day": str(max(days)),
        },
        "splits": splits,
        "dropped": dict(sorted(Counter(reasons.values()).items())),
        "dropped_pages": [
            {"place": page.place.removeprefix(folder), "title": page.title, "why": why}
            for page in found
            if (why := reasons.get(page.place))
        ],
    }
    write_json(Path(out) / PROVENANCE, provenance)
    return provenance


def _reasons(pages: Sequence[Page], rules: Rules) -> dict[str, str]:
    """Place of each page that is left out -> why."""
    shortest = min(rules.lengths)
    reasons: dict[str, str] = {}
    beginnings: set[str] = set()
    # The oldest first: a text that existed before is no non-member, whenever it was copied.
    for page in sorted(pages, key=lambda page: page.created):
        words = page.text.split()
        beginning = " ".join(words[:shortest]).lower()
        if NO_PROSE.match(page.title.strip()):
            reasons[page.place] = TITLE
        elif len(words) < shortest:
            reasons[page.place] = SHORT
        elif beginning in beginnings:
            reasons[page.place] = DUPLICATE
        elif rules.label(page) is None:
            reasons[page.place] = GAP
        elif rules.drop_changed and rules.changed(page):
            reasons[page.place] = CHANGED
        beginnings.add(beginning)
    return reasons


def _splits(pages: Sequence[Page], rules: Rules) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the name and rows of each split; paraphrases where a page has one."""
    texts = {ORIGINAL: [page.text.split() for page in pages]}
    if any(page.paraphrase.strip() for page in pages):
        texts[PARAPHRASED] = [page.paraphrase.split() for page in pages]
    for variant, length in product(texts, rules.lengths):
        rows = [
            {"input": " ".join(words[:length]), "label": rules.label(page)}
            for page, words in zip(pages, texts[variant], strict=True)
            if len(words) >= length
        ]
        yield split_name(length, variant), rows


def read_pages(path: Path | str) -> tuple[list[Page], list[Path]]:
    """Read pages in the order of their file or index; return them and the files that were read.

    Raises InputError, with file and line, without the file or folder, for a folder without an
    index, a field that is missing, or a date that is none.
    """
    source = Path(path)
    index = source / INDEX if source.is_dir() else source
    if source.is_dir() and not index.is_file():
        raise InputError(
            f"{source}: no {INDEX}; write one with the columns file, title and date, a line for "
            "each text file"
        )
    pages, files = [], [index]
    for place, fields in read_records(index):
        record, where = dict(fields), f"{index}, {place}"
        if source.is_dir():
            name = _text(record, "file", where)
            if not (source / name).is_file():
                raise InputError(f"{where}: {source} has no file {name!r}; correct the name")
            record["text"] = read_text(source / name)
            files.append(source / name)
        page = Page(
            place=where,
            title=_text(record, "title", where),
            text=_text(record, "text", where, empty=True),
            created=_day(record, "date", where),
            changed=_day(record, "changed", where) if record.get("changed") else None,
            paraphrase=_text({"paraphrase": "", **record}, "paraphrase", where, empty=True),
        )
        pages.append(page)
    return pages, files


def _text(record: Mapping[str, Any], field: str, where: str, *, empty: bool = False) -> str:
    value = record.get(field)
    if value is None and field in record and empty:
        return ""
    if not isinstance(value, str) or not (empty or value.strip()):
        raise InputError(f"{where}: field {field!r} is {str(value)[:40]!r}; write text there")
    return value


def _day(record: Mapping[str, Any], field: str, where: str) -> date:
    value = str(record.get(field))
    try:
        found = DAY.match(value)
        return date.fromisoformat(found[0] if found else "")
    except ValueError:
        raise InputError(
            f"{where}: field {field!r} is {value[:40]!r}; write a date such as 2023-01-31"
        ) from None
