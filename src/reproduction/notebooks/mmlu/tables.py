"""Tables of MMLU: the subsets kept, and Fisher's p.

Oren (section 4.3) drop a subset where a negative control rejects, a model that cannot
be contaminated, and combine the p-values of the others by Fisher's method. Published
p-values (Table 4 of Oren) and those measured here go through the same filter and the
same combination.
"""

import math
from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from contamination.audit.registry import TESTS
from contamination.scoring.status import OK
from contamination.scoring.store import open_store
from contamination.statistics import cauchy, fisher, harmonic_mean
from contamination.statistics.results import outcome_row
from contamination.tables import format_estimate, format_p, lay_out
from reproduction.notebooks.mmlu.columns import FISHER_COLUMNS, ROWS, SUBSET_COLUMNS, TYPES
from reproduction.notebooks.mmlu.measure import (
    BASELINE,
    COMPRESSOR,
    FAMILY,
    STORES,
    Segmented,
    title,
)
from reproduction.output.published import (
    AUDITED,
    CONTROLS,
    MEASURED,
    STRICTER,
    published_p,
)
from reproduction.run.experiment import Experiment, named_models
from reproduction.run.grid import Row, p_or_status

TEST = "sharded_t"  # of the paper: 50 shards, 1,000 permutations


def judge_stores(
    experiment: Experiment,
    cells: pd.DataFrame,
    sets: Segmented,
    permutations: int,
    published: Path | str,
) -> pd.DataFrame:
    """Test every cell of `measure` that was scored: rows as `ROWS`.

    published_p is that of the model in Table 4, by record, in the directory `published`.

    Parameters
    ----------
    experiment
        The run.
    cells
        The table of `measure`.
    sets
        Segmentation -> subset -> its examples.
    permutations
        Number of permutations of each shard.
    published
        Directory of the papers' tables.
    """
    rows: list[Row] = cells[cells["status"] == OK].to_dict("records")
    for row in rows:
        row["examples"] = len(sets[row["segmentation"]][row["subset"]].examples)
        if row["segmentation"] == "record":
            (entry,) = named_models(experiment, [row["model"]])
            row["published_p"] = published_p(entry, FAMILY + row["subset"], published)
        store = open_store(experiment.build / STORES / row["store"])
        row["tokens_scored"] = store.tokens_read(permutations)
        row |= outcome_row(TESTS[row["test"]].result(store, permutations))
    return pd.DataFrame(rows, columns=list(ROWS))


def published_subsets(table4: pd.DataFrame, exclude_below: float) -> pd.DataFrame:
    """Return Table 4 in long form: a row for each model and subset, as `SUBSET_COLUMNS`.

    `excluded` is true where the p-value of BioMedLM or GPT-2 XL is below
    `exclude_below`. `p` and `log10_p` are for values measured here, and empty.
    """
    models = AUDITED | CONTROLS
    long = table4.rename(columns={"size": "examples"} | models).melt(
        ["subset", "examples"],
        list(models.values()),
        var_name="model",
        value_name="published_p",
    )
    rows = long.assign(source="published", test=TEST)
    return _excluded(rows, _of_controls(rows, exclude_below), exclude_below)


def _of_controls(rows: pd.DataFrame, exclude_below: float) -> pd.DataFrame:
    """Return the published p-values of the paper's controls below that level."""
    is_control = rows["model"].isin(CONTROLS.values())
    return rows[is_control & (rows["published_p"] < exclude_below)]


def measured_subsets(
    cells: pd.DataFrame,
    measured: pd.DataFrame,
    model_free: pd.DataFrame,
    controls: list[str],
    exclude_below: float,
    table4: pd.DataFrame,
) -> pd.DataFrame:
    """Return the subsets measured by record under two filters, as `SUBSET_COLUMNS`.

    Of the `cells` that could not be measured, which come last, `status` says why. The
    paper's filter (`MEASURED`): a control excludes a subset where its p-value is below
    `exclude_below` in the same test; without any `controls` those of `table4` decide,
    and a subset that it lacks is out. Ours (`STRICTER`) lets the zlib baseline exclude
    as well, in all tests.

    Parameters
    ----------
    cells
        The table of `measure`.
    measured
        The table of `judge_stores`.
    model_free
        The table of `model_free`.
    controls
        Names of control models that were measured.
    exclude_below
        p-value of a control below which a subset is out.
    table4
        The table of `published_subsets`.
    """
    by_record = measured[measured["segmentation"] == "record"]
    free = model_free[model_free["segmentation"] == "record"]
    level = math.log10(exclude_below)
    tests = by_record[["test"]].drop_duplicates()
    if controls:
        is_control = by_record["model"].isin(controls)
        rejected_by_controls = by_record[is_control & (by_record["log10_p"] < level)]
    else:
        published = _of_controls(table4, exclude_below)[["subset", "model"]]
        rejected_by_controls = published.merge(tests, "cross")
    rejected = free[free["compressor_log10_p"] < level]
    rejected_by_zlib = rejected[["subset"]].merge(tests, "cross").assign(model=COMPRESSOR)
    rejected_by_any = pd.concat([rejected_by_controls, rejected_by_zlib])
    tables = []
    for source, excluding in {MEASURED: rejected_by_controls, STRICTER: rejected_by_any}.items():
        table = _excluded(by_record.assign(source=source), excluding, exclude_below)
        if not controls:
            unjudged = ~table["excluded"] & ~table["subset"].isin(table4["subset"])
            table.loc[unjudged, "excluded"] = True
            table.loc[unjudged, "reason"] = "not in Table 4"
        tables.append(table)
    return pd.concat([*tables, _not_measured(cells)], ignore_index=True)


