"""What the sentences of the report say of one run, counted in its tables.

A sentence such as "the score misses few" holds for the run that it was written for. So the report
says how many, and these functions count them. Each takes tables of `results/tables/` and returns
texts for `variables.yml`; a dash stands where a run has measured nothing.
"""

import numpy as np
import pandas as pd

from contamination.audit.battery import OPTION_TEST
from contamination.membership.books import SCORE
from contamination.membership.unlearning import WINDOW
from contamination.tables import MISSING, SIGNIFICANT, format_p
from reproduction.notebooks.assumptions.detection import LABELS, MEAN
from reproduction.notebooks.assumptions.tables import CHANCE, OURS
from reproduction.notebooks.beyond.tables import AS_PUBLISHED, LONG, SHORT
from reproduction.notebooks.books.tables import UNREAD, VALIDATIONS
from reproduction.notebooks.min_k.tables import BESIDE
from reproduction.notebooks.options.evaluation import ORDER
from reproduction.notebooks.options.planting import PLANTINGS

NEAR = 5.0  # percentage points of AUC, as Fu et al. round
Texts = dict[str, str]


def read_short_prefixes(replicates: pd.DataFrame) -> Texts:
    """Name the set whose evidence the successor test loses most with b = 8 instead of 32."""
    whole = replicates[replicates["fraction"] == 1.0]  # all shards, as in the ranking
    means = whole.groupby(["dataset", "test"])["log10_p"].mean().unstack()
    worst = (means["successor_8"] - means["successor_32"]).idxmax()
    return {
        "set": str(worst),
        "with_32": _signed(means.loc[worst, "successor_32"]),
        "with_8": _signed(means.loc[worst, "successor_8"]),
    }


def read_calibration(calibration: pd.DataFrame) -> Texts:
    """Count intervals of the exact tests off the level; give the range of rates of the others."""
    rows = calibration[calibration["alpha"] == SIGNIFICANT]
    exact = rows[rows["test"].str.startswith("sharded_exact")]
    few = rows[rows["shards"] == rows["shards"].min()]

    def largest(test: str, among: pd.DataFrame = rows) -> str:
        return _percent(among.loc[among["test"] == test, "rate"].max())

    t_test = rows[rows["test"] == "sharded_t"].groupby("scores")["rate"].agg(["min", "max"])
    return {
        "exact": str(len(exact)),
        "exact_above": str((exact["low"] > SIGNIFICANT).sum()),
        "exact_below": str((exact["high"] < SIGNIFICANT).sum()),
        "anytime": largest("anytime"),
        "t_low": _percent(t_test.loc["sum", "min"]),
        "t_high": _percent(t_test.loc["sum", "max"]),
        "t_low_tails": _percent(t_test.loc["heavy_tailed", "min"]),
        "t_high_tails": _percent(t_test.loc["heavy_tailed", "max"]),
        "fewest_shards": str(rows["shards"].min()),
        "ddof_0": largest("sharded_t_ddof_0", few),
    }


def read_failures(failures: pd.DataFrame) -> Texts:
    """Count the orders with a meaning that the clean model and the diagnostics find."""
    clean = failures[failures["model"] == "clean"]
    orders = clean[~clean["order"].isin([AS_PUBLISHED, SHORT, LONG])]
    rejected = orders.loc[10.0 ** orders["log10_p_successor"] <= SIGNIFICANT, "order"]
    return {
        "orders": str(len(orders)),
        "rejected": str(len(rejected)),
        "rejected_names": "; ".join(rejected) or "none",
        "noticed": str((orders["verdict"] != "quiet").sum()),
        "compressed": str((10.0 ** orders["log10_p_compressor"] <= SIGNIFICANT).sum()),
    }


def read_min_k(min_k: pd.DataFrame, canaries: pd.DataFrame, alpha: float) -> Texts:
    """Compare Min-K% with the tests on the same sets, and say how far it gets at many copies."""
    spans = min_k[(min_k["model"] == "contaminated") & (min_k["score"] == "min_k_20")]
    spans = spans.set_index("dataset")
    tests = canaries[(canaries["model"] == "contaminated") & canaries["test"].isin(BESIDE)]
    proved = tests.groupby("dataset")["holm_p"].min().reindex(spans.index) <= alpha
    # The tuned false positive rate: more spans than that, by the whole interval.
    shown = spans["share_detected_low"] > SIGNIFICANT
    most = spans["dup_count"] == spans["dup_count"].max()
    return {
        "most_copies": str(spans["dup_count"].max()),
        "share_at_most": _percent(spans.loc[most, "share_detected"].mean()),
        "heuristic_alone": str((shown & ~proved).sum()),
        "tests_alone": str((proved & ~shown).sum()),
    }


