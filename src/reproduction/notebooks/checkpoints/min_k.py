"""Min-K% on the released checkpoints (Oren, Table 5): spans that a tuned threshold detects.

As appendix E has it: one hundred spans of each set, k = 20, and a threshold for 5% false positives
on a validation set of five planted sets and five that the checkpoint has not read. Which these were
the paper does not say; `validation_members` are the planted sets that Table 5 leaves out.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from contamination.errors import InputError
from contamination.membership.evaluate import Threshold
from contamination.scoring.status import OK, status_of
from reproduction.notebooks.checkpoints.cells import checkpoints, title
from reproduction.output.published import PRINTED, load_published

COLUMNS = (
    *("model", "dataset", "title", "examples", "dup_count", "spans", "threshold", "detected"),
    *("rate_percent", "rate_low", "rate_high", "published_percent", "status"),
)
COUNTS = ("examples", "dup_count", "spans", "detected")


def detection_rates(
    measured: dict[str, pd.DataFrame],
    models: Sequence[str],
    controls: Sequence[str],
    *,
    sets: Sequence[str],
    members: Sequence[str],
    non_members: Sequence[str],
    fpr: float,
    published: str,
) -> pd.DataFrame:
    """Measure which share of the spans of every set Min-K% calls members: `COLUMNS`.

    A row for each model and set. The threshold is that of the model, tuned on the spans of
    `members` and `non_members` that were scored; rates are percentages with Clopper-Pearson
    intervals (95%, as if spans were independent), `published_percent` is the paper's. A set without
    a rate has a `status` that says why.

    Parameters
    ----------
    measured, models, controls : as in `reproduction.notebooks.checkpoints.evaluation`.
    sets : of Table 5. members, non_members : that tune the threshold.
    fpr : share of the spans of `non_members` that may be called members.
    published : directory of the papers' tables.

    Raises InputError for a rate that cannot be.
    """
    if not 0 < fpr < 1:
        raise InputError(f"fpr is {fpr}: give a rate between 0 and 1, such as 0.05")
    examples = measured["sets"].set_index("dataset")["examples"]
    printed = load_published(published, "oren2024_table5_mink").set_index("dataset")
    rows: list[dict[str, Any]] = []
    for model in checkpoints(models, controls):
        own = measured["spans"][measured["spans"]["model"] == model.entry.name]
        threshold = _tuned(own, members, non_members, fpr)
        for dataset in sets:
            name, spans = title(dataset), own[own["dataset"] == dataset]
            row: dict[str, Any] = {
                "model": model.entry.name,
                "dataset": dataset,
                "title": name,
                "examples": examples[dataset],
                "dup_count": model.dup_count(dataset),
                "status": spans["status"].iloc[0],
            }
            if model.entry.published in PRINTED and name in printed.index:
                row["published_percent"] = float(printed.loc[name, "mink_detected_percent"])
            if row["status"] != OK:
                pass  # it has a reason of its own
            elif isinstance(threshold, str):
                row["status"] = threshold
            else:
                found = threshold.detect(spans["score"])
                rates = (100 * share for share in (found.share, found.low, found.high))
                row |= dict(zip(("rate_percent", "rate_low", "rate_high"), rates, strict=True))
                row |= {"spans": len(spans), "detected": found.count, "threshold": threshold.value}
            rows.append(row)
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(dict.fromkeys(COUNTS, "Int64"))


def _tuned(
    spans: pd.DataFrame, members: Sequence[str], non_members: Sequence[str], fpr: float
) -> Threshold | str:
    """Tune the threshold of a model, or say why there is none."""
    scored = spans[spans["status"] == OK]
    sides = [scored.loc[scored["dataset"].isin(list(n)), "score"] for n in (members, non_members)]
    if not all(map(len, sides)):
        missing = "planted" if not len(sides[0]) else "not planted"
        return status_of(
            InputError(f"no span of a validation set that was {missing}, so there is no threshold")
        )
    truth = np.repeat([True, False], [len(side) for side in sides])
    return Threshold.at_fpr(np.concatenate(sides), truth, fpr=fpr)
