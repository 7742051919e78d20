"""A benchmark like WikiMIA from dated pages of one's own (Shi et al., section 2.2).

Pages created before a day are members for a model trained after it on such pages. Pages
created on the cutoff or later are non-members for a model whose training ended before.
So the benchmark can be made anew for each new model. The sides may differ in more than
membership, since newer pages are about other things: the blind baselines of
`contamination.membership.blind` say by how much, and are computed when the benchmark is
built.
"""

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from contamination.errors import InputError
from contamination.files import replacing, sha256_of, write_json, write_text
from contamination.membership.blind import WORDS, blind_rows, blind_table
from contamination.randomness import random_stream
from contamination.testsets.mediawiki import read_export
from contamination.testsets.pages import Page, read_page_folder, read_page_records

LENGTHS = (32, 64, 128, 256)  # words of a text
FEWEST = 2  # texts on each side of a split
NO_PROSE = re.compile(r"\s*(timeline|lists?) of\b", re.IGNORECASE)  # titles of pages of entries
# Variants of a text.
ORIGINAL = "original"
PARAPHRASED = "paraphrased"
# Why a page is left out.
TITLE = "the title starts with Timeline of or List of"
SHORT = "fewer words than the shortest length"
COPY = "begins like an older page"
GAP = "created between the last day of members and the cutoff"


@dataclass(frozen=True)
class Rules:
    """The rules by which pages are taken; raises InputError if they contradict each other.

    Attributes
    ----------
    cutoff
        Pages created on that day or later are non-members.
    members_before
        Pages created before that day are members; None is the cutoff.
    lengths
        Words of the texts, a split for each.
    seed
        Draws which pages are taken where one side has more.
    """

    cutoff: date
    members_before: date | None = None
    lengths: tuple[int, ...] = LENGTHS
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse rules that cannot be followed."""
        if self.members_before is not None and self.members_before > self.cutoff:
            raise InputError(
                f"members before {self.members_before} and the cutoff {self.cutoff} overlap: give "
                "a day that is no later than the cutoff"
            )
        is_repeated = len(set(self.lengths)) < len(self.lengths)
        if not self.lengths or is_repeated or min(self.lengths) < 1:
            given = ", ".join(str(length) for length in self.lengths) or "none"
            raise InputError(f"lengths are {given}: give numbers of words, each once")

    @property
    def end_of_members(self) -> date:
        """The day before which members were created."""
        return self.members_before or self.cutoff


@dataclass(frozen=True)
class DatedSet:
    """A benchmark that was built.

    Attributes
    ----------
    pages
        Number of pages that were read.
    left_out
        Why pages were left out, and how many.
    blind
        `blind_table` of all splits.
    """

    pages: int
    left_out: dict[str, int]
    blind: pd.DataFrame

    @property
    def solved(self) -> list[str]:
        """Splits whose sides a bag of words tells apart: its 95% interval lies above 0.5."""
        rows = self.blind[self.blind["baseline"] == WORDS]
        return [str(split) for split in rows.loc[rows["auc_low"] > 0.5, "split"]]


def build_dated_set(pages: Path, out: Path, rules: Rules) -> DatedSet:
    """Write a benchmark of texts from before and after a day, with its blind baselines.

    A text is the first words of a page, with single blanks between them. A page that
    has too few is left out of that length. In each split both sides have equally many
    texts. The new directory has `WikiMIA_length32.jsonl` and so on, with `input` and
    `label` (1 for a member) in each line; `blind.csv`; and `provenance.json`. The same
    pages and rules give the same bytes.

    Parameters
    ----------
    pages
        A file of records, a MediaWiki export (.xml), or a folder with a `pages.csv`.
    out
        The directory, which is new or empty.
    rules
        Which pages are taken.

    Raises
    ------
    InputError
        For pages that cannot be read, or too few of one side.
    """
    found, files = read_pages(pages, rules.cutoff)
    reasons = _reasons(found, rules)
    left_out = dict(sorted(Counter(reason for reason in reasons if reason).items()))
    kept = [page for page, reason in zip(found, reasons, strict=True) if not reason]
    _check_sides(pages, kept, len(found), left_out, rules)
    splits = cut_pages(kept, rules)
    if not splits:
        raise InputError(
            f"{pages}: no length of {min(rules.lengths)} words or more has {FEWEST} texts on each "
            "side; give shorter lengths or more pages"
        )
    blind = _judge(splits, rules.seed)
    provenance = {
        "pages": {"name": pages.name, "sha256": sha256_of(*files), "read": len(found)},
        "cutoff": str(rules.cutoff),
        "members_before": str(rules.end_of_members),
        "lengths": list(rules.lengths),
        "seed": rules.seed,
        "left_out": left_out,
        "texts_of_each_side": {name: len(rows) // 2 for name, rows in splits.items()},
    }
    with replacing(out, new=True) as folder:
        folder.mkdir()
        for name, rows in splits.items():
            lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
            write_text(folder / f"{name}.jsonl", "".join(lines))
        write_text(folder / "blind.csv", blind.to_csv(index=False))
        write_json(folder / "provenance.json", provenance)
    return DatedSet(pages=len(found), left_out=left_out, blind=blind)


def cut_pages(pages: Sequence[Page], rules: Rules) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of each split by its name: as many of both sides, in the order of the pages.

    One random order of the pages decides at every length which are taken. A split with
    too few texts on a side is left out.
    """
    order = random_stream(rules.seed, "dated pages").permutation(len(pages))
    splits = {}
    for variant in (ORIGINAL, PARAPHRASED):
        words = []
        for page in pages:
            text = page.text if variant == ORIGINAL else page.paraphrase
            words.append(text.split())
        for length in rules.lengths:
            taken = _balanced(pages, words, length, order, rules)
            if not taken:
                continue
            rows = []
            for number in taken:
                text = " ".join(words[number][:length])
                rows.append({"input": text, "label": int(_is_member(pages[number], rules))})
            splits[split_name(length, variant)] = rows
    return splits


