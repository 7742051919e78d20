"""Table 1 of Shi et al. laid out: measured, and as published."""

from collections.abc import Iterator

import pandas as pd

from contamination.experiments.wikimia.benchmark import ORIGINAL, PARAPHRASED
from contamination.experiments.wikimia.evaluation import SCORES
from contamination.experiments.wikimia.made_here import CONTROL
from contamination.results.tables import format_estimate
from contamination.scoring.status import OK

NONE = "—"
CHANCE = 0.5
SHORT = {ORIGINAL: "Ori.", PARAPHRASED: "Para."}


def table1_layout(table: pd.DataFrame, length: int) -> pd.DataFrame:
    """Lay out the AUCs of one length: a row per method, a column per model and kind of text.

    Columns are "Model, Ori." and "Model, Para.", their mean "Average" if there are several, and
    "Model, control" for texts that the model has not read, which take no part in the mean. With
    several benchmarks their names stand before. Bold: the 95% interval leaves out 0.5.

    Parameters
    ----------
    table : of `contamination.experiments.wikimia.evaluation.wikimia_table`.
    length : words of the texts.
    """
    rows = table[(table["status"] == OK) & (table["length"] == length)]
    several = rows.loc[~rows["source"].str.startswith(CONTROL), "source"].nunique() > 1
    keys = ["source", "model", "variant"]
    shown = pd.DataFrame({"Method": list(SCORES.values())}, index=list(SCORES))
    means = []
    for (source, model, variant), found in rows.groupby(keys, sort=False):
        judged, kind = found.set_index("score"), SHORT[variant]
        name = f"{source}: {model}, {kind}" if several else f"{model}, {kind}"
        if source.startswith(CONTROL):
            name = f"{model}, {source}" + (f", {kind}" if variant != ORIGINAL else "")
        else:
            means.append(judged["auc"])
        shown[name] = judged.apply(_cell, axis=1)
    if len(means) > 1:
        average = pd.concat(means, axis=1).mean(axis=1)
        shown["Average"] = average.map("{:.2f}".format)
    filled = shown.dropna(how="all", subset=[c for c in shown if c != "Method"])
    return filled.fillna(NONE).reset_index(drop=True)


def _cell(row: pd.Series) -> str:
    numbers = (row["auc"], row["auc_low"], row["auc_high"])
    return format_estimate(*numbers, null=CHANCE, interval=False)


def absent(table: pd.DataFrame) -> pd.DataFrame:
    """What was not measured and why: source, variant, lengths, model, status, a row per reason."""
    rows = table[table["status"] != OK]
    keys = ["source", "variant", "model", "status"]
    told = rows.groupby(keys, sort=False)["length"].agg(lambda found: ", ".join(map(str, found)))
    return told.rename("lengths").reset_index()


def published_layout(headline: pd.DataFrame) -> pd.DataFrame:
    """Lay out the published rows of WikiMIA: AUC of Table 1, and TPR at 5% FPR of Table 6.

    Parameters
    ----------
    headline : `data/published/shi2023_headline.csv`, which has some of the cells of the paper.
    """
    columns: dict[str, pd.Series] = {}
    for table, metric, setting, label in _settings(headline):
        chosen = headline[(headline["table"] == table) & (headline["setting"] == setting)]
        form = "{:.2f}" if metric == "AUC" else "{:.1f}%"
        columns[label] = (
            chosen.set_index("method")["value"].rename({"Min-20% Prob": "Min-20%"}).map(form.format)
        )
    wide = pd.DataFrame(columns)
    order = [name for name in (*SCORES.values(), *wide.index) if name in wide.index]
    wide = wide.reindex(list(dict.fromkeys(order))).fillna(NONE)
    return wide.rename_axis("Method").reset_index()


def _settings(headline: pd.DataFrame) -> Iterator[tuple[str, str, str, str]]:
    """Yield (table, metric, setting, header) of each column, in the order of the file."""
    rows = headline[headline["table"].isin(["Table 1", "Table 6"])]
    for row in rows.drop_duplicates(["table", "setting"]).itertuples():
        named = str(row.setting).replace(" original", ", Ori.").replace(" paraphrase", ", Para.")
        label = f"{named[:1].upper()}{named[1:]}"
        told = f"{label}, {row.metric}" if row.setting == "average" else label
        yield str(row.table), str(row.metric), str(row.setting), told
