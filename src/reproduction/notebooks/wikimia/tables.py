"""Scores judged on texts before and after a date, laid out as Table 1 of Shi et al. has them.

Every score is judged by itself, and directions are fixed: the larger, the more likely a
member.
"""

from typing import Any

import numpy as np
import pandas as pd

from contamination.membership.evaluate import evaluate
from contamination.scoring.status import OK
from contamination.tables import format_auc, format_estimate, lay_out
from reproduction.notebooks.wikimia.measure import CELL, SCORES
from reproduction.notebooks.wikimia.texts import CONTROL, ORIGINAL, PARAPHRASED

SHORT = {ORIGINAL: "Ori.", PARAPHRASED: "Para."}
FIELDS = (
    "model",
    "parameters",
    "source",
    "variant",
    "split",
    "length",
    "score",
    "auc",
    "auc_low",
    "auc_high",
    "tpr_at_5_fpr",
    "tpr_at_5_fpr_low",
    "tpr_at_5_fpr_high",
    "members",
    "non_members",
    "reference",
    "model_revision",
    "text_revision",
    "status",
)


def wikimia_table(
    cells: pd.DataFrame,
    scored: pd.DataFrame,
    *,
    rng: np.random.Generator,
    resamples: int,
) -> pd.DataFrame:
    """Compute the AUC of every score of Table 1 on every part, under every model.

    Parameters
    ----------
    cells, scored
        The tables of `tables_of`.
    rng
        Draws the intervals of the TPR.
    resamples
        Draws for the interval of a TPR.

    Returns
    -------
    table
        A row per model, part and score, with `FIELDS`: auc and tpr_at_5_fpr with 95%
        intervals, members and non_members as judged. A part that is unavailable is one
        row without a model or score, a model one row per part; `status` says why.
    """
    names = [name for name in SCORES if name in scored]
    # all that there is where nothing was scored
    judged = [cells[[CELL]][:0].assign(score="")]
    for cell, texts in scored.groupby(CELL):
        scores = texts[names].dropna(axis="columns", how="all")
        evaluated = evaluate(scores, texts["member"], rng=rng, resamples=resamples)
        evaluated[CELL] = cell
        judged.append(evaluated)
    table = cells.merge(pd.concat(judged), "left", CELL).fillna({"score": ""})
    counts = dict.fromkeys(("parameters", "members", "non_members"), "Int64")
    return table.reindex(columns=list(FIELDS)).astype(counts)


def table1_layout(table: pd.DataFrame, length: int) -> pd.DataFrame:
    """Lay out AUCs of one length: a row per method, a column per model and kind.

    Columns are "Model, Ori." and "Model, Para.", their mean "Average" if there are
    several, and "Model, control" for texts that the model has not read, which take no
    part in the mean. With several benchmarks their names stand before. Bold: the 95%
    interval leaves out 0.5.
    """
    rows = table[(table["status"] == OK) & (table["length"] == length)].replace(
        {"score": SCORES},
    )
    judged = rows[~rows["source"].str.startswith(CONTROL)]
    has_several_benchmarks = judged["source"].nunique() > 1

    def heading(row: dict[Any, Any]) -> str:
        kind = SHORT[row["variant"]]
        if row["source"].startswith(CONTROL):
            control = f"{row['model']}, {row['source']}"
            return control if row["variant"] == ORIGINAL else f"{control}, {kind}"
        model = f"{row['model']}, {kind}"
        return f"{row['source']}: {model}" if has_several_benchmarks else model

    def cell(row: dict[Any, Any]) -> dict[str, str]:
        return {heading(row): format_auc(row, interval=False)}

    shown = lay_out(rows, {"score": "Method"}, cell, rows_first=list(SCORES.values()))
    if judged.groupby(["source", "model", "variant"]).ngroups > 1:
        means = shown["Method"].map(judged.groupby("score")["auc"].mean())
        shown["Average"] = [format_estimate(mean, interval=False) for mean in means]
    return shown


def lengths_layout(table: pd.DataFrame) -> pd.DataFrame:
    """Lay out the AUCs of every length: a row per source, method and model.

    Columns are the lengths and, last, their mean, for each kind of text. Bold: the 95%
    interval leaves out 0.5; a mean has none.
    """

    def cell(row: dict[Any, Any]) -> dict[str, str]:
        heading = f"{row['length']}, {SHORT[row['variant']]}"
        return {heading: format_auc(row, interval=False)}

    rows = table[table["status"] == OK].sort_values("length", kind="stable")
    rows = rows.replace({"score": SCORES})
    keys = ["source", "score", "model", "variant"]
    means = rows.groupby(keys, as_index=False)["auc"].mean().assign(length="Mean")
    index = {"source": "Texts", "score": "Method", "model": "Model"}
    return lay_out(pd.concat([rows, means]), index, cell)


def published_layout(headline: pd.DataFrame) -> pd.DataFrame:
    """Lay out the published rows of WikiMIA: AUC of Table 1, and TPR at 5% FPR of Table 6.

    Takes `data/published/shi2023_headline.csv`, which has some of the cells of the
    paper.
    """

    def cell(row: dict[Any, Any]) -> dict[str, str]:
        heading = row["setting"].replace(" original", ", Ori.").replace(" paraphrase", ", Para.")
        heading = f"{heading[:1].upper()}{heading[1:]}"
        if row["setting"] == "average":
            heading = f"{heading}, {row['metric']}"
        value = f"{row['value']:.2f}" if row["metric"] == "AUC" else f"{row['value']:.1f}%"
        return {heading: value}

    rows = headline[headline["table"].isin(["Table 1", "Table 6"])]
    rows = rows.assign(method=rows["method"].replace({"Min-20% Prob": "Min-20%"}))
    return lay_out(rows, {"method": "Method"}, cell, rows_first=list(SCORES.values()))
