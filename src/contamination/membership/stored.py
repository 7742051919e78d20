"""Scores of texts that are kept: a table in a folder, of which each part is scored once."""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from contamination.errors import InputError
from contamination.files import replacing, sha256_of
from contamination.membership import scores
from contamination.membership.api import DEFAULT_COLUMNS, Text, are_tokens, membership_scores
from contamination.randomness import random_stream
from contamination.scoring.contract import Scorer
from contamination.scoring.processes import distribute, processes
from contamination.scoring.work import cut_into_parts
from contamination.testsets.tokens import tokenize

Rows = list[int]  # numbers of the texts of a part


def stored_scores(
    directory: Path,
    scorer: Scorer,
    texts: Sequence[Text],
    *,
    columns: Sequence[str] = DEFAULT_COLUMNS,
    reference: Scorer | None = None,
    **options: Any,
) -> pd.DataFrame:
    """Return the table of `membership_scores`, kept in `directory`: every text is scored once.

    The texts are cut into parts by their tokens alone, in a random order, and each part
    is the work of one process, so that any number of processes and interruptions give
    the same numbers. The name of a part holds a checksum of all that its numbers depend
    on, and `SCORES_VERSION` for the code: the next run adds the parts that are missing
    and removes those of other texts, another model, other scores or another version.

    Every process calls this with the same arguments and gets the whole table; a scorer
    that is spread over all devices lets one process do all. What fails in one process
    is raised by all.

    Parameters
    ----------
    directory
        Folder of this table and nothing else.
    scorer, reference
        The model and, for `reference_*`, a second one.
    texts, columns
        Same as in `membership_scores`.
    options
        Options of `membership_scores` that are numbers or text.

    Raises
    ------
    InputError
        If there is no text, or for what `membership_scores` refuses.
    """
    options |= {"columns": columns}
    scorers = [scorer, reference] if reference else [scorer]
    parts = _parts(directory, scorers, texts, options)
    if processes().is_main_process:
        for other in set(directory.glob("*.parquet")) - set(parts):
            other.unlink()

    def scored(path: Path, rows: Rows) -> pd.DataFrame:
        with suppress(OSError, pa.ArrowException):  # there is none, or it is damaged
            kept = pd.read_parquet(path)
            if kept.index.tolist() == rows:
                return kept
        chosen = [texts[i] for i in rows]
        table = membership_scores(
            scorer,
            chosen,
            numbers=rows,
            reference=reference,
            **options,
        )
        with replacing(path) as temporary:
            table.set_axis(rows).to_parquet(temporary)
        return pd.read_parquet(path)

    spread = any(getattr(model, "spread", False) for model in scorers)
    tasks = [partial(scored, path, rows) for path, rows in parts.items()]
    tables = distribute(directory.name, tasks, alone=spread)
    return pd.concat(tables).sort_index().rename_axis("text")


def texts_to_score(
    directory: Path,
    scorer: Scorer,
    texts: Sequence[Text],
    *,
    columns: Sequence[str],
) -> list[int]:
    """Return the numbers of the texts that `stored_scores` would score, by its arguments."""
    missing: list[int] = []
    for path, rows in _parts(directory, [scorer], texts, {"columns": columns}).items():
        if not path.is_file():
            missing += rows
    return sorted(missing)


def _parts(
    directory: Path,
    scorers: Sequence[Scorer],
    texts: Sequence[Text],
    options: dict[str, Any],
) -> dict[Path, Rows]:
    """Return the file of each part of a table, and the texts whose rows are in it.

    `scorers` are the model and, if there is one, the reference; `options` have the
    columns.
    """
    if are_tokens(texts):
        tokens = list(texts)
    else:
        as_text = [text for text in texts if isinstance(text, str)]
        tokens = tokenize(scorers[0].tokenizer, as_text)
    work = [len(ids) for ids in tokens]
    if not work:
        raise InputError(f"{directory}: there is no text to score; give one or more")
    order = random_stream(0, "parts of texts").permutation(len(work))
    smallest = min(model.batch_tokens for model in scorers)
    parts: list[Rows] = []
    for part in cut_into_parts([work[i] for i in order], smallest, batches=1):
        parts.append(sorted(int(order[i]) for i in part))
    contents: list[str] = []
    for text in texts:
        contents.append(f"text {text}" if isinstance(text, str) else f"tokens {text.tolist()}")
    revisions = [model.revision for model in scorers]
    settings = repr((scores.SCORES_VERSION, sorted(options.items())))
    key = sha256_of(*revisions, settings, *contents)
    name = sha256_of(key, repr(parts))[:16]
    paths = [directory / f"{name}-{number:03d}.parquet" for number in range(len(parts))]
    return dict(zip(paths, parts, strict=True))
