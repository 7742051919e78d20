"""What a run measured of the published cells: the tables of its other notebooks, by cell."""

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from contamination.scoring.status import OK
from contamination.tables import read_csv
from contamination.testsets.registry import entries
from reproduction.notebooks.papers.cells import (
    AVERAGE,
    FISHER,
    WIKIMIA_MODELS,
    WIKIMIA_SCORES,
    WIKIMIA_VARIANTS,
    our_name,
    plain,
)

# Result table -> the notebook that writes it.
NOTEBOOKS = {
    "checkpoints": "12_released_checkpoints",
    "checkpoints_min_k": "12_released_checkpoints",
    "open_models": "03_open_model_audit",
    "mmlu_subsets": "04_mmlu_fisher",
    "mmlu_fisher": "04_mmlu_fisher",
    "wikimia": "06_wikimia",
    "assumptions_within": "08_detection_assumptions",
    "assumptions_cross": "08_detection_assumptions",
    "assumptions_perplexity": "08_detection_assumptions",
}
SETTINGS = ("examples", "shards", "permutations", "spans", "members", "non_members")
PAPER_TEST = "sharded_t"  # whose exclusions Fisher's method leaves out
READ_ONCE = "pre-training"  # phase of the released models
FU_METRICS = {
    **{f"ppl_{k}": f"PPL_{k}" for k in (50, 100, 200)},
    **{f"min_prob_{k}": f"Min {k}% token" for k in (5, 15, 25)},
    **{f"mem_{k}": f"Mem {k}" for k in (5, 15, 25)},
    **{f"entropy_{k}": f"Entropy {k}" for k in (5, 15, 25)},
}
FU_AVERAGE = "Average AUC"  # row of Table 3

Key = tuple[str, ...]  # model, then what tells the cells of a model apart; all `plain`
Row = dict[Any, Any]


@dataclass(frozen=True)
class Measured:
    """A cell of a run.

    Attributes
    ----------
    value : in the unit of the published cell, a p-value as log10 p; NaN unless the status is "ok".
    status : "ok", or why there is no value.
    settings : how many examples, permutations and so on it took, where the table says so.
    at_floor : the test could give no smaller p-value.
    note : what else is to be known.
    """

    value: float
    status: str = OK
    settings: Mapping[str, int] = field(default_factory=dict)
    at_floor: bool = False
    note: str = ""


Found = Iterator[tuple[tuple[Any, ...], Measured]]  # what a table lacks is NaN


def measured_cells(
    results: Path | str, notebooks: Collection[str]
) -> dict[str, dict[Key, Measured]]:
    """Read what the `notebooks` that ran have measured: result table -> key -> cell.

    A model or a part that could not be had is a key with "" in the place of what it lacks. Raises
    InputError if a table of one of these notebooks is missing.
    """
    return {
        name: {
            tuple(plain(_text(part)) for part in key): cell
            for key, cell in READERS[name](read_csv(results, name))
        }
        for name, notebook in NOTEBOOKS.items()
        if notebook in notebooks
    }


def _measured(row: Row, value: str, **more: Any) -> Measured:
    """Cell of a row: the `value` of that column, where its status is "ok"."""
    settings = {name: int(row[name]) for name in SETTINGS if not pd.isna(row.get(name))}
    if row["status"] != OK:
        return Measured(math.nan, row["status"], settings)
    return Measured(float(row[value]), OK, settings, **more)


def _text(value: Any) -> str:
    return "" if pd.isna(value) else str(value)


def _tested(table: pd.DataFrame, dataset: str) -> Found:
    """Cells of tables of tests; `dataset` is the column with the name of the paper."""
    for row in table.to_dict("records"):
        floor = 1 / (row["permutations"] + 1) if row["test"] == "permutation" else 0.0
        cell = _measured(row, "log10_p", at_floor=bool(row["p"] <= floor * (1 + 1e-9)))
        yield (row["model"], row[dataset], row["test"]), cell


def _checkpoints(table: pd.DataFrame) -> Found:
    return _tested(table, "title")


def _open_models(table: pd.DataFrame) -> Found:
    titles = {name: entry.title for name, entry in entries().items()}
    return _tested(table.assign(title=table["dataset"].map(titles)), "title")


def _min_k(table: pd.DataFrame) -> Found:
    for row in table.to_dict("records"):
        yield (row["model"], row["title"]), _measured(row, "rate_percent")