def read_assumptions(within: pd.DataFrame) -> Texts:
    """Mean AUCs over domains of the clean model, and how many of Fu's metrics are near chance."""
    means = within[(within["model"] == "clean") & (within["domain"] == MEAN)]
    auc = means.set_index(["phase", "metric"])["auc_percent"]
    asked = {
        "ppl_read_once": ("pre-training", "loss"),
        "ppl_tuned": ("fine-tuning", "loss"),
        "mem_tuned": ("fine-tuning", "mem_25"),
        "mem_off_by_one_tuned": ("fine-tuning", "mem_off_by_one_25"),
    }
    texts = {name: f"{auc[key]:.1f}" if key in auc else MISSING for name, key in asked.items()}
    once = means[means["phase"] == "pre-training"].set_index("metric")["auc_percent"]
    once = once[~once.index.str.contains("|".join(OURS))]
    distance = (once - CHANCE).abs()
    if once.empty:
        return texts | dict.fromkeys(["metrics", "near", "furthest", "furthest_auc"], MISSING)
    return texts | {
        "metrics": str(len(once)),
        "near": str((distance <= NEAR).sum()),
        "furthest": LABELS[distance.idxmax()],
        "furthest_auc": f"{once[distance.idxmax()]:.1f}",
    }


def read_books(books: pd.DataFrame, validation: pd.DataFrame) -> Texts:
    """What changes where the unread validation books are of other packages."""
    auc = validation[validation["score"] == SCORE].set_index("validation")["auc"]
    unread = books[books["truth"] == UNREAD]
    accused = (unread["rate"] > 0.5).groupby(unread["validation"]).sum()
    same, other = VALIDATIONS.values()
    return {
        "auc_same": f"{auc[same]:.2f}" if same in auc else MISSING,
        "auc_other": f"{auc[other]:.2f}" if other in auc else MISSING,
        "accused_same": str(accused.get(same, MISSING)),
        "accused_other": str(accused.get(other, MISSING)),
        "unread": str(unread["book"].nunique()),
    }


def read_unlearning(detection: pd.DataFrame) -> Texts:
    """What the published window flags, and what the ratio finds without a window."""
    if detection.empty:
        names = ("chunks", "suspicious", "hits", "untreated", "missed", "low", "high", "auc_ratio")
        return dict.fromkeys(names, MISSING)
    row = detection.set_index("window").loc[WINDOW]
    return {
        "chunks": f"{row['chunks']:.0f}",
        "suspicious": f"{row['suspicious']:.0f}",
        "hits": f"{row['hits']:.0f}",
        "untreated": f"{row['untreated']:.0f}",
        "missed": f"{row['untreated'] - row['hits']:.0f}",
        "low": _percent(row["recall_low"]),
        "high": _percent(row["recall_high"]),
        "auc_ratio": f"{row['auc_ratio']:.2f}",
    }


def read_options(options: pd.DataFrame) -> Texts:
    """What both axes find of each planting at the largest number of copies, and the controls."""
    most = options[options["dup_count"] == options["dup_count"].max()]
    found = {(row.planting, row.test): row for row in most.itertuples()}
    texts = {
        f"{planting}_{name}": format_p(row.p, row.log10_p)
        for planting in PLANTINGS
        for name, test in (("records", ORDER), ("options", OPTION_TEST))
        if (row := found.get((planting, test))) is not None
    }
    lowest = options.loc[options["control_log10_p"].idxmin()]
    return texts | {
        "examples": str(options["examples"].max()),
        "copies": str(options["dup_count"].max()),
        "controls": str(len(options)),
        "control_smallest": format_p(lowest["control_p"], lowest["control_log10_p"]),
    }


def _percent(share: float) -> str:
    return MISSING if np.isnan(share) else f"{100 * share:.1f}".removesuffix(".0")


def _signed(number: float) -> str:
    return f"{number:z.1f}".replace("-", "−")
