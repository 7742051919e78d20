"""Numbers of the report on models that are trained here: a function for each notebook.

A sentence such as "the score misses few" holds for the run that it was written for. So
the report says how many, and these functions count them; a dash stands where a run has
measured nothing.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from contamination.audit.registry import OPTION_TEST
from contamination.tables import MISSING, SIGNIFICANT, format_p
from reproduction.notebooks.assumptions.labels import LABELS
from reproduction.notebooks.assumptions.tables import CHANCE, MEAN, OURS
from reproduction.notebooks.beyond.tables import AS_PUBLISHED, LONG, SHORT
from reproduction.notebooks.books.settings import SCORE, UNREAD
from reproduction.notebooks.books.tables import VALIDATIONS
from reproduction.notebooks.controlled.tables import OUTLIER
from reproduction.notebooks.min_k.held_out_tables import FURTHER, READERS
from reproduction.notebooks.min_k.tables import COMPARED_TESTS
from reproduction.notebooks.options.tables import ORDER
from reproduction.notebooks.wikimia.texts import CONTROL, ORIGINAL, READ_HERE
from reproduction.output.published import AUDITED, load_published
from reproduction.report.prose import Texts, count_text, percent, rounded, texts
from reproduction.run.injection import PLANTINGS
from reproduction.run.null_calibration import (
    format_null_rejections,
    pooled_null_calibration,
)

MANY = 32  # dup_count from which on detection is expected beyond doubt
PUBLISHED_WINDOW = 1.15  # of ratios, in Shi et al.; a window of notebook 11
NEAR = 5.0  # percentage points of AUC; ours, since Fu et al. name no tolerance


def numbers_of_canaries(canaries: pd.DataFrame, alpha: float) -> Texts:
    """Count the planted sets that the exact and the successor test detect."""
    rejected = canaries[canaries["holm_p"] <= alpha]
    variables = {"alpha": f"{alpha:g}"}
    for prefix, test in (("", "sharded_exact"), ("successor_", "successor")):
        is_detected = (rejected["model"] == "contaminated") & (rejected["test"] == test)
        rows = rejected[is_detected]
        fewest = rows["dup_count"].min() if len(rows) else "none"
        variables[f"{prefix}detected"] = count_text(len(rows))
        variables[f"{prefix}smallest_detected_dup"] = count_text(fewest)
    exact = canaries[canaries["test"] == "sharded_exact"].set_index("model").sort_values("log10_p")
    many = exact[(exact.index == "contaminated") & (exact["dup_count"] >= MANY)]
    largest_p = MISSING
    if len(many):
        largest_p = format_p(many["p"].iloc[-1], many["log10_p"].iloc[-1])
    accused = rejected.loc[rejected["model"] == "clean", "dataset"].nunique()
    return variables | texts(
        sets_at_32_or_more=len(many),
        largest_p_at_32_or_more=largest_p,
        clean_min_holm_p=format_p(exact.loc[exact.index == "clean", "holm_p"].min()),
        clean_accused=accused or "none",
    )


def numbers_of_null_calibration(canaries: pd.DataFrame) -> Texts:
    """Write the percent of redrawn orders that tests reject, with 95% intervals."""
    pooled = pooled_null_calibration(canaries).set_index(["model", "test"])
    rates = {key: format_null_rejections(row) for key, row in pooled.iterrows()}
    return texts(
        clean=rates.get(("clean", "successor"), MISSING),
        contaminated=rates.get(("contaminated", "successor"), MISSING),
        clean_sharded_t=rates.get(("clean", "sharded_t"), MISSING),
        each=int(canaries["redrawn_orders"].max()),
        orders=int(pooled["redrawn_orders"].max()),
    )


def numbers_of_mmlu(combined: pd.DataFrame, subsets: pd.DataFrame, published: Path) -> Texts:
    """Count the subsets that the paper's rule drops; write Fisher's p of the others, and its own.

    Parameters
    ----------
    combined
        The table `mmlu_fisher`.
    subsets
        The table `mmlu_subsets`.
    published
        Directory of the papers' tables.
    """
    # A run that measures the models of the paper has rows of its own for them.
    combined = combined.query("source == 'published'").set_index("model").loc[AUDITED.values()]
    excluded = subsets.query("source == 'published' and model == 'LLaMA2-7B'")["excluded"]
    text = load_published(published, "oren2024_text").set_index("key")["value"]
    variables = texts(
        subsets_listed=len(excluded),
        subsets_dropped=excluded,
        subsets_kept=~excluded,
        published_kept=text["mmlu_subsets_kept"],
        published_dropped=text["mmlu_subsets_dropped"],
    )
    for prefix, column in (("", "p"), ("published_", "published_p")):
        for key, value in zip(AUDITED, combined[column], strict=True):
            variables[f"{prefix}{key}"] = f"{value:.3g}"
    return variables


def numbers_of_short_prefixes(replicates: pd.DataFrame) -> Texts:
    """Name the set that loses most evidence with b = 8 instead of 32."""
    whole = replicates[replicates["fraction"] == 1.0]  # all shards, as in the ranking
    means = whole.groupby(["dataset", "test"])["log10_p"].mean().unstack()
    worst = means.loc[(means["successor_8"] - means["successor_32"]).idxmax()]
    variables = {"set": str(worst.name)}
    for b in (32, 8):
        log10_p = worst[f"successor_{b}"]
        variables[f"with_{b}"] = f"{log10_p:z.1f}".replace("-", "−")
    return variables


def numbers_of_calibration(calibration: pd.DataFrame) -> Texts:
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


def numbers_of_failures(failures: pd.DataFrame) -> Texts:
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


def numbers_of_generated(generated: pd.DataFrame) -> Texts:
    """Count the sets found by texts and by scores, and give the smallest p of the clean model."""
    variables = texts(sets=generated["dataset"].nunique())
    for name, access in {"texts": "generated", "scores": "log-probabilities"}.items():
        rows = generated[generated["access"] == access]
        is_clean = rows["model"] == "clean"
        is_found = (rows["p"] <= SIGNIFICANT) & ~is_clean
        variables[name] = count_text(is_found)
        variables[f"{name}_clean"] = format_p(rows.loc[is_clean, "p"].min())
        variables[f"{name}_fewest"] = rounded(
            rows.loc[is_found, "dup_count"].min(),
            digits=0,
        )
    return variables


def numbers_of_min_k(min_k: pd.DataFrame, canaries: pd.DataFrame, alpha: float) -> Texts:
    """Compare Min-K% with the tests on the same sets, and write its range at many copies.

    Parameters
    ----------
    min_k
        The table of that name.
    canaries
        The table of that name, with the p-values of the tests.
    alpha
        Level of the tests, after Holm's correction.
    """
    spans = min_k[(min_k["model"] == "contaminated") & (min_k["score"] == "min_k_20")]
    spans = spans.set_index("dataset")
    tests = canaries[(canaries["model"] == "contaminated") & canaries["test"].isin(COMPARED_TESTS)]
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


def numbers_of_held_out(table: pd.DataFrame, alpha: float) -> Texts:
    """Count the sets that held-out twins and the order of records show, and false rejections.

    Parameters
    ----------
    table
        The table of planted sets and their twins.
    alpha
        Level, after Holm's correction.
    """
    is_found = table["holm_p"] <= alpha
    in_order = table["order_holm_p"] <= alpha
    variables = {}
    for prefix, model in (("", "contaminated"), ("scattered_", FURTHER), ("clean_", "clean")):
        is_shown = table["model"] == model
        variables[f"{prefix}sets"] = count_text(is_shown)
        variables[f"{prefix}found"] = count_text(is_found & is_shown)
        variables[f"{prefix}order"] = count_text(in_order & is_shown)
    is_refused = is_found & table["verdict"].str.startswith("sides")
    variables["refused"] = count_text(is_refused & table["model"].isin(READERS))
    return variables


def numbers_of_assumptions(within: pd.DataFrame) -> Texts:
    """Write mean AUCs over domains of the clean model; count Fu's metrics that are near chance."""
    means = within[(within["model"] == "clean") & (within["domain"] == MEAN)]
    by_phase = means.set_index(["phase", "metric"])["auc_percent"]
    read_once = _of_phase(by_phase, "pre-training")
    tuned = _of_phase(by_phase, "fine-tuning")
    variables = {"ppl_read_once": rounded(read_once.get("loss", np.nan), digits=1)}
    shown = {"ppl": "loss", "mem": "mem_25", "mem_off_by_one": "mem_off_by_one_25"}
    for name, metric in shown.items():
        variables[f"{name}_tuned"] = rounded(tuned.get(metric, np.nan), digits=1)
    of_fu = read_once[~read_once.index.str.contains("|".join(OURS))]
    if of_fu.empty:
        return variables | dict.fromkeys(
            ["metrics", "near", "furthest", "furthest_auc"],
            MISSING,
        )
    distance = (of_fu - CHANCE).abs()
    furthest = distance.idxmax()
    return variables | texts(
        metrics=len(of_fu),
        near=distance <= NEAR,
        furthest=LABELS[furthest],
        furthest_auc=rounded(of_fu[furthest], digits=1),
    )


