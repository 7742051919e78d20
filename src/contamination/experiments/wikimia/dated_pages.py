"""A set like WikiMIA from dated pages of one's own (Shi et al., section 2).

Pages created before a day are members for any model trained on such pages after that day; pages
created on or after a later day are non-members for any model that was finished before. The days
between are a gap of which nothing is known. The benchmark can so be made anew for younger models.

What tells the two sides apart need not be membership: younger pages are about other things, in
other words. A model that has read neither side shows how much of an AUC that is.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from json import dumps
from pathlib import Path
from typing import Any

import numpy as np

from contamination.errors import InputError
from contamination.experiments.wikimia.benchmark import LENGTHS, ORIGINAL, PARAPHRASED, split_name
from contamination.experiments.wikimia.page_files import Page, files_of, read_pages
from contamination.files import sha256_of, write_json, write_text

PROVENANCE = "provenance.json"
NO_PROSE = re.compile(r"(timeline|lists?) of\b", re.IGNORECASE)  # titles of pages without prose

# Why a page is left out, in the order in which that is asked.
TITLE = "title starts with Timeline of or List of"
SHORT = "fewer words than the shortest length"
DUPLICATE = "begins like an older page"
GAP = "created between the two dates"
CHANGED = "member changed since it counts as read"
SURPLUS = "drawn out, so that both classes are as many"


@dataclass(frozen=True)
class Rules:
    """Which pages are taken.

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


def build_wikimia(pages: Path | str, out: Path | str, rules: Rules) -> dict[str, Any]:
    """Write a split for each length into `out`, and `provenance.json` with what was done and why.

    A text is the first words of a page with single blanks between them; a page with fewer is left
    out of that length. Pages with a `paraphrase` are written a second time in that wording, in
    splits of their own. A length without members or without non-members is not written. The same
    pages and rules give the same bytes.

    Returns
    -------
    dict
        The provenance: rules, checksum of the input, pages found, kept and dropped (by reason, and
        each with its place and title), and members and non-members of each split.

    Raises
    ------
    InputError
        Rules that cannot be, pages that cannot be read, or none left of a class.
    """
    _check(rules)
    found = read_pages(pages)
    reasons = _reasons(found, rules)
    sides = [[p for p in found if p.place not in reasons and _read(p, rules) == s] for s in (1, 0)]
    if not all(sides):
        raise InputError(
            f"{pages}: {len(sides[0])} members and {len(sides[1])} non-members are left of "
            f"{len(found)} pages ({_told(reasons)}); move the dates or add pages"
        )
    if rules.balanced:
        reasons |= dict.fromkeys(_surplus(sides, rules.seed), SURPLUS)
    kept = [page for page in found if page.place not in reasons]
    splits = {}
    for name, rows in _splits(kept, rules):
        counts = Counter(label for _, label in rows)
        splits[name] = {"members": counts[1], "non_members": counts[0]}
        path = Path(out) / f"{name}.jsonl"
        if len(counts) == 2:
            lines = (dumps({"input": t, "label": n}, ensure_ascii=False) + "\n" for t, n in rows)
            write_text(path, "".join(lines))
        else:
            path.unlink(missing_ok=True)  # of an earlier build
    provenance = {
        "pages": {"name": Path(pages).name, "sha256": sha256_of(*files_of(pages))},
        "rules": {key: str(v) if isinstance(v, date) else v for key, v in asdict(rules).items()},
        "filters": [TITLE, SHORT, DUPLICATE, GAP, *([CHANGED] if rules.drop_changed else [])],
        "found": len(found),
        "kept": {
            "members": sum(_read(page, rules) == 1 for page in kept),
            "non_members": sum(_read(page, rules) == 0 for page in kept),
            "members_changed_since": sum(_changed(page, rules) for page in kept),
            "first_day": str(min(page.created for page in kept)),
            "last_day": str(max(page.created for page in kept)),
        },
        "splits": splits,
        "dropped": dict(sorted(Counter(reasons.values()).items())),
        "dropped_pages": [
            {"place": _local(page, pages), "title": page.title, "why": reasons[page.place]}
            for page in found
            if page.place in reasons
        ],
    }
    write_json(Path(out) / PROVENANCE, provenance)
    return provenance


def _check(rules: Rules) -> None:
    if rules.members_before > rules.non_members_from:
        raise InputError(
            f"members before {rules.members_before} and non-members from "
            f"{rules.non_members_from} overlap: let the second be no earlier"
        )
    if not rules.lengths or min(rules.lengths) < 1 or len(set(rules.lengths)) < len(rules.lengths):
        raise InputError(f"lengths {list(rules.lengths)}: give numbers of words, each once")


def _read(page: Page, rules: Rules) -> int | None:
    """1 for a member, 0 for a non-member, None in the gap."""
    if page.created < rules.members_before:
        return 1
    return 0 if page.created >= rules.non_members_from else None


def _changed(page: Page, rules: Rules) -> bool:
    since = page.changed is not None and page.changed >= rules.members_before
    return since and _read(page, rules) == 1


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
        elif _read(page, rules) is None:
            reasons[page.place] = GAP
        elif rules.drop_changed and _changed(page, rules):
            reasons[page.place] = CHANGED
        beginnings.add(beginning)
    return reasons


def _surplus(sides: Sequence[Sequence[Page]], seed: int) -> Iterator[str]:
    """Yield the places of pages of the larger class that are not drawn."""
    fewest = min(map(len, sides))
    rng = np.random.default_rng(seed)
    for side in sides:
        drawn = set(rng.permutation(len(side))[:fewest].tolist())
        yield from (page.place for index, page in enumerate(side) if index not in drawn)


def _splits(pages: Sequence[Page], rules: Rules) -> Iterator[tuple[str, list[tuple[str, int]]]]:
    """Yield the name and rows (text, label) of each split; paraphrases where a page has one."""
    for variant in (ORIGINAL, PARAPHRASED):
        if variant == PARAPHRASED and not any(page.paraphrase.strip() for page in pages):
            return
        for length in rules.lengths:
            texts = ((p.text if variant == ORIGINAL else p.paraphrase).split() for p in pages)
            labelled = zip(texts, (int(_read(p, rules) == 1) for p in pages), strict=True)
            rows = [(" ".join(words[:length]), n) for words, n in labelled if len(words) >= length]
            yield split_name(length, variant), rows


def _told(reasons: dict[str, str]) -> str:
    counts = Counter(reasons.values()).items()
    return "; ".join(f"{count}: {why}" for why, count in counts) or "nothing was dropped"


def _local(page: Page, pages: Path | str) -> str:
    """Place of a page without the directory, so that provenance does not depend on the machine."""
    return page.place.removeprefix(f"{Path(pages).parent}/")
