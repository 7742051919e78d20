"""What the sentences of the report say of one run, counted in its tables.

A sentence such as "the score misses few" holds for the run that it was written for. So the report
says how many, and these functions count them. Each takes tables of `results/tables/` and returns
texts for `variables.yml`; a dash stands where a run has measured nothing.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from contamination.audit.battery import OPTION_TEST
from contamination.scoring.status import OK
from contamination.tables import MISSING, POOLED, SIGNIFICANT, format_p
from reproduction.notebooks.assumptions.measure import LABELS
from reproduction.notebooks.assumptions.tables import CHANCE, MEAN, OURS
from reproduction.notebooks.beyond.tables import AS_PUBLISHED, LONG, SHORT
from reproduction.notebooks.min_k.tables import BESIDE
from reproduction.notebooks.options.tables import ORDER
from reproduction.run.injection import PLANTINGS

NEAR = 5.0  # percentage points of AUC; ours, since Fu et al. name no tolerance
Texts = dict[str, str]


def texts(**values: Any) -> Texts:
    """Write counts with their thousands, truth values as how many there are, NaN as a dash."""
    counts = {k: v.sum() if isinstance(v, pd.Series) else v for k, v in values.items()}
    return {
        key: value if isinstance(value, str) else MISSING if pd.isna(value) else f"{value:,}"
        for key, value in counts.items()
    }


def rounded(value: float, digits: int) -> str:
    """A number of so many digits; a dash for NaN."""
    return MISSING if pd.isna(value) else f"{value:.{digits}f}"


def percent(share: float) -> str:
    """A share in percent, without a zero after the point; a dash for NaN."""
    return rounded(100 * share, 1).removesuffix(".0")


# --- of models trained here -----------------------------------------------------------------------


def read_short_prefixes(replicates: pd.DataFrame) -> Texts:
    """Name the set whose evidence the successor test loses most with b = 8 instead of 32."""
    whole = replicates[replicates["fraction"] == 1.0]  # all shards, as in the ranking
    means = whole.groupby(["dataset", "test"])["log10_p"].mean().unstack()
    worst = means.loc[(means["successor_8"] - means["successor_32"]).idxmax()]
    signed = {f"with_{b}": f"{worst[f'successor_{b}']:z.1f}".replace("-", "−") for b in (32, 8)}
    return {"set": str(worst.name)} | signed


def read_calibration(calibration: pd.DataFrame) -> Texts:
    """Count intervals of the exact tests off the level; give the range of rates of the others."""
    rows = calibration[calibration["alpha"] == SIGNIFICANT]
    exact = rows[rows["test"].str.startswith("sharded_exact")]
    few = rows[rows["shards"] == rows["shards"].min()].groupby("test")["rate"].max()
    t_test = rows[rows["test"] == "sharded_t"].groupby("scores")["rate"].agg(["min", "max"])
    return texts(
        exact=len(exact),
        exact_above=exact["low"] > SIGNIFICANT,
        exact_below=exact["high"] < SIGNIFICANT,
        anytime=percent(rows.loc[rows["test"] == "anytime", "rate"].max()),
        t_low=percent(t_test.loc["sum", "min"]),
        t_high=percent(t_test.loc["sum", "max"]),
        t_low_tails=percent(t_test.loc["heavy_tailed", "min"]),
        t_high_tails=percent(t_test.loc["heavy_tailed", "max"]),
        fewest_shards=rows["shards"].min(),
        ddof_0=percent(few.get("sharded_t_ddof_0", np.nan)),
    )


def read_failures(failures: pd.DataFrame) -> Texts:
    """Count the orders with a meaning that the clean model and the diagnostics find."""
    clean = failures[failures["model"] == "clean"]
    orders = clean[~clean["order"].isin([AS_PUBLISHED, SHORT, LONG])]
    rejected = orders.loc[10.0 ** orders["log10_p_successor"] <= SIGNIFICANT, "order"]
    return texts(
        orders=len(orders),
        rejected=len(rejected),
        rejected_names="; ".join(rejected) or "none",
        noticed=orders["verdict"] != "quiet",
        compressed=10.0 ** orders["log10_p_compressor"] <= SIGNIFICANT,
    )


def read_generated(generated: pd.DataFrame) -> Texts:
    """Count the sets found by texts and by scores, and give the smallest p of the clean model."""
    found = texts(sets=generated["dataset"].nunique())
    for name, access in {"texts": "generated", "scores": "log-probabilities"}.items():
        rows = generated[generated["access"] == access]
        clean, rejected = rows["model"] == "clean", rows["p"] <= SIGNIFICANT
        found |= texts(
            **{name: rejected & ~clean, f"{name}_clean": format_p(rows.loc[clean, "p"].min())},
            **{f"{name}_fewest": rounded(rows.loc[rejected & ~clean, "dup_count"].min(), 0)},
        )
    return found


def read_min_k(min_k: pd.DataFrame, canaries: pd.DataFrame, alpha: float) -> Texts:
    """Compare Min-K% with the tests on the same sets, and say how far it gets at many copies."""
    spans = min_k[(min_k["model"] == "contaminated") & (min_k["score"] == "min_k_20")]
    spans = spans.set_index("dataset")
    tests = canaries[(canaries["model"] == "contaminated") & canaries["test"].isin(BESIDE)]
    proved = tests.groupby("dataset")["holm_p"].min().reindex(spans.index) <= alpha
    # The tuned false positive rate: more spans than that, by the whole interval.
    shown = spans["share_detected_low"] > SIGNIFICANT
    most = spans["dup_count"] == spans["dup_count"].max()
    return texts(
        most_copies=spans["dup_count"].max(),
        share_at_most=percent(spans.loc[most, "share_detected"].mean()),
        heuristic_alone=shown & ~proved,
        tests_alone=proved & ~shown,
    )


def read_assumptions(within: pd.DataFrame) -> Texts:
    """Mean AUCs over domains of the clean model, and how many of Fu's metrics are near chance."""
    means = within[(within["model"] == "clean") & (within["domain"] == MEAN)]
    auc = means.set_index(["phase", "metric"])["auc_percent"]
    tuned = {
        "ppl_tuned": "loss",
        "mem_tuned": "mem_25",
        "mem_off_by_one_tuned": "mem_off_by_one_25",
    }
    found = {"ppl_read_once": rounded(auc.get(("pre-training", "loss"), np.nan), 1)} | {
        name: rounded(auc.get(("fine-tuning", metric), np.nan), 1) for name, metric in tuned.items()
    }
    once = means[means["phase"] == "pre-training"].set_index("metric")["auc_percent"]
    once = once[~once.index.str.contains("|".join(OURS))]
    if once.empty:
        return found | dict.fromkeys(["metrics", "near", "furthest", "furthest_auc"], MISSING)
    distance = (once - CHANCE).abs()
    furthest = distance.idxmax()
    return found | texts(
        metrics=len(once),
        near=distance <= NEAR,
        furthest=LABELS[furthest],
        furthest_auc=rounded(once[furthest], 1),
    )


