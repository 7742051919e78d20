"""Made-up pages from before and after a date, and what words alone find in them."""

import json
from collections.abc import Sequence
from datetime import date
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

from contamination.files import write_text
from contamination.membership.dated import Rules, build_dated_set
from contamination.randomness import random_stream

CUTOFF = date(2023, 1, 1)
OLD_DAY = "2015-05-01"
NEW_DAY = "2023-05-01"
BEGINNINGS = ("ba", "de", "ki", "lo", "mu", "na", "ro", "sa", "te", "vi")
ENDINGS = ("bel", "dor", "gan", "lim", "mot", "nus", "rek", "tav")
SHARED = tuple(map("".join, product(BEGINNINGS, ENDINGS)))  # words of all pages
NEWER = ("app", "drone", "podcast", "stream")  # words that newer pages have besides
ONE_KIND = "pages of one kind"
TWO_KINDS = "newer pages with newer words"


def made_up_baselines(
    seed: int,
    *,
    a_side: int = 200,
    lengths: Sequence[int],
) -> pd.DataFrame:
    """Return `blind_table` of two benchmarks of made-up pages.

    Parameters
    ----------
    seed
        Draws the words.
    a_side
        Pages on each side.
    lengths
        Words of the texts.
    """
    tables = []
    for name, extra in ((ONE_KIND, ()), (TWO_KINDS, NEWER)):
        rng = random_stream(seed, "made-up dated pages", name)
        lines = []
        for number in range(2 * a_side):
            lines.append(json.dumps(_page(number, max(lengths), extra, rng)))
        with TemporaryDirectory() as folder:
            source = Path(folder) / "pages.jsonl"
            write_text(source, "\n".join(lines))
            rules = Rules(CUTOFF, lengths=tuple(lengths), seed=seed)
            made = build_dated_set(source, Path(folder) / "benchmark", rules)
        tables.append(made.blind.assign(benchmark=name))
    return pd.concat(tables, ignore_index=True)


def _page(
    number: int,
    words: int,
    extra: Sequence[str],
    rng: np.random.Generator,
) -> dict[str, object]:
    """Return a page of the old side if its number is even, else of the new side."""
    is_new = number % 2 == 1
    vocabulary = [*SHARED, *extra] if is_new else list(SHARED)
    return {
        "title": f"Page {number}",
        "text": " ".join(rng.choice(vocabulary, words).tolist()),
        "date": NEW_DAY if is_new else OLD_DAY,
    }
