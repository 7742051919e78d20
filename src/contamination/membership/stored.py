"""Scores of texts that are kept on disk: every text is scored once, by one of all processes.

The texts are cut into parts by their tokens alone, in a random order, and a part is one batch of
work of one process. So one process and many, a run that was killed and one that was not, give the
same numbers. The next run does the parts that are missing; parts of other texts, another model or
other scores are written anew.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from tqdm import tqdm

from contamination.errors import InputError
from contamination.files import replacing, sha256_of
from contamination.membership.api import DEFAULT_COLUMNS, membership_scores, score_tokens
from contamination.randomness import random_stream
from contamination.scoring.contract import Scorer
from contamination.scoring.processes import mine, processes, share, together
from contamination.scoring.score import cut_into_parts
from contamination.testsets.tokens import tokenize

ROW, KEY = "row", b"key"  # column with the number of a text; whose part it is


def stored_scores(
    directory: Path,
    scorer: Scorer,
    texts: Sequence[str],
    *,
    columns: Sequence[str] = DEFAULT_COLUMNS,
    neighbours: int = 0,
    seed: int = 0,
    reference: Scorer | None = None,
    reference_per: str = "byte",
) -> pd.DataFrame:
    """Return the table of `contamination.membership.api.membership_scores`, kept in `directory`.

    Every process calls this with the same arguments and gets the whole table. Arguments and errors
    are those of `membership_scores`; whatever fails in one process is raised by all.
    """

    def score(rows: list[int]) -> pd.DataFrame:
        return membership_scores(
            scorer,
            [texts[i] for i in rows],
            numbers=rows,
            columns=columns,
            neighbours=neighbours,
            seed=seed,
            reference=reference,
            reference_per="token" if reference_per == "token" else "byte",
        )

    beside = reference.revision if reference else ""
    settings = repr((list(columns), neighbours, seed, reference_per))
    lengths = [len(ids) for ids in tokenize(scorer.tokenizer, texts)]
    key = sha256_of(scorer.revision, beside, settings, *texts)
    scorers = [scorer, reference] if reference else [scorer]
    return stored_rows(directory, key, score, lengths, *scorers)


def stored_token_scores(
    directory: Path, scorer: Scorer, sequences: Sequence[np.ndarray], columns: Sequence[str]
) -> pd.DataFrame:
    """Return the table of `contamination.membership.api.score_tokens`, kept in `directory`.

    As `stored_scores`.
    """

    def score(rows: list[int]) -> pd.DataFrame:
        return score_tokens(scorer, [sequences[i] for i in rows], columns)

    lengths = [len(ids) for ids in sequences]
    ids = (np.ascontiguousarray(one, dtype=np.int64).tobytes() for one in sequences)
    key = sha256_of(scorer.revision, repr(list(columns)), *ids)
    return stored_rows(directory, key, score, lengths, scorer)


def stored_rows(
    directory: Path,
    key: str,
    compute: Callable[[list[int]], pd.DataFrame],
    work: Sequence[int],
    *scorers: Scorer,
) -> pd.DataFrame:
    """Return a table with a row for each of `work`, of which `compute` makes any rows by number.

    Parameters
    ----------
    directory : its folder, for nothing else.
    key : names all that the numbers depend on; parts with another one are made anew.
    compute : numbers of rows, ascending -> those rows.
    work : tokens that each row costs.
    scorers : that work on them. Where one is spread over all devices, one process does all.
    """
    order = random_stream(0, "parts of texts").permutation(len(work))
    batch_tokens = min(scorer.batch_tokens for scorer in scorers)
    cut = cut_into_parts([work[i] for i in order], batch_tokens, batches=1)
    parts = [sorted(int(order[i]) for i in part) for part in cut]
    paths = [directory / f"part-{number:03d}.parquet" for number in range(len(parts))]
    first = processes().is_main_process
    alone = any(getattr(scorer, "spread", False) for scorer in scorers)

    def missing() -> list[int]:
        if not first:
            return []
        for path in set(directory.glob("part-*.parquet")) - set(paths):
            path.unlink()
        return [i for i, path in enumerate(paths) if _read(path, key, parts[i]) is None]

    wanted = share(missing)[0]

    def fill() -> None:
        own = mine(wanted, alone=alone)
        hidden = None if first else True  # None: on a terminal alone
        for number in tqdm(own, directory.name, unit="part", leave=False, disable=hidden):
            _write(paths[number], key, compute(parts[number]), parts[number])

    def read() -> pd.DataFrame:
        return pd.concat(_read_all(paths, key, parts)).set_index(ROW).sort_index()

    if wanted:
        share(fill)
    found = together(read) if parts else compute([])
    return found.rename_axis("text")


def _write(path: Path, key: str, table: pd.DataFrame, rows: Sequence[int]) -> None:
    numbered = table.reset_index(drop=True)
    numbered.insert(0, ROW, list(rows))
    arrow = pa.Table.from_pandas(numbered, preserve_index=False)
    with replacing(path) as temporary:
        pq.write_table(
            arrow.replace_schema_metadata({**(arrow.schema.metadata or {}), KEY: key}), temporary
        )


def _read(path: Path, key: str, rows: Sequence[int]) -> pd.DataFrame | None:
    """Read a part; None if there is none, it is damaged, or it is of something else."""
    with suppress(OSError, pa.ArrowException):
        arrow = pq.read_table(path)
        if (arrow.schema.metadata or {}).get(KEY) == key.encode():
            table: pd.DataFrame = arrow.to_pandas()
            if table[ROW].tolist() == list(rows):
                return table
    return None


def _read_all(
    paths: Sequence[Path], key: str, parts: Sequence[Sequence[int]]
) -> Iterator[pd.DataFrame]:
    for path, rows in zip(paths, parts, strict=True):
        table = _read(path, key, rows)
        if table is None:
            raise InputError(
                f"{path}: it cannot be read; on several nodes all must see it; run the same "
                "command again"
            )
        yield table
