"""Membership scores judged on texts before and after a date (Shi et al., Table 1 and Figure 2).

`measure` lets every model score every part of a benchmark; here every score is judged by itself.
Directions are fixed: the larger, the more likely a member. A model or a part that cannot be had is
a row that says why.
"""

from typing import Any

import numpy as np
import pandas as pd

from contamination.membership.evaluate import evaluate, require_resamples
from contamination.scoring.status import FAILURES, OK, status_of

# The rows of Table 1, in its order: column of `membership_scores` -> what the paper calls it.
SCORES = {
    "neighbour": "Neighbor",
    "loss": "PPL",
    "zlib": "Zlib",
    "lowercase": "Lowercase",
    "reference_difference": "Smaller Ref",
    "min_k_20": "Min-20%",
}
MEASURES = tuple(
    f"{measure}{end}" for measure in ("auc", "tpr_at_5_fpr") for end in ("", "_low", "_high")
)
FIELDS = (
    *("model", "parameters", "source", "variant", "split", "length", "score"),
    *(*MEASURES, "members", "non_members", "reference", "model_revision", "text_revision"),
    "status",
)
CELL = "cell"  # number of a model and part


def wikimia_table(
    cells: pd.DataFrame, scored: pd.DataFrame, *, rng: np.random.Generator, resamples: int = 1000
) -> pd.DataFrame:
    """Judge the scores of Table 1 on every part, under every model.

    Returns a row per model, part and score, with `FIELDS`: auc and tpr_at_5_fpr with 95% intervals,
    members and non_members as judged, parameters of the model as counted. A part that cannot be had
    is one row without a model or score, a model that cannot be had one row per part; `status` says
    why. Raises InputError for fewer than 1 resample.

    Parameters
    ----------
    cells, scored : of `reproduction.notebooks.wikimia.measure.score_models`.
    rng : draws the bootstrap. resamples : of it.
    """
    require_resamples(resamples)
    rows: list[dict[Any, Any]] = []
    by_cell = dict(tuple(scored.groupby(CELL)))
    for cell in cells.to_dict("records"):
        row = cell | {"score": ""}
        if cell["status"] == OK:
            texts = by_cell[cell[CELL]]
            wide = texts.pivot(index="text", columns="score", values="value")
            members = texts.drop_duplicates("text").set_index("text")["member"]
            try:
                judged = evaluate(
                    wide[texts["score"].unique()], members, rng=rng, resamples=resamples
                )
            except FAILURES as error:
                rows.append(row | {"status": status_of(error)})
                continue
            measured = judged[["score", *MEASURES, "members", "non_members"]].to_dict("records")
            rows += [row | one for one in measured]
        else:
            rows.append(row)
    table = pd.DataFrame(rows, columns=list(FIELDS))
    counts = ["parameters", "members", "non_members"]
    table[counts] = table[counts].astype("Int64")
    return table
