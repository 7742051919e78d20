"""Scores of texts that are kept on disk: every text is scored once, by one of all processes.

The texts are cut into parts by their tokens alone, in a random order, and each part is the work of
one process, so that any number of processes and interruptions give the same numbers. The name of a
part holds a checksum of all that its numbers depend on: the next run adds the parts that are
missing and removes those of other texts, another model or other scores.
"""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from contamination.errors import InputError
from contamination.files import replacing, sha256_of
from contamination.membership.api import DEFAULT_COLUMNS, Text, membership_scores
from contamination.randomness import random_stream
from contamination.scoring.contract import Scorer
from contamination.scoring.processes import deal, processes
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
    if processes().is_main_process:
        for other in set(directory.glob("*.parquet")) - set(paths):
            other.unlink()

    def scored(number: int) -> pd.DataFrame:
        with suppress(OSError, pa.ArrowException):  # there is none, or it is damaged
            return pd.read_parquet(paths[number])
        rows = parts[number]
        chosen = [texts[i] for i in rows]
        table = membership_scores(scorer, chosen, numbers=rows, reference=reference, **options)
        with replacing(paths[number]) as temporary:
            table.set_axis(rows).to_parquet(temporary)
        return pd.read_parquet(paths[number])

    spread = any(getattr(one, "spread", False) for one in scorers)
    tables = deal(directory.name, [partial(scored, i) for i in range(len(paths))], alone=spread)
    return pd.concat(tables).sort_index().rename_axis("text")
