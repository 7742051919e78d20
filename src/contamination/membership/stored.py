"""Scores of texts that are kept on disk: every text is scored once, by one of all processes.

The texts are cut into parts by their tokens alone, in a random order, and each part is the work of
one process, so that any number of processes and interruptions give the same numbers. The name of a
part holds a checksum of all that its numbers depend on: the next run adds the parts that are
missing and removes those of other texts, another model or other scores.
"""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from tqdm import tqdm

from contamination.errors import InputError
from contamination.files import replacing, sha256_of
from contamination.membership.api import DEFAULT_COLUMNS, Text, membership_scores
from contamination.randomness import random_stream
from contamination.scoring.contract import Scorer
from contamination.scoring.processes import mine, processes, share, together
from contamination.scoring.score import cut_into_parts
from contamination.testsets.tokens import tokenize


def stored_scores(
    directory: Path,
    scorer: Scorer,
    texts: Sequence[Text],
    *,
    columns: Sequence[str] = DEFAULT_COLUMNS,
    reference: Scorer | None = None,
    **options: Any,
) -> pd.DataFrame:
    """Return the table of `contamination.membership.api.membership_scores`, kept in `directory`.

    Every process calls this with the same arguments and gets the whole table; a scorer that is
    spread over all devices lets one process do all. `options` are those of `membership_scores` that
    are numbers or text; what fails in one process is raised by all. The directory is for nothing
    else: parts of other texts, models or options are removed.
    """
    options |= {"columns": columns}
    scorers = [scorer, reference] if reference else [scorer]
    written = [one for one in texts if isinstance(one, str)]
    work = [*map(len, tokenize(scorer.tokenizer, written) if written else texts)]
    if not work:
        raise InputError(f"{directory}: there is no text to score; give one or more")
    order = random_stream(0, "parts of texts").permutation(len(work))
    smallest = min(one.batch_tokens for one in scorers)
    cut = cut_into_parts([work[i] for i in order], smallest, batches=1)
    parts = [sorted(int(order[i]) for i in part) for part in cut]
    contents = (one if isinstance(one, str) else repr(one.tolist()) for one in texts)
    key = sha256_of(*(one.revision for one in scorers), repr(sorted(options.items())), *contents)
    name = sha256_of(key, repr(parts))[:16]
    paths = [directory / f"{name}-{number:03d}.parquet" for number in range(len(parts))]
    first = processes().is_main_process

    def missing() -> list[int]:
        for path in set(directory.glob("*.parquet")) - set(paths) if first else ():
            path.unlink()
        return [i for i, path in enumerate(paths) if first and _read(path) is None]

    wanted = share(missing)[0]

    def fill() -> None:
        own = mine(wanted, alone=any(getattr(one, "spread", False) for one in scorers))
        hidden = None if first else True  # None: on a terminal alone
        for number in tqdm(own, directory.name, unit="part", leave=False, disable=hidden):
            rows = parts[number]
            chosen = [texts[i] for i in rows]
            table = membership_scores(
                scorer, chosen, numbers=rows, reference=reference, **options
            ).set_axis(rows)
            with replacing(paths[number]) as temporary:
                table.to_parquet(temporary)

    def read() -> pd.DataFrame:
        tables = {path: _read(path) for path in paths}
        if lost := [path for path, table in tables.items() if table is None]:
            raise InputError(f"{lost[0]}: cannot be read; all nodes must see it; run this again")
        return pd.concat(tables.values()).sort_index().rename_axis("text")

    if wanted:
        share(fill)
    return together(read)


def _read(path: Path) -> pd.DataFrame | None:
    """Read a part; None if there is none, or it is damaged."""
    with suppress(OSError, pa.ArrowException):
        return pd.read_parquet(path)
    return None