def numbers_of_wikimia(wikimia: pd.DataFrame) -> Texts:
    """Count intervals that leave out 0.5, for texts of known membership and for the control.

    Every score, model and length of original texts counts.
    """
    variables: Texts = {}
    for prefix, source in (("", READ_HERE), ("control_", CONTROL)):
        is_counted = (wikimia["source"] == source) & (wikimia["variant"] == ORIGINAL)
        aucs = wikimia[is_counted].dropna(subset=["auc"])
        is_off = (aucs["auc_low"] > 0.5) | (aucs["auc_high"] < 0.5)
        variables[f"{prefix}values"] = count_text(len(aucs))
        variables[f"{prefix}off"] = count_text(is_off)
    return variables


def numbers_of_doses(doses: pd.DataFrame) -> Texts:
    """Write the share of the text that outliers are, in percent, from the smallest text on."""
    outliers = doses[doses["contaminant"] == OUTLIER].sort_values("corpus_tokens")
    shares = [f"{100 * share:.0f}%" for share in outliers["share"]]
    return {"outlier_shares": " and ".join([", ".join(shares[:-1]), shares[-1]])}


def _of_phase(by_phase: pd.Series, phase: str) -> pd.Series:
    """Return the values of a phase by metric."""
    return by_phase[by_phase.index.get_level_values("phase") == phase].droplevel("phase")