def read_pages(path: Path, cutoff: date) -> tuple[list[Page], list[Path]]:
    """Read pages from a file or a folder; return them and the files that were read."""
    if path.is_dir():
        return read_page_folder(path)
    if path.suffix == ".xml" and path.is_file():
        return read_export(path, cutoff), [path]
    return read_page_records(path), [path]


def split_name(length: int, variant: str = ORIGINAL) -> str:
    """Return the name of a split, such as WikiMIA_length32 or WikiMIA_length32_paraphrased."""
    name = f"WikiMIA_length{length}"
    return name if variant == ORIGINAL else f"{name}_{variant}"


def _is_member(page: Page, rules: Rules) -> bool:
    return page.created < rules.end_of_members


def _reasons(pages: Sequence[Page], rules: Rules) -> list[str]:
    """Return why each page is left out, or "".

    Of pages that begin alike the oldest stays, even one of the gap: a text that existed
    before the cutoff is no non-member, whenever it was copied.
    """
    shortest = min(rules.lengths)
    beginnings = []
    oldest: dict[str, int] = {}
    for number, page in enumerate(pages):
        beginning = " ".join(page.text.split()[:shortest]).lower()
        beginnings.append(beginning)
        first = oldest.setdefault(beginning, number)
        if page.created < pages[first].created:
            oldest[beginning] = number
    reasons = []
    for number, page in enumerate(pages):
        is_late = page.created >= rules.cutoff
        if NO_PROSE.match(page.title):
            reason = TITLE
        elif len(page.text.split()) < shortest:
            reason = SHORT
        elif oldest[beginnings[number]] != number:
            reason = COPY
        elif page.unknown:
            reason = page.unknown
        elif not _is_member(page, rules) and not is_late:
            reason = GAP
        else:
            reason = ""
        reasons.append(reason)
    return reasons


def _check_sides(
    source: Path, kept: Sequence[Page], read: int, left_out: dict[str, int], rules: Rules
) -> None:
    """Raise InputError unless both sides have pages."""
    members = sum(_is_member(page, rules) for page in kept)
    others = len(kept) - members
    if min(members, others) >= FEWEST:
        return
    counts = "; ".join(f"{count:,} left out: {reason}" for reason, count in left_out.items())
    raise InputError(
        f"{source}: of {read:,} pages {members} are members, from before {rules.end_of_members}, "
        f"and {others} non-members, from {rules.cutoff} on ({counts or 'none left out'}); move the "
        "cutoff or add pages"
    )


def _balanced(
    pages: Sequence[Page],
    words: Sequence[list[str]],
    length: int,
    order: np.ndarray,
    rules: Rules,
) -> list[int]:
    """Return the numbers of equally many long enough pages of both sides, in ascending order."""
    sides: dict[bool, list[int]] = {True: [], False: []}
    for number in order.tolist():
        if len(words[number]) >= length:
            sides[_is_member(pages[number], rules)].append(number)
    count = min(len(side) for side in sides.values())
    if count < FEWEST:
        return []
    return sorted(sides[True][:count] + sides[False][:count])


def _judge(splits: dict[str, list[dict[str, Any]]], seed: int) -> pd.DataFrame:
    """Return `blind_table` of all splits."""
    scored = []
    for name, rows in splits.items():
        scored.append(
            blind_rows(
                [row["input"] for row in rows],
                [row["label"] for row in rows],
                benchmark="dated pages",
                split=name,
                rng=random_stream(seed, "blind baselines of dated pages", name),
            )
        )
    return blind_table(pd.concat(scored, ignore_index=True))
