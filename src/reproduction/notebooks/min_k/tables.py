"""Min-K% on planted test sets, beside the provable test (Oren, Table 5).

A threshold of Min-K% Prob (Shi, section 3) is tuned on text that was never planted, and the share
of a set's spans above it is what the heuristic calls members. No theorem bounds how often it is
wrong: that is measured on more such text, and under a model that has read none of the sets. The
text for tuning is of the same kind as the set, which is the kindest setting for a heuristic.
"""

import math
from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from contamination.audit.battery import TESTS
from contamination.errors import InputError
from contamination.membership.evaluate import detected_share, evaluate, fit_threshold
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

    Half of the spans that were never planted tune the threshold, of which at most a share `fpr` may
    be called members, and more where half would allow no false positive; the others check it.

    A row per model, set and score: dup_count (what the contaminated model was given), tuning_spans,
    checking_spans, threshold, validation_fpr (share of the checking spans called members; NaN of
    none), share_detected with _low and _high (Clopper and Pearson, 95%, as if spans were
    independent), and auc and tpr_at_5_fpr with _low and _high (95%), of the set against all
    text that was never planted. Raises InputError for an `fpr` that cannot be, and a set without a
    span or with too little text for the threshold.
    """
    if not 0 < fpr < 1:
        raise InputError(f"fpr is {fpr}: give a rate between 0 and 1, such as 0.05")
    fewest = math.ceil(1 / fpr - 1e-9)  # spans of which a single one is a share of at most `fpr`
    groups = {key: table.drop(columns=KEYS) for key, table in scored.groupby(KEYS)}
    none = scored.iloc[:0].drop(columns=KEYS)
    tables = []
    for model, (name, dup_count, length, source) in product(MODELS, sets.itertuples(index=False)):
        planted = groups.get((model, PLANTED, name), none)
        tried = groups.get((model, VALIDATION, source), none)
        if not len(planted) or len(tried) < fewest:
            raise InputError(
                f"canary set {name}: {len(planted)} spans of {length} tokens, and {len(tried)} of "
                f"text never planted ({source}), of 1 and {fewest} needed (fewer allow no false "
                f"positive at {fpr:g}): shorten `length`, raise `validation_spans`, or name a file "
                "with more text in `validation_files`"
            )
        middle = max(fewest, -(-len(tried) // 2))
        every, truth = pd.concat([planted, tried]), [True] * len(planted) + [False] * len(tried)
        measured = evaluate(every, truth, rng=rng, resamples=resamples)
        rows = []
        for score in measured["score"]:
            threshold = fit_threshold(tried[score][:middle], fpr=fpr)
            wrong = (tried[score][middle:] >= threshold).mean()
            rows.append((score, threshold, wrong, *detected_share(planted[score], threshold)))
        shares = [f"share_detected{end}" for end in ("", "_low", "_high")]
        found = pd.DataFrame(rows, columns=["score", "threshold", "validation_fpr", *shares])
        facts = {"model": model, "dataset": name, "dup_count": dup_count, "length": length}
        facts |= {"spans": len(planted), "validation_set": source}
        facts |= {"tuning_spans": middle, "checking_spans": len(tried) - middle}
        table = pd.concat([found, measured.filter(regex="^(auc|tpr_at_5_)")], axis=1)
        tables.append(table.assign(**facts)[[*facts, *table]])
    return pd.concat(tables, ignore_index=True)


def beside_the_tests(
    table: pd.DataFrame, canaries: pd.DataFrame, model: str, labels: Mapping[str, str], alpha: float
) -> Layout:
    """Lay out Oren's Table 5 as text: a row per set, shares detected and p-values of one model.

    `canaries` is notebook 01's, `labels` head the scores. The duplication count is 0 under the
    clean model. The p-value of each test of `BESIDE` is bold where Holm's correction over the sets
    leaves at most `alpha`.
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

    rows = rows.assign(dup_count=rows["dup_count"] * (model != "clean"))
    index = {"dataset": "Set", "dup_count": "Duplication count", "spans": "Spans"}
    first = [*labels.values(), *(TESTS[name].label for name in BESIDE)]
    return lay_out(rows, index, cells, columns_first=first)