def read_options(options: pd.DataFrame) -> Texts:
    """What both axes find of each planting at the largest number of copies, and the controls."""
    most = options[options["dup_count"] == options["dup_count"].max()]
    found = {(row.planting, row.test): format_p(row.p, row.log10_p) for row in most.itertuples()}
    names = {"records": ORDER, "options": OPTION_TEST}
    asked = {f"{p}_{name}": (p, test) for p in PLANTINGS for name, test in names.items()}
    lowest = options.loc[options["control_log10_p"].idxmin()]
    return {name: found[key] for name, key in asked.items() if key in found} | texts(
        examples=options["examples"].max(),
        copies=options["dup_count"].max(),
        controls=len(options),
        control_smallest=format_p(lowest["control_p"], lowest["control_log10_p"]),
    )


# --- of models that others have released ----------------------------------------------------------

KINDS = {"model": "models", "dataset": "sets", "subset": "subsets"}  # column -> what it names
VALUES = {"auc": 2, "auc_percent": 1, "rate_percent": 0}  # column -> digits of its range


def read_cells(cells: pd.DataFrame) -> Texts:
    """Count the rows of a table, those that were measured, and what these say; all by its columns.

    `tested` have a p-value (after Holm's correction, if there is one), and `rejected` are at most
    0.05 of these; `off` are intervals that leave out chance, `lowest` and `highest` the ends of the
    range of `values`.
    """
    done = cells[cells["status"] == OK]
    begins = {
        name.replace(" ", "_"): cells["status"].str.startswith(name)
        for name in ("failed", "not run", "not asked")
    }
    kinds = {word: done[name].nunique() for name, word in KINDS.items() if name in cells}
    found = texts(cells=len(cells), measured=len(done), **begins, **kinds)
    for name in [name for name in ("holm_p", "p") if name in cells][:1]:
        p = done[name].dropna()
        found |= texts(tested=len(p), rejected=p <= SIGNIFICANT)
    for name, digits in VALUES.items():
        if name in cells:
            values = done[name].dropna()
            low, high = (rounded(end, digits) for end in (values.min(), values.max()))
            found |= texts(values=len(values), lowest=low, highest=high)
    if "auc_low" in cells:
        chance = CHANCE if "auc_percent" in cells else 0.5
        found |= texts(off=(done["auc_low"] > chance) | (done["auc_high"] < chance))
    return found


LEVEL = np.log10(SIGNIFICANT)
COMPARED = "status == 'ok' and unit == 'log10 p'"
SUBSETS = "source == 'measured' and test == 'sharded_t'"
# Section of the report, called as the package of its notebook -> beginning of the names of its
# facts -> the table that they are read from, and which of its rows.
RELEASED: dict[str, dict[str, tuple[str, str]]] = {
    "open_models": {
        "": ("open_models", f"dataset != '{POOLED}'"),
        "quiet_": ("open_models", f"dataset != '{POOLED}' and verdict == 'quiet'"),
    },
    "mmlu": {
        "": ("mmlu_subsets", SUBSETS),
        "dropped_": ("mmlu_subsets", f"{SUBSETS} and excluded == True"),
        "fisher_": ("mmlu_fisher", "source == 'measured'"),
    },
    "wikimia": {"": ("wikimia", "")},
    "assumptions": {
        "": ("assumptions_within", f"domain != '{MEAN}'"),
        "blind_": ("assumptions_blind", ""),
    },
    "papers": {
        "": ("papers", ""),
        "verdict_": ("papers", COMPARED),
        "same_": ("papers", f"{COMPARED} and (ours <= {LEVEL}) == (published <= {LEVEL})"),
    },
}


def read_section(section: str, table: Callable[[str], pd.DataFrame]) -> Texts:
    """Read the facts of a section; `table` opens a table of the run by its name."""
    found: Texts = {}
    for begin, (name, rows) in RELEASED[section].items():
        cells = table(name)
        read = read_cells(cells.query(rows) if rows else cells)
        found |= {f"{begin}{key}": text for key, text in read.items()}
    return found