def numbers_of_books(rates: pd.DataFrame, aucs: pd.DataFrame) -> Texts:
    """Write the changes if the unread validation books are of other packages.

    Parameters
    ----------
    rates
        The table `books`.
    aucs
        The table `books_validation`.
    """
    unread = rates[rates["truth"] == UNREAD]
    of_score = aucs[aucs["score"] == SCORE].set_index("validation")["auc"]
    variables = texts(unread=unread["book"].nunique())
    for key, validation in zip(("same", "other"), VALIDATIONS.values(), strict=True):
        accused = unread.loc[unread["validation"] == validation, "rate"] > 0.5
        variables[f"auc_{key}"] = rounded(of_score.get(validation, np.nan), digits=2)
        variables[f"accused_{key}"] = count_text(accused) if len(accused) else MISSING
    return variables


def numbers_of_unlearning(chunks: pd.DataFrame, detection: pd.DataFrame) -> Texts:
    """Write the detections of the published window, by either ratio, and the model's recall.

    Parameters
    ----------
    chunks
        The table `unlearning`.
    detection
        The table `unlearning_detection`.
    """
    rows = detection[detection["window"] == PUBLISHED_WINDOW].set_index("score")
    rows = rows.reindex(["ratio", "perplexity_ratio"])
    row = rows.loc["ratio"]
    answers = chunks["answers_unlearned"]
    by_suspicion = answers.groupby(chunks["suspicious"]).mean()
    by_truth = answers.groupby(chunks["treated"]).mean()
    return texts(
        chunks=len(chunks),
        suspicious=chunks["suspicious"],
        hits=rounded(row["hits"], digits=0),
        untreated=~chunks["treated"],
        missed=rounded(row["untreated"] - row["hits"], digits=0),
        found_low=percent(row["recall_low"]),
        found_high=percent(row["recall_high"]),
        auc_ratio=rounded(row["auc_ratio"], digits=2),
        by_perplexity=rounded(rows.loc["perplexity_ratio", "suspicious"], digits=0),
        answers_suspicious=rounded(by_suspicion.get(True, np.nan), digits=2),
        answers_others=rounded(by_suspicion.get(False, np.nan), digits=2),
        answers_kept=rounded(by_truth[False], digits=2),
        answers_forgotten=rounded(by_truth[True], digits=2),
    )


def numbers_of_options(options: pd.DataFrame) -> Texts:
    """Write the p-values of both axes for each planting at the most copies, and of the controls."""
    most = options[options["dup_count"] == options["dup_count"].max()]
    p_values = {(row.planting, row.test): format_p(row.p, row.log10_p) for row in most.itertuples()}
    variables = {}
    for planting in PLANTINGS:
        for name, test in (("records", ORDER), ("options", OPTION_TEST)):
            if (planting, test) in p_values:
                variables[f"{planting}_{name}"] = p_values[planting, test]
    lowest = options.loc[options["control_log10_p"].idxmin()]
    return variables | texts(
        examples=options["examples"].max(),
        copies=options["dup_count"].max(),
        controls=len(options),
        control_smallest=format_p(lowest["control_p"], lowest["control_log10_p"]),
    )
