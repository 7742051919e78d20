"""Oren's Figure 3 and Table 5 on the released checkpoints."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from contamination.errors import InputError
from contamination.membership.evaluate import detected_share, fit_threshold
from contamination.scoring.status import OK
from contamination.scoring.store import open_store
from contamination.statistics import TestResult, sharded_exact_test, sharded_t_test
from contamination.statistics.results import outcome_row
from contamination.tables import Layout, format_estimate, lay_out
from contamination.testsets.registry import entries
from reproduction.output.published import load_published
from reproduction.run.grid import Row, attempt

RESULTS = (
    "model",
    "dataset",
    "dup_count",
    "shards",
    "permutations",
    "test",
    "log10_p",
    "status",
)
RATES = (
    "model",
    "dataset",
    "dup_count",
    "spans",
    "threshold",
    "tuned_fpr",
    "tuned_recall",
    "rate_percent",
    "rate_low",
    "rate_high",
    "published_percent",
    "status",
)
TESTS: dict[str, Callable[[np.ndarray], TestResult]] = {
    "sharded_t": sharded_t_test,
    "sharded_exact": sharded_exact_test,
}
HIGHER = "contam-1.4b-dupcount-higher"  # the checkpoint of Table 5


def by_shards(
    cells: pd.DataFrame,
    permutations: int,
    *,
    directory: Path,
) -> pd.DataFrame:
    """Run both tests on shards in each number of shards (Figure 3a): `RESULTS`."""
    rows: list[Row] = []
    for cell in cells.to_dict("records"):
        rows += _results(cell, permutations, directory, draws=[])
    return pd.DataFrame(rows).reindex(columns=list(RESULTS))


def by_permutations(
    cells: pd.DataFrame,
    permutations: Sequence[int],
    *,
    scored: int,
    shards: int,
    directory: Path,
    replicates: int,
    rng: np.random.Generator,
) -> pd.DataFrame:
    """Run both tests with fewer permutations (Figure 3b): a row for each replicate.

    Orderings of a shard are independent, so any subset of the stored ones will do.

    Parameters
    ----------
    cells
        The table of the measurement.
    permutations
        Numbers of permutations.
    scored
        Number of stored permutations, from which subsets are drawn.
    shards
        Number of shards of the stores to read.
    directory
        Folder of the stores.
    replicates
        Subsets of each number.
    rng
        Draws the subsets.
    """
    rows: list[Row] = []
    for cell in cells[cells["shards"] == shards].to_dict("records"):
        for count in permutations:
            draws = [1 + rng.permutation(scored)[:count] for _ in range(replicates)]
            rows += _results(cell, scored, directory, draws=draws)
    return pd.DataFrame(rows).reindex(columns=list(RESULTS))


def _results(
    cell: dict[Any, Any],
    permutations: int,
    directory: Path,
    *,
    draws: Sequence[np.ndarray],
) -> list[Row]:
    """Return a row for each test and draw of orderings.

    Without draws all orderings count.
    """
    row = {name: cell[name] for name in ("model", "dataset", "dup_count", "shards", "status")}
    if row["status"] != OK:
        return [row]
    log_probs = open_store(directory / cell["store"]).log_probs(permutations)
    rows = []
    for kept in draws or [np.arange(1, permutations + 1)]:
        subset = log_probs[:, [0, *kept]]  # the canonical ordering stays
        for name, test in TESTS.items():
            rows.append(row | outcome_row(test(subset)) | {"test": name})
    return rows


def detection_rates(
    spans: pd.DataFrame,
    *,
    sets: Sequence[str],
    members: Sequence[str],
    non_members: Sequence[str],
    fpr: float,
    published: Path | str,
) -> pd.DataFrame:
    """Measure which share of the spans of each set Min-K% calls members (Table 5).

    The threshold of a model is the smallest that calls at most a share `fpr` of the
    spans of `non_members` members; `tuned_recall` is the share of those of `members`
    that it detects. Intervals (95%, Clopper and Pearson) take spans as independent.
    Raises InputError for an `fpr` that cannot be.
    """
    if not 0 < fpr < 1:
        raise InputError(f"fpr is {fpr}: give a rate between 0 and 1, such as 0.05")
    printed = load_published(published, "oren2024_table5_mink").set_index("dataset")
    rows = []
    for model, own in spans.groupby("model", sort=False):
        tuning = own[own["dataset"].isin([*members, *non_members]) & (own["status"] == OK)]
        is_member = tuning["dataset"].isin(list(members))
        for dataset in sets:
            of_set = own[own["dataset"] == dataset]
            row = {
                "model": model,
                "dataset": dataset,
                "dup_count": of_set["dup_count"].iloc[0],
                "status": of_set["status"].iloc[0],
            }
            title = entries()[dataset].title if dataset in entries() else dataset
            if model == HIGHER and title in printed.index:
                row["published_percent"] = printed.loc[title, "mink_detected_percent"]
            tuned = partial(
                _rate,
                of_set["score"],
                tuning[is_member]["score"],
                tuning[~is_member]["score"],
                fpr,
            )
            rows.append(attempt(row, tuned))
    return pd.DataFrame(rows).reindex(columns=list(RATES))


def _rate(spans: pd.Series, members: pd.Series, others: pd.Series, fpr: float) -> Row:
    """Tune the threshold, and return the share of spans that reach it."""
    for side, name in ((members, "tuning_members"), (others, "tuning_non_members")):
        if side.empty:
            raise InputError(f"no span of {name} was scored, so there is no threshold")
    threshold = fit_threshold(others, fpr=fpr)
    share, low, high = detected_share(spans, threshold)
    return {
        "spans": len(spans),
        "threshold": threshold,
        "tuned_fpr": float((others >= threshold).mean()),
        "tuned_recall": float((members >= threshold).mean()),
        "rate_percent": 100 * share,
        "rate_low": 100 * low,
        "rate_high": 100 * high,
    }


def min_k_layout(rates: pd.DataFrame, k: float) -> Layout:
    """Lay out Table 5: percent of the detected spans of each set, ours and the paper's."""

    def cell(row: dict[Any, Any]) -> dict[str, str]:
        ours = str(row["status"]).partition(":")[0]
        if ours == OK:
            ours = format_estimate(
                row["rate_percent"],
                row["rate_low"],
                row["rate_high"],
                digits=0,
            )
        paper = format_estimate(row["published_percent"], digits=0, interval=False)
        return {f"Min-{k:g}% (percent)": ours, "Paper": paper}

    keys = {
        "model": "Model",
        "dataset": "Set",
        "dup_count": "Duplication count",
        "spans": "Spans",
    }
    return lay_out(rates, keys, cell)


def power_panels(
    open_models: pd.DataFrame,
    models: Sequence[str],
) -> dict[str, pd.DataFrame]:
    """Return the rows of Figure 2 by model, those with few copies first."""
    is_planted = open_models["dup_count"].fillna(0) > 0
    done = open_models[is_planted & (open_models["status"] == OK)].astype(
        {"dup_count": int},
    )
    panels = {}
    for model in models:
        own = done[done["model"] == model]
        if len(own):
            panels[model] = own
    return dict(sorted(panels.items(), key=_most_copies))


def _most_copies(panel: tuple[str, pd.DataFrame]) -> int:
    return int(panel[1]["dup_count"].max())


def panels_of(results: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the rows of Figure 3 that were measured, by model."""
    done = results[results["status"] == OK]
    return {str(model): rows for model, rows in done.groupby("model", sort=False)}
