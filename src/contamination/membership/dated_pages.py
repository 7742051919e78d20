"""A set like WikiMIA from dated pages of one's own (Shi et al., section 2).

Pages created before a day are members for any model trained on such pages after that day; pages
created on or after a later day are non-members for any model that was finished before. The days
between are a gap of which nothing is known. The benchmark can so be made anew for younger models.

The two sides may differ in more than membership: younger pages are about other things. A model that
has read neither side shows how much of an AUC that is.

Pages come in two forms: a file of records (.jsonl, .json, .csv, .parquet) with the fields `title`,
`text` and `date`, or a folder of text files with a `pages.csv` that has the columns `file`, `title`
and `date`. `date` is when a page was created, `changed` (optional) when it was changed last:
YYYY-MM-DD, with or without a time after it. `paraphrase` (optional) is another wording.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import date
from itertools import product
from json import dumps
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

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


def build_wikimia(pages: Path | str, out: Path | str, rules: Rules) -> dict[str, Any]:
    """Write a split for each length into `out`, and `provenance.json` with what was done and why.

    A text is the first words of a page with single blanks between them; a page with fewer is left
    out of that length. Pages with a `paraphrase` are written a second time in that wording, in
    splits of their own. A length without members or without non-members is not written. The same
    pages and rules give the same bytes.

    Returns the provenance. Raises InputError for pages that cannot be read, and where none is left
    of a class.
    """
    found, files = read_pages(pages)
    found["why"] = _reasons(found, rules)
    left = found["why"] == ""
    sides = [found.index[left & (found["label"] == label)] for label in (1, 0)]
    if not all(map(len, sides)):
        counts = "; ".join(f"{n}: {why}" for why, n in Counter(found["why"][~left]).items())
        raise InputError(
            f"{pages}: {len(sides[0])} members and {len(sides[1])} non-members are left of "
            f"{len(found)} pages ({counts}); move the dates or add pages"
        )
    if rules.balanced:
        fewest, rng = min(map(len, sides)), random_stream(rules.seed, "surplus pages")
        for side in sides:
            found.loc[side[rng.permutation(len(side))[fewest:]], "why"] = SURPLUS
    kept, dropped = found[found["why"] == ""], found[found["why"] != ""]
    texts = {ORIGINAL: kept["text"].str.split()}
    if kept["paraphrase"].str.strip().any():
        texts[PARAPHRASED] = kept["paraphrase"].str.split()
    made = {}  # the rows of each split
    for variant, length in product(texts, rules.lengths):
        made[Path(out) / f"{split_name(length, variant)}.jsonl"] = [
            {"input": " ".join(words[:length]), "label": label}
            for label, words in zip(kept["label"].tolist(), texts[variant], strict=True)
            if len(words) >= length
        ]
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
    folder = f"{Path(pages).parent}/"  # left out: provenance must not depend on the machine
    dropped = dropped.assign(place=dropped["place"].str.removeprefix(folder))
    provenance = {
        "pages": {"name": Path(pages).name, "sha256": sha256_of(*files)},
        "rules": {key: str(v) if isinstance(v, date) else v for key, v in asdict(rules).items()},
        "filters": [TITLE, SHORT, DUPLICATE, GAP, *([CHANGED] if rules.drop_changed else [])],
        "found": len(found),
        "kept": {
            "members": int((kept["label"] == 1).sum()),
            "non_members": int((kept["label"] == 0).sum()),
            "members_changed_since": int(kept["changed_since"].sum()),
            "first_day": str(kept["created"].min()),
            "last_day": str(kept["created"].max()),
        },
        "splits": splits,
        "dropped": dict(sorted(Counter(dropped["why"]).items())),
        "dropped_pages": dropped[["place", "title", "why"]].to_dict("records"),
    }
    write_json(Path(out) / PROVENANCE, provenance)
    return provenance


def _reasons(pages: pd.DataFrame, rules: Rules) -> np.ndarray:
    """Why each page is left out, or ""; adds its label, and whether a member changed since."""
    before, after = rules.members_before, rules.non_members_from
    sides = [pages["created"] < before, pages["created"] >= after]
    pages["label"] = np.select(sides, [1, 0], default=-1)  # in the gap
    changed = [day is not None and day >= before for day in pages["changed"]]
    pages["changed_since"] = np.array(changed, dtype=bool) & (pages["label"] == 1)
    shortest, words = min(rules.lengths), pages["text"].str.split()
    beginnings = words.str[:shortest].str.join(" ").str.lower()
    # The oldest first: a text that existed before is no non-member, whenever it was copied.
    oldest_first = pages["created"].sort_values(kind="stable").index
    reasons = {
        TITLE: pages["title"].str.strip().str.match(NO_PROSE),
        SHORT: words.str.len() < shortest,
        DUPLICATE: beginnings[oldest_first].duplicated().reindex(pages.index),
        GAP: pages["label"] == -1,
        CHANGED: pages["changed_since"] & rules.drop_changed,
    }
    which = [np.asarray(each, dtype=bool) for each in reasons.values()]
    return np.select(which, [*reasons], default="").astype(object)


def read_pages(path: Path | str) -> tuple[pd.DataFrame, list[Path]]:
    """Read pages in the order of their file or index; return them and the files that were read.

    Columns: place (file and line), title, text, created, changed (None where nobody knows) and
    paraphrase ("" where there is none). Raises InputError, with file and line, for what is missing,
    and for a date that is none.
    """
    source = Path(path)
    index = source / INDEX if source.is_dir() else source
    if source.is_dir() and not index.is_file():
        raise InputError(
            f"{source}: no {INDEX}; write one with the columns file, title and date, a line for "
            "each text file"
        )
    rows, files = [], [index]
    for place, fields in read_records(index):
        record, where = dict(fields), f"{index}, {place}"
        if source.is_dir():
            name = str(record.get("file"))
            if not (source / name).is_file():
                raise InputError(f"{where}: {source} has no file {name!r}; correct the name")
            record["text"] = read_text(source / name)
            files.append(source / name)
        for field in ("title", "text"):
            if not isinstance(value := record.get(field), str):
                raise InputError(f"{where}: field {field!r} is {value!r}; write text there")
        changed = _day(record, "changed", where) if record.get("changed") else None
        days = (_day(record, "date", where), changed)
        other = str(record.get("paraphrase") or "")
        rows.append((where, record["title"], record["text"], *days, other))
    columns = ["place", "title", "text", "created", "changed", "paraphrase"]
    return pd.DataFrame(rows, columns=columns, dtype=object), files


def _day(record: Mapping[str, Any], field: str, where: str) -> date:
    value = str(record.get(field))
    try:
        found = DAY.match(value)
        return date.fromisoformat(found[0] if found else "")
    except ValueError:
        raise InputError(f"{where}: {field!r} is {value[:40]!r}; write it as 2023-01-31") from None
