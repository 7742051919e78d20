"""Min-K% on planted test sets, and the provable test (Oren, Table 5).

A threshold of Min-K% Prob (Shi, section 3) is tuned on text that was never planted, and
the share of a set's spans above it is what the heuristic calls members. No theorem
bounds how often it is wrong: that is measured on more such text, and under a model that
has read none of the sets. The text for tuning is of the same kind as the set, which is
the kindest setting for a heuristic.
"""

import math
from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from contamination.audit.registry import TESTS
from contamination.errors import InputError
from contamination.membership.evaluate import detected_share, evaluate, fit_threshold
from contamination.tables import Layout, format_p, lay_out
from reproduction.run.experiment import MODELS

# Groups of scored spans.
PLANTED = "planted"
VALIDATION = "never planted"
KEYS = ["model", "group", "name"]  # of a scored span
# with which scores are compared
COMPARED_TESTS = ("sharded_t", "sharded_exact", "successor")


def min_k_baseline(
    sets: pd.DataFrame,
    scored: pd.DataFrame,
    *,
    rng: np.random.Generator,
    fpr: float = 0.05,
    resamples: int = 1000,
) -> pd.DataFrame:
    """Measure the share of the spans of every set that scores call members, by model.

    Half of the spans that were never planted tune the threshold, of which at most a
    share `fpr` may be called members, and more where half would allow no false
    positive; the others check it.

    Parameters
    ----------
    sets, scored
        The tables of the measurement.
    rng
        Draws the intervals of the TPR.
    fpr
        False positive rate of the tuned threshold.
    resamples
        Draws for the interval of a TPR.

    Returns
    -------
    table
        A row per model, set and score: dup_count (how often the contaminated model read
        the set), tuning_spans, checking_spans, threshold, validation_fpr (share of the
        checking spans called members; NaN of none), share_detected with _low and _high
        (Clopper and Pearson, 95%, as if spans were independent), and auc and
        tpr_at_5_fpr with _low and _high (95%), of the set against all text that was
        never planted.

    Raises
    ------
    InputError
        For an `fpr` that cannot be, and a set without a span or with too little text
        for the threshold.
    """
    if not 0 < fpr < 1:
        raise InputError(f"fpr is {fpr}: give a rate between 0 and 1, such as 0.05")
    # spans of which a single one is a share of at most `fpr`
    fewest = math.ceil(1 / fpr - 1e-9)
    groups = {key: table.drop(columns=KEYS) for key, table in scored.groupby(KEYS)}
    none = scored.iloc[:0].drop(columns=KEYS)
    tables = []
    for model, (name, dup_count, length, source) in product(
        MODELS,
        sets.itertuples(index=False),
    ):
        planted = groups.get((model, PLANTED, name), none)
        validation = groups.get((model, VALIDATION, source), none)
        if not len(planted) or len(validation) < fewest:
            raise InputError(
                f"canary set {name}: {len(planted)} spans of {length} tokens, and "
                f"{len(validation)} of text never planted ({source}), of 1 and {fewest} "
                f"needed (fewer allow no false positive at {fpr:g}): shorten `length`, "
                "raise `validation_spans`, or name a file with more text in "
                "`validation_files`"
            )
        half = math.ceil(len(validation) / 2)
        tuning = validation[: max(fewest, half)]
        checking = validation[len(tuning) :]
        truth = [True] * len(planted) + [False] * len(validation)
        judged = evaluate(
            pd.concat([planted, validation]),
            truth,
            rng=rng,
            resamples=resamples,
        )
        shares = _shares(judged["score"], planted, tuning, checking, fpr=fpr)
        table = pd.concat([shares, judged.filter(regex="^(auc|tpr_at_5_)")], axis=1)
        facts = pd.DataFrame(
            {
                "model": model,
                "dataset": name,
                "dup_count": dup_count,
                "length": length,
                "spans": len(planted),
                "validation_set": source,
                "tuning_spans": len(tuning),
                "checking_spans": len(checking),
            },
            index=table.index,
        )
        tables.append(pd.concat([facts, table], axis=1))
    return pd.concat(tables, ignore_index=True)


def _shares(
    scores: Iterable[str],
    planted: pd.DataFrame,
    tuning: pd.DataFrame,
    checking: pd.DataFrame,
    *,
    fpr: float,
) -> pd.DataFrame:
    """Tune a threshold for each score; return the shares of spans above it."""
    rows = []
    for score in scores:
        threshold = fit_threshold(tuning[score], fpr=fpr)
        validation_fpr = (checking[score] >= threshold).mean()
        share, low, high = detected_share(planted[score], threshold)
        rows.append((score, threshold, validation_fpr, share, low, high))
    columns = ["score", "threshold", "validation_fpr"]
    columns += ["share_detected", "share_detected_low", "share_detected_high"]
    return pd.DataFrame(rows, columns=columns)


def shares_and_p_values(
    table: pd.DataFrame,
    canaries: pd.DataFrame,
    model: str,
    labels: Mapping[str, str],
    alpha: float,
) -> Layout:
    """Lay out Oren's Table 5: a row per set, shares detected and p-values of a model.

    The duplication count is 0 under the clean model.

    Parameters
    ----------
    table
        The table of `min_k_baseline`.
    canaries
        The table of notebook 01.
    model
        Contaminated or clean.
    labels
        Score -> its heading.
    alpha
        The p-value of a test is bold where Holm's correction over the sets leaves at
        most this.
    """
    keys = ["dataset", "dup_count", "spans"]
    shares = table[(table["model"] == model) & table["score"].isin(list(labels))]
    is_tested = (canaries["model"] == model) & canaries["test"].isin(COMPARED_TESTS)
    p_values = canaries.loc[is_tested, ["dataset", "test", "p", "log10_p", "holm_p"]]
    sets = shares[keys].drop_duplicates()
    rows = pd.concat([shares, sets.merge(p_values)])
    if model == "clean":
        rows = rows.assign(dup_count=0)

    def cell(row: dict[Any, Any]) -> dict[str, str]:
        if row["score"] in labels:
            return {labels[row["score"]]: f"{row['share_detected']:.0%}"}
        p = format_p(row["p"], row["log10_p"], bold=row["holm_p"] <= alpha)
        return {TESTS[row["test"]].label: p}

    index = {"dataset": "Set", "dup_count": "Duplication count", "spans": "Spans"}
    columns = [*labels.values(), *(TESTS[name].label for name in COMPARED_TESTS)]
    return lay_out(rows, index, cell, columns_first=columns)