def _mmlu_subsets(table: pd.DataFrame) -> Found:
    ours = table[table["source"] == "measured"]
    for row in ours.to_dict("records"):
        cell = _measured(row, "log10_p")
        yield (row["model"], row["subset"], row["test"]), cell
    tested = ours[(ours["test"] == PAPER_TEST) & (ours["status"] == OK)]
    excluded = tested.groupby("subset")["excluded"].any().astype(bool)
    if len(excluded):
        dropped, note = int(excluded.sum()), f"of {len(excluded)} subsets"
        for name, count in (("dropped", dropped), ("kept", len(excluded) - dropped)):
            yield ("", f"mmlu_subsets_{name}", PAPER_TEST), Measured(count, note=note)


def _mmlu_fisher(table: pd.DataFrame) -> Found:
    for row in table[table["source"] == "measured"].to_dict("records"):
        cell = _measured(row, "log10_p", note=f"{row['subsets_kept']} subsets kept")
        yield (row["model"], FISHER, row["test"]), cell


def _wikimia(table: pd.DataFrame) -> Found:
    """Table 1 by its means over the lengths of the texts, and its averages over all columns."""
    rows = table[table["source"] == "wikimia"]
    done, failed = rows[rows["status"] == OK], rows[rows["status"] != OK]
    for row in failed.to_dict("records"):
        cell = Measured(math.nan, row["status"])
        yield (row["model"], row["score"], row["variant"]), cell
    keys = ["model", "score", "variant"]
    means = done.groupby(keys)[["auc", "tpr_at_5_fpr"]].mean()
    lengths = done.groupby(keys)["length"].agg(lambda found: ", ".join(map(str, sorted(found))))
    for key, auc in means["auc"].items():
        yield key, Measured(auc, note=f"mean over {lengths[key]} words")
    yield from _wikimia_averages(means, failed)


def _wikimia_averages(means: pd.DataFrame, failed: pd.DataFrame) -> Found:
    """The averages of Tables 1 and 6, over all columns of Table 1 or not at all."""
    columns = [(our_name(m), v) for m in WIKIMIA_MODELS for v in WIKIMIA_VARIANTS.values()]
    for score in WIKIMIA_SCORES.values():
        have = [(m, score, v) for m, v in columns if (m, score, v) in means.index]
        lost = failed[failed["model"].isna() | failed["model"].isin([m for m, _ in columns])]
        for measure, column, scale in (("AUC", "auc", 1), ("TPR@5%FPR", "tpr_at_5_fpr", 100)):
            if len(have) == len(columns):
                cell = Measured(scale * float(means.loc[have, column].mean()))
            elif have:
                why = lost["status"].iloc[0].partition(":")[0] if len(lost) else "not asked"
                few = f"{len(have)} of the {len(columns)} columns of Table 1 were measured"
                cell = Measured(math.nan, f"{why}: {few}, and this is their average")
            elif len(lost):
                cell = Measured(math.nan, str(lost["status"].iloc[0]))
            else:
                continue
            yield (AVERAGE, score, measure), cell


def _of_released(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of texts that were read once, and of models or texts that could not be had."""
    return table[(table["phase"] == READ_ONCE) | (table["status"] != OK)]


def _within(table: pd.DataFrame) -> Found:
    rows = _of_released(table)
    for row in rows.to_dict("records"):
        metric = FU_METRICS.get(row["metric"], row["metric"])
        yield (row["model"], metric, row["domain"]), _measured(row, "auc_percent")
    done = rows[(rows["status"] == OK) & rows["metric"].isin(FU_METRICS)]
    for (model, domain), found in done.groupby(["model", "domain"], sort=False):
        if len(found) == len(FU_METRICS):
            cell = Measured(found["auc_percent"].mean(), note="mean of the 12 scores above")
            yield (model, FU_AVERAGE, domain), cell


def _cross(table: pd.DataFrame) -> Found:
    for row in _of_released(table).to_dict("records"):
        metric = FU_METRICS.get(row["metric"], row["metric"])
        domains = (row["seen_domain"], row["unseen_domain"])
        yield (row["model"], *domains, metric), _measured(row, "auc_percent")


def _perplexity(table: pd.DataFrame) -> Found:
    for row in _of_released(table).to_dict("records"):
        yield (row["model"], row["side"], row["domain"]), _measured(row, "perplexity")


READERS: dict[str, Callable[[pd.DataFrame], Found]] = {
    "checkpoints": _checkpoints,
    "checkpoints_min_k": _min_k,
    "open_models": _open_models,
    "mmlu_subsets": _mmlu_subsets,
    "mmlu_fisher": _mmlu_fisher,
    "wikimia": _wikimia,
    "assumptions_within": _within,
    "assumptions_cross": _cross,
    "assumptions_perplexity": _perplexity,
}
