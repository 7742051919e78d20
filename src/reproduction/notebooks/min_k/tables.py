"""Min-K% on planted test sets, beside the provable test (Oren, Table 5).

Spans of a fixed number of tokens are cut from every planted set. A threshold of Min-K% Prob (Shi,
section 3) is tuned on text that was never planted, and the share of spans above it is what the
heuristic calls members. No theorem bounds how often it is wrong: that is measured on more such
text, and under a model that has read none of the sets.

The text for tuning is of the same kind as the set (`reproduction.run.tuning_texts`), which
is the kindest setting for a heuristic.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from contamination.audit.battery import TESTS
from contamination.errors import InputError
from contamination.membership.evaluate import Threshold, evaluate
from contamination.tables import Layout, format_p, lay_out
from reproduction.run.experiment import MODELS

PLANTED, VALIDATION = "planted", "never planted"  # groups of scored spans
KEYS = ["model", "group", "name"]  # of a scored span
BESIDE = ("sharded_t", "sharded_exact", "successor")  # tests that stand beside the heuristics


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
    tables = []
    for model in MODELS:
        for one in sets.to_dict("records"):
            name, source = one["dataset"], one["validation_set"]
            scores = groups.get((model, PLANTED, name), none)
            tried = groups.get((model, VALIDATION, source), none)
            if not len(scores) or len(tried) < fewest:
                raise InputError(
                    f"canary set {name}: {len(scores)} spans of {one['length']} tokens, and "
                    f"{len(tried)} of text never planted ({source}), of 1 and {fewest} needed "
                    f"(fewer allow no false positive at {fpr:g}): shorten `length`, raise "
                    "`validation_spans`, or name a file with more text in `validation_files`"
                )
            middle = max(fewest, -(-len(tried) // 2))
            halves = tried[:middle], tried[middle:]
            judged = judge(scores, *halves, fpr=fpr, rng=rng, resamples=resamples)
            facts = {"model": model, "spans": len(scores)} | one
            counts = {"tuning_spans": middle, "checking_spans": len(tried) - middle}
            tables.append(judged.assign(**facts, **counts))
    table = pd.concat(tables, ignore_index=True)
    first = ["model", "dataset", "dup_count", "length", "spans", "validation_set"]
    first += ["tuning_spans", "checking_spans"]
    return table[[*first, *(name for name in table if name not in first)]]


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
    measured = evaluate(every, truth, rng=rng, resamples=resamples).set_index("score")
    rows = []
    for name in measured.index:
        threshold = Threshold.at_fpr_of_non_members(tuning[name], fpr=fpr)
        found, wrong = threshold.detect(members[name]), threshold.apply(checking[name])
        rows.append(
            {
                "score": name,
                "threshold": threshold.value,
                "validation_fpr": float(np.mean(wrong)) if len(wrong) else float("nan"),
                "share_detected": found.share,
                "share_detected_low": found.low,
                "share_detected_high": found.high,
            }
        )
    kept = measured.filter(regex="^(auc|tpr_at_5_)").reset_index(drop=True)
    return pd.concat([pd.DataFrame(rows), kept], axis=1)


def beside_the_tests(
    table: pd.DataFrame, canaries: pd.DataFrame, model: str, labels: Mapping[str, str], alpha: float
) -> Layout:
    """Lay out Oren's Table 5 as text: a row per set, shares detected and p-values of one model.

    `table` comes from `min_k_baseline`, `canaries` is notebook 01's, `labels` head the scores. The
    duplication count is 0 under the clean model. A share is "13%"; the p-value of each test of
    `BESIDE` is bold where Holm's correction over the sets leaves at most `alpha`.
    """
    keys = ["dataset", "dup_count", "spans"]
    shares = table[(table["model"] == model) & table["score"].isin(list(labels))]
    tested = canaries[(canaries["model"] == model) & canaries["test"].isin(BESIDE)]
    sets = shares[keys].drop_duplicates()
    rows = pd.concat([shares, sets.merge(tested[["dataset", "test", "p", "log10_p", "holm_p"]])])

    def cells(row: dict[Any, Any]) -> dict[str, str]:
        if row["score"] in labels:
            return {labels[row["score"]]: f"{row['share_detected']:.0%}"}
        p = format_p(row["p"], row["log10_p"], bold=row["holm_p"] <= alpha)
        return {TESTS[row["test"]].label: p}

    return lay_out(
        rows.assign(dup_count=rows["dup_count"] * (model != "clean")),
        {"dataset": "Set", "dup_count": "Duplication count", "spans": "Spans"},
        cells,
        columns_first=[*labels.values(), *(TESTS[name].label for name in BESIDE)],
    )
