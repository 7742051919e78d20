"""Scores judged on texts before and after a date, laid out as Table 1 of Shi et al. has them.

`measure` lets every model score every part of a benchmark; here every score is judged by itself.
Directions are fixed: the larger, the more likely a member. A model or a part that cannot be had is
a row that says why.
"""

from typing import Any

import numpy as np
import pandas as pd

from contamination.membership.evaluate import evaluate
from contamination.scoring.status import OK
from contamination.tables import format_estimate, lay_out
from reproduction.notebooks.wikimia.measure import CELL, CONTROL, ORIGINAL, PARAPHRASED, SCORES

CHANCE = 0.5
SHORT = {ORIGINAL: "Ori.", PARAPHRASED: "Para."}
MEASURES = tuple(
    f"{measure}{end}" for measure in ("auc", "tpr_at_5_fpr") for end in ("", "_low", "_high")
)
FIELDS = (
    *("model", "parameters", "source", "variant", "split", "length", "score"),
    *(*MEASURES, "members", "non_members", "reference", "model_revision", "text_revision"),
    "status",
)


def wikimia_table(
    cells: pd.DataFrame, scored: pd.DataFrame, *, rng: np.random.Generator, resamples: int = 1000
) -> pd.DataFrame:
    """Judge the scores of Table 1 on every part, under every model.

    Returns a row per model, part and score, with `FIELDS`: auc and tpr_at_5_fpr with 95% intervals
    (`rng` draws the `resamples` of the bootstrap), members and non_members as judged, parameters of
    the model as counted. A part that cannot be had is one row without a model or score, a model
    that cannot be had one row per part; `status` says why. `cells` and `scored` are of
    `reproduction.notebooks.wikimia.measure.tables_of`.
    """
    rows: list[dict[Any, Any]] = []
    by_cell = dict(tuple(scored.groupby(CELL)))
    for cell in cells.to_dict("records"):
        row, texts = cell | {"score": ""}, by_cell.get(cell[CELL])
        if texts is None:
            rows.append(row)
            continue
        known = [name for name in SCORES if name in texts and texts[name].notna().any()]
        judged = evaluate(texts[known], texts["member"], rng=rng, resamples=resamples)
        measured = judged[["score", *MEASURES, "members", "non_members"]].to_dict("records")
        rows += [row | one for one in measured]
    counts = dict.fromkeys(("parameters", "members", "non_members"), "Int64")
    return pd.DataFrame(rows, columns=list(FIELDS)).astype(counts)


def table1_layout(table: pd.DataFrame, length: int) -> pd.DataFrame:
    """Lay out the AUCs of one length: a row per method, a column per model and kind of text.

    Takes the table of `wikimia_table`. Columns are "Model, Ori." and "Model, Para.", their mean
    "Average" if there are several, and "Model, control" for texts that the model has not read,
    which take no part in the mean. With several benchmarks their names stand before. Bold: the 95%
    interval leaves out 0.5.
    """
    rows = table[(table["status"] == OK) & (table["length"] == length)]
    rows = rows.assign(score=rows["score"].map(SCORES))
    judged = rows[~rows["source"].str.startswith(CONTROL)]
    several = judged["source"].nunique() > 1

    def cell(row: dict[Any, Any]) -> dict[str, str]:
        source, model, kind = row["source"], row["model"], SHORT[row["variant"]]
        heading = f"{source}: {model}, {kind}" if several else f"{model}, {kind}"
        if source.startswith(CONTROL):
            heading = f"{model}, {source}" + (f", {kind}" if row["variant"] != ORIGINAL else "")
        numbers = (row["auc"], row["auc_low"], row["auc_high"])
        return {heading: format_estimate(*numbers, null=CHANCE, interval=False)}

    shown = lay_out(rows, {"score": "Method"}, cell, rows_first=list(SCORES.values()))
    if judged.groupby(["source", "model", "variant"]).ngroups > 1:
        means = shown["Method"].map(judged.groupby("score")["auc"].mean())
        shown["Average"] = [format_estimate(mean, interval=False) for mean in means]
    return shown


def lengths_layout(table: pd.DataFrame) -> pd.DataFrame:
    """Lay out the AUCs of every length: a row per source, method and model.

    Takes the table of `wikimia_table`. Columns are the lengths and, last, their mean, for each kind
    of text. Bold: the 95% interval leaves out 0.5; a mean has none.
    """
    rows = table[table["status"] == OK].sort_values("length", kind="stable")
    rows = rows.assign(score=rows["score"].map(SCORES))
    keys = ["source", "score", "model", "variant"]
    means = rows.groupby(keys, as_index=False)["auc"].mean().assign(length=0)

    def cell(row: dict[Any, Any]) -> dict[str, str]:
        numbers = (row["auc"], row["auc_low"], row["auc_high"]) if row["length"] else (row["auc"],)
        shown = format_estimate(*numbers, null=CHANCE, interval=False)
        return {f"{row['length'] or 'Mean'}, {SHORT[row['variant']]}": shown}

    index = {"source": "Texts", "score": "Method", "model": "Model"}
    return lay_out(pd.concat([rows, means]), index, cell)


def published_layout(headline: pd.DataFrame) -> pd.DataFrame:
    """Lay out the published rows of WikiMIA: AUC of Table 1, and TPR at 5% FPR of Table 6.

    Takes `data/published/shi2023_headline.csv`, which has some of the cells of the paper.
    """

    def cell(row: dict[Any, Any]) -> dict[str, str]:
        setting, metric = row["setting"], row["metric"]
        heading = setting.replace(" original", ", Ori.").replace(" paraphrase", ", Para.")
        heading = f"{heading[:1].upper()}{heading[1:]}"
        value = f"{row['value']:.2f}" if metric == "AUC" else f"{row['value']:.1f}%"
        return {f"{heading}, {metric}" if setting == "average" else heading: value}

    rows = headline[headline["table"].isin(["Table 1", "Table 6"])]
    rows = rows.assign(method=rows["method"].replace({"Min-20% Prob": "Min-20%"}))
    return lay_out(rows, {"method": "Method"}, cell, rows_first=list(SCORES.values()))
