"""Every model on every set: one model in memory at a time, and a status for each cell.

A model or a set that cannot be had is rows that say why, and the others go on. What has been scored
stays on disk, so an interrupted measurement resumes where it stopped.
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
    read_origin,
    read_verified,
)

Row = dict[str, Any]
Key = TypeVar("Key")
Set = TypeVar("Set")
Model = TypeVar("Model")


def grid(
    models: Sequence[ModelEntry],
    asked: Callable[[ModelEntry], Iterable[tuple[Row, Set | str]]],
    cell: Callable[[ModelEntry, Model, Set], Row],
    *,
    open_model: Callable[[ModelEntry], tuple[Model, Row]],
) -> list[Row]:
    """Compute a cell for each model and set; return a row for each, whatever happens.

    A row holds `model` (its name), what `asked`, `open_model` and `cell` add, and `status`: "ok",
    "failed: reason", or "not run here: reason" where the hub is out of reach.

    Parameters
    ----------
    models : opened one after the other; each is freed before the next one is loaded.
    asked : model -> what its rows say of each set, and the set, or the reason why there is none. A
        model without any set is not opened.
    cell : entry, open model, set -> what was measured.
    open_model : entry -> the open model, and what its rows say of it; errors are those of all
        processes, as in `Access.open_model`.
    """
    from contamination.device import free_memory

    rows: list[Row] = []
    for entry in tqdm(models, "models", unit="model", leave=False, disable=None):
        opened: tuple[Model, Row] | None = None
        problem, wanted = "", list(asked(entry))
        if any(not isinstance(one, str) for _, one in wanted):
            try:
                opened = open_model(entry)
            except FAILURES as error:
                problem = status_of(error)
        known: Row = opened[1] if opened else {}
        for about, one in tqdm(wanted, entry.name, unit="cell", leave=False, disable=None):
            row: Row = {"model": entry.name, **about, **known, "status": OK}
            if opened is None or isinstance(one, str):
                rows.append(row | {"status": problem or one})
            else:
                rows.append(attempt(row, partial(cell, entry, opened[0], one)))
        opened = None
        free_memory()  # the model goes before the next one comes
    return rows


def attempt(row: Row, compute: Callable[[], Row]) -> Row:
    """Add what is computed to a row whose status is "ok", or say there why it could not be."""
    if row["status"] != OK:
        return row
    try:
        return row | compute()
    except FAILURES as error:
        return row | {"status": status_of(error)}


def p_or_status(row: Row, *, bold: bool) -> str:
    """Write the p-value of a row, or "failed" or "not run here" where its status is not "ok"."""
    if row["status"] == OK:
        return format_p(row["p"], row["log10_p"], bold=bold)
    return str(row["status"]).partition(":")[0]


def load_each(
    keys: Iterable[Key],
    load: Callable[[Key], Set],
    *,
    at_hand: Callable[[Key], bool] = lambda key: True,
) -> dict[Key, Set | str]:
    """Load each set, or say why it cannot be had, the same in all processes.

    After one that is out of reach no other is asked for unless it is `at_hand`.
    """
    found: dict[Key, Set | str] = {}
    unreachable = ""
    for key in tqdm(list(dict.fromkeys(keys)), "sets", unit="set", leave=False, disable=None):
        try:
            found[key] = unreachable if unreachable and not at_hand(key) else load(key)
        except FAILURES as error:
            found[key] = status = status_of(error)
            unreachable = unreachable or (status if status.startswith("not run") else "")
    lost = {key: one for key, one in found.items() if isinstance(one, str)}
    if os.environ.get("WORLD_SIZE", "1") != "1":  # a notebook is one process, and has no torch
        from contamination.scoring.processes import share

        for problems in share(lambda: lost):
            found |= problems  # what one process cannot open, none scores
    return found


class Access:
    """How a measurement gets at sets, at models and at what these say of the sets.

    `reproduction.stages.costs` has one that counts instead: `make plan` measures with it.
    """

    def open_set(self, name: str, *, max_records: int | None, lines: bool = False) -> ExampleSet:
        """Open a test set by its records, or by the `lines` of its file."""
        return open_test_set(name, template="line/1" if lines else None, max_records=max_records)

    def read(self, entry: Entry, count: int, tokens: float) -> tuple[list[Record], str, str]:
        """Return the records of a file, where they lie, and the commit if one is known.

        A plan that has no file reckons with `count` records of so many tokens.
        """
        path = locate(entry) or fetch(entry)
        commit = read_origin(path).get("commit") if path == cache_path(entry) else None
        return read_verified(entry, path), str(path), commit or ""

    def open_model(self, entry: ModelEntry) -> Scorer:
        """Open a model in all processes, its weights still unread, or raise in all."""
        from contamination.scoring import local
        from contamination.scoring.processes import together

        return together(lambda: local.open_scorer(entry))

    def parameters(self, scorer: Scorer) -> Row:
        """Say how many parameters an open model has, where they can be counted."""
        from contamination.scoring.loading import count_parameters

        config = getattr(scorer, "config", None)
        return {"parameters": count_parameters(config)} if config is not None else {}

    def score_orders(
        self, test: str, scorer: Scorer, examples: ExampleSet, request: Request, **settings: Any
    ) -> str:
        """Score what a test lacks; return the folder of its store in the request's directory.

        `settings` are those of `contamination.audit.plan.Work`; it keeps revisions here.
        """
        from contamination.audit.plan import Work

        settings = {"keep_revisions": True} | settings
        work = Work(scorer, examples, replace(request, tests=[test]), **settings)
        (found,) = work.fill(replace=not work.keep_revisions)
        return found.directory.relative_to(request.directory).as_posix()

    def score_texts(
        self, folder: Path, scorer: Scorer, texts: Sequence[Any], **settings: Any
    ) -> pd.DataFrame:
        """Return the table of `contamination.membership.api.stored_scores`."""
        from contamination.membership.api import stored_scores

        return stored_scores(folder, scorer, texts, **settings)

    def score_blind(self, splits: Sequence[Row]) -> pd.DataFrame:
        """Score splits without a model; each holds the arguments of `blind_rows`."""
        found = [blind_rows(**split) for split in splits]
        return pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=list(SCORED))


ACCESS = Access()
