"""Every model on every set: one model in memory at a time, and a status for each cell.

If a model or a set is unavailable, its rows say why, and the others are measured.
Scores stay on disk, so an interrupted measurement resumes where it stopped.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
from tqdm import tqdm

from contamination.audit.request import Request
from contamination.membership.blind import SCORED, blind_rows
from contamination.scoring.contract import Scorer
from contamination.scoring.models import ModelEntry
from contamination.scoring.status import FAILURES, OK, status_of
from contamination.tables import format_p
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.records import Record
from contamination.testsets.registry import Entry
from contamination.testsets.sources import (
    cache_path,
    fetch,
    locate,
    open_test_set,
)
from contamination.testsets.verified import read_origin, read_verified

Row = dict[str, Any]  # of a table, by the names of its columns
Key = TypeVar("Key")
Set = TypeVar("Set")
Model = TypeVar("Model")


def grid(
    models: Sequence[ModelEntry],
    sets_of: Callable[[ModelEntry], Iterable[tuple[Row, Set | str]]],
    compute_cell: Callable[[ModelEntry, Model, Set], Row],
    *,
    open_model: Callable[[ModelEntry], tuple[Model, Row]],
) -> list[Row]:
    """Compute a cell for each model and set; return a row for each, failed ones too.

    A row holds `model` (its name), the columns of `sets_of`, `open_model` and
    `compute_cell`, and `status`: "ok", "failed: reason", or "not run here: reason"
    where the hub is out of reach.

    Parameters
    ----------
    models
        Opened one after the other; each is freed before the next one is loaded.
    sets_of
        Takes a model and returns, for each set, the columns that describe it, and the
        set, or the reason why there is none. A model without any set is not opened.
    compute_cell
        Takes the entry, the open model and the set, and returns the measured columns.
    open_model
        Takes an entry and returns the open model, and the columns that describe it. It
        fails in all processes or in none, as `Access.open_model` does.
    """
    from contamination.device import free_memory

    rows: list[Row] = []
    for entry in tqdm(models, "models", unit="model", leave=False, disable=None):
        opened: tuple[Model, Row] | None = None
        problem = ""
        described_sets = list(sets_of(entry))
        if any(not isinstance(one_set, str) for _, one_set in described_sets):
            try:
                opened = open_model(entry)
            except FAILURES as error:
                problem = status_of(error)
        about_model: Row = opened[1] if opened else {}
        bar = tqdm(described_sets, entry.name, unit="cell", leave=False, disable=None)
        for about_set, one_set in bar:
            row: Row = {"model": entry.name} | about_set | about_model | {"status": OK}
            if opened is None or isinstance(one_set, str):
                row["status"] = problem or one_set
            else:
                row = attempt(row, partial(compute_cell, entry, opened[0], one_set))
            rows.append(row)
        opened = None
        free_memory()  # the model goes before the next one comes
    return rows


def attempt(row: Row, compute: Callable[[], Row]) -> Row:
    """Add the computed values to a row of status "ok"; else give the failure as its status."""
    if row["status"] != OK:
        return row
    try:
        return row | compute()
    except FAILURES as error:
        return row | {"status": status_of(error)}


def p_or_status(row: Row, *, bold: bool) -> str:
    """Return the p-value of a row as text, or "failed" or "not run here"."""
    if row["status"] == OK:
        return format_p(row["p"], row["log10_p"], bold=bold)
    return str(row["status"]).partition(":")[0]


def load_each(
    keys: Iterable[Key],
    load: Callable[[Key], Set],
    *,
    at_hand: Callable[[Key], bool] = lambda key: True,
) -> dict[Key, Set | str]:
    """Load each set, or return why it is unavailable, the same in all processes.

    Parameters
    ----------
    keys
        Keys of the sets, each loaded once.
    load
        Takes a key and returns the set.
    at_hand
        Whether a set can be loaded without the network. After one that is out of reach,
        the others are loaded only if they are at hand.

    Returns
    -------
    sets : key -> the set, or the status that says why it is unavailable.
    """
    sets: dict[Key, Set | str] = {}
    unreachable = ""
    for key in tqdm(
        list(dict.fromkeys(keys)),
        "sets",
        unit="set",
        leave=False,
        disable=None,
    ):
        try:
            if unreachable and not at_hand(key):
                sets[key] = unreachable
            else:
                sets[key] = load(key)
        except FAILURES as error:
            status = status_of(error)
            sets[key] = status
            if status.startswith("not run") and not unreachable:
                unreachable = status
    # a notebook is one process, and has no torch
    if os.environ.get("WORLD_SIZE", "1") != "1":
        from contamination.scoring.processes import gather

        problems = {key: value for key, value in sets.items() if isinstance(value, str)}
        for problems_of_process in gather(lambda: problems):
            # a set that one process cannot open, none scores
            sets |= problems_of_process
    return sets


class Access:
    """Open sets and models for a measurement, and score the sets.

    `reproduction.stages.costs` has one that counts instead: `make plan` measures with
    it.
    """

    def open_set(
        self,
        name: str,
        *,
        max_records: int | None,
        lines: bool = False,
    ) -> ExampleSet:
        """Open a test set by its records, or by the `lines` of its file.

        Parameters
        ----------
        name
            Registered name, file or directory.
        max_records
            Number of records to read; None reads all.
        lines
            Whether each line of the file is an example.
        """
        template = "line/1" if lines else None
        return open_test_set(name, template=template, max_records=max_records)

    def read(
        self,
        entry: Entry,
        count: int,
        tokens: float,
    ) -> tuple[list[Record], str, str]:
        """Return the records of a file, where they lie, and the commit if one is known.

        Parameters
        ----------
        entry
            The registered file.
        count, tokens
            Records and tokens of each, with which a plan without the file reckons.
        """
        path = locate(entry) or fetch(entry)
        commit = None
        if path == cache_path(entry):
            commit = read_origin(path).get("commit")
        return read_verified(entry, path), str(path), commit or ""

    def open_model(self, entry: ModelEntry) -> Scorer:
        """Open a model in all processes, its weights still unread, or raise in all."""
        from contamination.scoring import local
        from contamination.scoring.processes import run_in_all

        return run_in_all(lambda: local.open_scorer(entry))

    def parameters(self, scorer: Scorer) -> Row:
        """Return the parameters of an open model as a column, if they can be counted."""
        from contamination.scoring.loading import count_parameters

        config = getattr(scorer, "config", None)
        if config is None:
            return {}
        return {"parameters": count_parameters(config)}

    def score_orders(
        self,
        test: str,
        scorer: Scorer,
        examples: ExampleSet,
        request: Request,
        *,
        keep_revisions: bool = True,
    ) -> str:
        """Score the part of a store that a test lacks.

        Parameters
        ----------
        test
            Name of the test.
        scorer
            The open model.
        examples
            The test set.
        request
            Shards, permutations and the directory of the stores.
        keep_revisions
            Whether a store of another revision of the model stays with the new one, or
            is replaced.

        Returns
        -------
        folder : of the store, in the request's directory.
        """
        from contamination.audit.plan import Work

        own_request = replace(request, tests=[test])
        work = Work(scorer, examples, own_request, keep_revisions=keep_revisions)
        (store,) = work.fill(replace=not keep_revisions)
        return store.directory.relative_to(request.directory).as_posix()

    def score_texts(
        self, folder: Path, scorer: Scorer, texts: Sequence[Any], **options: Any
    ) -> pd.DataFrame:
        """Return the table of `contamination.membership.stored.stored_scores`.

        The files in `folder` are named by the options, so none is added here.

        Parameters
        ----------
        folder
            Folder of the files with the scores; its name says the options.
        scorer
            Scorer of the model.
        texts
            Texts to score.
        options
            Further arguments of `stored_scores`.
        """
        from contamination.membership.stored import stored_scores

        return stored_scores(folder, scorer, texts, **options)

    def score_blind(self, splits: Sequence[Row]) -> pd.DataFrame:
        """Score splits without a model; each holds the arguments of `blind_rows`."""
        tables = [blind_rows(**split) for split in splits]
        if not tables:
            return pd.DataFrame(columns=list(SCORED))
        return pd.concat(tables, ignore_index=True)


ACCESS = Access()
