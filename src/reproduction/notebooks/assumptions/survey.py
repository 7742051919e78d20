"""The survey of notebook 08: a score for each assumption that Fu et al. survey."""

from typing import Any

import pandas as pd

from contamination.tables import Layout, format_sides, lay_out
from reproduction.notebooks.assumptions.labels import LABELS, PHASES, ROWS
from reproduction.notebooks.assumptions.tables import MEAN, TEXTS, format_percent

# Scores of the survey that one pass gives -> assumption, and the name of the score.
SURVEYED = {
    "loss": ("A1", LABELS["loss"]),
    "min_k_25": ("A1", LABELS["min_k_25"]),
    "mem_25": ("A4", LABELS["mem_25"]),
    "entropy_25": ("A6", LABELS["entropy_25"]),
}


def survey_layout(
    within: pd.DataFrame,
    asked_within: pd.DataFrame,
    epochs: int,
) -> Layout:
    """Lay out the survey of assumptions: a row for each score, a column for each phase.

    AUCs in percent, the mean over domains, bold where the interval leaves out 50. The
    last column says how many texts both sides have, by phase unless all phases agree.

    Parameters
    ----------
    within
        `within_table` of one model.
    asked_within
        `within_table` of the scores that need further prompts.
    epochs
        Number of times that fine-tuning has read a text.
    """
    control, once, again = PHASES
    headings = {control: "Control", once: "Read once", again: f"Read {epochs} times"}
    names = SURVEYED | ROWS
    rows = pd.concat([within, asked_within])
    rows = rows[(rows["domain"] == MEAN) & rows["metric"].isin(list(names))]
    order = {metric: place for place, metric in enumerate(names)}
    rows = rows.sort_values("metric", key=lambda metrics: metrics.map(order), kind="stable")
    of_assumption = {metric: assumption for metric, (assumption, _) in names.items()}
    of_score = {metric: score for metric, (_, score) in names.items()}
    rows = rows.assign(
        assumption=rows["metric"].map(of_assumption),
        score=rows["metric"].map(of_score),
    ).sort_values("assumption", kind="stable")

    texts: dict[str, str] = {}
    for score, own in rows.groupby("score"):
        sides = [format_sides(row) for row in own.to_dict("records")]
        texts[str(score)] = "; ".join(sides) if len(set(sides)) > 1 else sides[0]

    def cell(row: dict[Any, Any]) -> dict[str, str]:
        return {headings[row["phase"]]: format_percent(row), TEXTS: texts[row["score"]]}

    keys = {"assumption": "Assumption", "score": "Score"}
    return lay_out(rows, keys, cell, columns_first=list(headings.values()))
