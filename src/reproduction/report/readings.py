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


def _cells(table: pd.DataFrame) -> Texts:
    """Count the rows of a table, those that were measured, and those that were not."""
    begins = {
        name.replace(" ", "_"): table["status"].str.startswith(name)
        for name in ("failed", "not run", "not asked")
    }
    return texts(cells=len(table), measured=table["status"] == OK, **begins)


def _range(values: pd.Series, digits: int) -> Texts:
    return {"lowest": rounded(values.min(), digits), "highest": rounded(values.max(), digits)}


def _off(table: pd.DataFrame, chance: float) -> pd.Series:
    """Which intervals leave out chance."""
    return (table["auc_low"] > chance) | (table["auc_high"] < chance)


def released_open_models(audit: pd.DataFrame) -> Texts:
    """Count what Holm's correction rejects of the audited cells, by test."""
    audit = audit[audit["dataset"] != POOLED]
    audited = audit[(audit["status"] == OK) & audit["holm_p"].notna()]
    rejected = audited["holm_p"] <= SIGNIFICANT
    return _cells(audit) | texts(
        models=audit["model"].nunique(),
        sets=audit["dataset"].nunique(),
        audited=len(audited),
        rejected=rejected,
        stand=rejected & (audited["verdict"] == "quiet"),
    )


def released_mmlu(subsets: pd.DataFrame, combined: pd.DataFrame) -> Texts:
    """Count the subsets that were measured and those that controls exclude in the paper's test."""
    ours = subsets[(subsets["source"] == "measured") & (subsets["test"] == "sharded_t")]
    fisher = combined[(combined["source"] == "measured") & (combined["status"] == OK)]
    excluded = ours[ours["status"] == OK].groupby("subset")["excluded"].any()
    return _cells(ours) | texts(
        subsets=len(excluded),
        dropped=int(excluded.sum()) if len(excluded) else MISSING,
        combined=len(fisher),
        rejected=fisher["p"] <= SIGNIFICANT,
    )


def released_wikimia(table: pd.DataFrame) -> Texts:
    """Count intervals that leave out chance, and give the range of the AUCs."""
    done = table[(table["status"] == OK) & table["auc"].notna()]
    found = texts(models=done["model"].nunique(), aucs=len(done), off=_off(done, 0.5))
    return _cells(table) | found | _range(done["auc"], 2)


def released_assumptions(within: pd.DataFrame, blind: pd.DataFrame) -> Texts:
    """Count cells of a model and a domain, and give the range of the AUCs of Fu's scores."""
    domains = within[within["domain"] != MEAN]
    cells = domains.drop_duplicates(["model", "domain"])
    ours = domains["metric"].astype(str).str.contains("|".join(OURS))
    done = domains[(domains["status"] == OK) & ~ours & domains["auc_percent"].notna()]
    baselines = blind[(blind["status"] == OK) & blind["auc"].notna()]
    found = _cells(cells) | texts(aucs=len(done), off=_off(done, CHANCE))
    found |= _range(done["auc_percent"], 1)
    return found | texts(baselines=len(baselines), baselines_off=_off(baselines, 0.5))


def released_papers(rows: pd.DataFrame) -> Texts:
    """Count the published cells, those that were measured, and verdicts that are the published."""
    done = rows[(rows["status"] == OK) & (rows["unit"] == "log10 p")]
    level = np.log10(SIGNIFICANT)
    same = (done["ours"] <= level) == (done["published"] <= level)
    return _cells(rows) | texts(verdicts=len(done), same=same)


def released_checkpoints(tested: pd.DataFrame, detected: pd.DataFrame) -> Texts:
    """Count what is rejected of planted sets and under controls, and the range of Min-K%."""
    by_record = tested[(tested["segmentation"] == "record") & (tested["dup_count"] > 0)]
    by_record = by_record[by_record["test"] == "sharded_exact"].dropna(subset="holm_p")
    tested = tested[tested["segmentation"] == "line"]
    done = tested[tested["status"] == OK]
    rejected = done["holm_p"] <= SIGNIFICANT
    planted, control = done["dup_count"] > 0, done["dup_count"] == 0
    found = _cells(tested) | texts(control_cells=control, control_rejected=control & rejected)
    found |= texts(
        record_planted=len(by_record), record_rejected=by_record["holm_p"] <= SIGNIFICANT
    )
    for name, test in (("exact", "sharded_exact"), ("successor", "successor")):
        own = planted & (done["test"] == test)
        counts = {f"{name}_planted": own, f"{name}_rejected": own & rejected}
        fewest = rounded(done.loc[own & rejected, "dup_count"].min(), 0)
        found |= texts(**counts, **{f"{name}_fewest": fewest})
    rates = detected[detected["status"] == OK]
    for name, at in (("planted", rates["dup_count"] > 0), ("control", rates["dup_count"] == 0)):
        span = rates.loc[at, "rate_percent"].agg(["min", "max"]).map("{:.0f}".format)
        found[f"min_k_{name}"] = " to ".join(span) if at.any() else MISSING
    return found


# Section of the report, called as the package of its notebook -> what reads its tables, and these.
RELEASED: dict[str, tuple[Callable[..., Texts], str]] = {
    "open_models": (released_open_models, "open_models"),
    "mmlu": (released_mmlu, "mmlu_subsets mmlu_fisher"),
    "wikimia": (released_wikimia, "wikimia"),
    "assumptions": (released_assumptions, "assumptions_within assumptions_blind"),
    "papers": (released_papers, "papers"),
    "checkpoints": (released_checkpoints, "checkpoints checkpoints_min_k"),
}