def _not_measured(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells by record that could not be measured, as `SUBSET_COLUMNS`."""
    lost = cells[(cells["segmentation"] == "record") & (cells["status"] != OK)]
    lost = lost.assign(source=MEASURED, excluded=False, reason="")
    return lost.reindex(columns=list(SUBSET_COLUMNS)).astype(TYPES)


def _excluded(
    rows: pd.DataFrame,
    rejected: pd.DataFrame,
    exclude_below: float,
) -> pd.DataFrame:
    """Return the rows with the subsets excluded that a control has rejected."""
    keys = ["subset", "test"]
    models = rejected.groupby(keys)["model"].agg(", ".join)
    reasons = (f"p < {exclude_below:g} under " + models).rename("reason")
    joined = rows.reset_index(drop=True).join(reasons, on=keys).assign(status=OK)
    joined["excluded"] = joined["reason"].notna()
    joined["reason"] = joined["reason"].fillna("")
    # Of no row, too: pandas joins columns without a type to the others as objects.
    return joined.reindex(columns=list(SUBSET_COLUMNS)).astype(TYPES)


def fisher_table(
    subsets: pd.DataFrame,
    table2: pd.DataFrame,
    measured: Mapping[str, str | None] | None = None,
    controls: Collection[str] = (),
) -> pd.DataFrame:
    """Combine the kept subsets by Fisher's method, by audited model, source and test.

    published_p is printed to three decimals, cut off and not rounded; cauchy_p and
    harmonic_mean_p are of rules that do not assume independent subsets. Where no subset
    is kept, or none of the `controls` was measured, which choose the subsets, there is
    no p-value and `status` says so. `measured` maps the audited models that were to be
    measured here to their column of Table 2, where they have one; those of the paper
    are always combined.

    Parameters
    ----------
    subsets
        The tables of `published_subsets` and `measured_subsets`.
    table2
        The published Table 2.
    measured
        Audited model that was to be measured here -> its column of Table 2, None where
        it has none.
    controls
        Names of the models that choose the subsets.
    """
    printed = table2.set_index("dataset").loc["MMLU (Fisher)"]
    columns = {name: column for column, name in AUDITED.items()} | dict(measured or {})
    rows: list[Row] = []
    audited = subsets[subsets["model"].isin(columns)]
    keys = ["model", "source", "test"]
    for (model, source, test), tested in audited.groupby(keys, sort=False):
        ours = source != "published"
        status = _obstacle(tested, subsets, controls) if ours else OK
        is_kept = ~tested["excluded"] & (tested["status"] == OK)
        kept = tested[is_kept & (status == OK)]
        log10_p = kept["log10_p"] if ours else np.log10(kept["published_p"])
        row = {
            "model": model,
            "source": source,
            "test": test,
            "subsets_kept": len(kept),
            "published_p": printed.get(columns[model], math.nan),
            "status": status,
        }
        if len(kept):
            combined = fisher(log10_p=log10_p)
            row["statistic"] = combined.statistic
            row["p"] = combined.p
            row["log10_p"] = combined.log10_p
            row["cauchy_p"] = cauchy(log10_p=log10_p).p
            row["harmonic_mean_p"] = harmonic_mean(log10_p=log10_p).p
        rows.append(row)
    return pd.DataFrame(rows, columns=list(FISHER_COLUMNS))


def _obstacle(
    tested: pd.DataFrame,
    subsets: pd.DataFrame,
    controls: Collection[str],
) -> str:
    """Return why the rows of one model and test cannot be combined; "ok" if they can."""
    same_test = subsets["test"] == tested["test"].iloc[0]
    measured = subsets[same_test & (subsets["status"] == OK)]
    if not (tested["status"] == OK).any():
        return str(tested["status"].iloc[0])
    if controls and not measured["model"].isin(controls).any():
        return "failed: no control was measured, and controls choose the subsets"
    if tested.loc[tested["status"] == OK, "excluded"].all():
        return "failed: the controls exclude every subset"
    return OK


def fisher_layout(combined: pd.DataFrame) -> pd.DataFrame:
    """Lay out `fisher_table`: Fisher's statistic and p-value, and the published p-value.

    Where there is none, its place says "failed" or "not run here".
    """
    show = partial(format_estimate, interval=False)
    sources = combined["source"].replace(STRICTER, f"{MEASURED}, {BASELINE} too")
    labels = [TESTS[name].label for name in combined["test"]]
    return lay_out(
        combined.assign(source=sources, test=labels),
        {
            "model": "Model",
            "source": "p-values",
            "test": "Test",
            "subsets_kept": "Subsets kept",
        },
        lambda row: {
            "Fisher statistic": show(row["statistic"], digits=1),
            "p": show(row["p"], digits=4) if row["status"] == OK else row["status"].split(":")[0],
            "p, published": show(row["published_p"], digits=3),
        },
    )


def table4_layout(subsets: pd.DataFrame) -> pd.DataFrame:
    """Lay out Table 4: a row for each subset, published p-values and those from here.

    `subsets` are rows of `published_subsets` and `measured_subsets`. Bold are those
    that the paper's filter excludes; "failed" or "not run here" where there is no
    p-value.
    """
    subsets = subsets[subsets["source"] != STRICTER]

    def cells(row: Row) -> dict[str, str]:
        if row["source"] == "published":
            return {row["model"]: format_p(row["published_p"], bold=row["excluded"])}
        shown = p_or_status(row, bold=row["excluded"])
        return {f"{row['model']}, {TESTS[row['test']].label.lower()}, here": shown}

    examples = subsets.groupby("subset")["examples"].transform("max")
    names = sorted(subsets["subset"].unique())
    return lay_out(
        subsets.assign(subset=subsets["subset"].map(title), examples=examples),
        {"subset": "Subset", "examples": "Examples"},
        cells,
        rows_first=[title(name) for name in names],
    )
