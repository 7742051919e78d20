"""Min-K% on planted test sets, beside the provable test (Oren, Table 5).

Spans of a fixed number of tokens are cut from every planted set. A threshold of Min-K% Prob (Shi,
section 3) is tuned on text that was never planted, and the share of spans above it is what the
heuristic calls members. No theorem bounds how often it is wrong: that is measured on more such
text, and under a model that has read none of the sets.

The text for tuning is of the same kind as the set (`reproduction.run.tuning_texts`), which
is the kindest setting for a heuristic.
"""

import math
from typing import Any

import numpy as np
import pandas as pd

from contamination.errors import InputError
from contamination.membership.evaluate import Threshold, evaluate
from reproduction.run.experiment import MODELS

PLANTED, VALIDATION = "planted", "never planted"  # groups of scored spans
KEYS = ["model", "group", "name"]  # of a scored span


def min_k_baseline(
    sets: pd.DataFrame,
    scored: pd.DataFrame,
    *,
    rng: np.random.Generator,
    fpr: float = 0.05,
    resamples: int = 1000,
) -> pd.DataFrame:
    """Measure the share of the spans of every canary set that scores call members, by model.

    A row per model, set and score: model, dataset, dup_count (what the contaminated model was
    given), length, score, spans, validation_set, tuning_spans, checking_spans, and the columns of
    `judge`. Raises InputError for a rate that cannot be, and a set without a span or with too
    little text for the threshold.

    Parameters
    ----------
    sets, scored : of `reproduction.notebooks.min_k.measure`. Half of the spans that were never
        planted tune the threshold, more where half would allow no false positive; the others check
        it.
    rng : draws the bootstrap of the AUC.
    fpr : share of the tuning spans that may be called members.
    resamples : of the bootstrap.
    """
    if not 0 < fpr < 1:
        raise InputError(f"fpr is {fpr}: give a rate between 0 and 1, such as 0.05")
    fewest = math.ceil(1 / fpr - 1e-9)  # spans of which a single one is a share of at most `fpr`
    groups = {key: table.drop(columns=KEYS) for key, table in scored.groupby(KEYS)}
    none = scored.iloc[:0].drop(columns=KEYS)
    rows = []
    for model in MODELS:
        for one in sets.to_dict("records"):
            name, source, size = one["dataset"], one["validation_set"], one["length"]
            scores = groups.get((model, PLANTED, name), none)
            tried = groups.get((model, VALIDATION, source), none)
            if not len(scores) or len(tried) < fewest:
                raise InputError(
                    f"canary set {name}: {len(scores)} spans of {size} tokens, and {len(tried)} of "
                    f"text never planted ({source}), of 1 and {fewest} needed (fewer allow no "
                    f"false positive at {fpr:g}): shorten `length`, raise `validation_spans`, or "
                    "name a file with more text in `validation_files`"
                )
            middle = max(fewest, -(-len(tried) // 2))
            facts: dict[str, Any] = {
                "model": model,
                "dataset": name,
                "dup_count": one["dup_count"],
                "length": size,
                "spans": len(scores),
                "validation_set": source,
                "tuning_spans": middle,
                "checking_spans": len(tried) - middle,
            }
            halves = tried[:middle], tried[middle:]
            judged = judge(scores, *halves, fpr=fpr, rng=rng, resamples=resamples)
            rows += [facts | row for row in judged.to_dict("records")]
    return pd.DataFrame(rows)


def judge(
    members: pd.DataFrame,
    tuning: pd.DataFrame,
    checking: pd.DataFrame,
    *,
    fpr: float,
    rng: np.random.Generator,
    resamples: int,
) -> pd.DataFrame:
    """Tune a threshold of every score, and apply it to the spans of a set.

    `members`, `tuning` and `checking` are (spans, scores) of the set, and of text that was never
    planted. A row per score: threshold, validation_fpr (share of `checking` called members; NaN of
    none), share_detected with _low and _high (Clopper and Pearson, 95%, as if spans were
    independent), and auc and tpr_at_5_fpr with _low and _high, of the set against all text that was
    never planted.
    """
    every = pd.concat([members, tuning, checking])
    truth = np.arange(len(every)) < len(members)
    measured = evaluate(every, truth, rng=rng, resamples=resamples)
    kept = [c for c in measured if str(c).startswith(("auc", "tpr_at_5_"))]
    rows = []
    for name, measures in measured.set_index("score")[kept].iterrows():
        threshold = Threshold.at_fpr_of_non_members(tuning[name], fpr=fpr)
        found = threshold.detect(members[name])
        wrong = threshold.apply(checking[name])
        rows.append(
            {
                "score": name,
                "threshold": threshold.value,
                "validation_fpr": wrong.mean() if len(wrong) else float("nan"),
                "share_detected": found.share,
                "share_detected_low": found.low,
                "share_detected_high": found.high,
                **measures,
            }
        )
    return pd.DataFrame(rows)
