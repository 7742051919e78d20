"""Tables of a made-up run, with planted counts for the sentences of the report."""

import pandas as pd

REPLICATES = pd.DataFrame(
    [
        ("same-start", "successor_32", 1.0, -21.0),
        ("same-start", "successor_32", 1.0, -22.0),
        ("same-start", "successor_32", 0.5, -2.0),
        ("same-start", "successor_8", 1.0, -0.01),
        ("other", "successor_32", 1.0, -30.0),
        ("other", "successor_8", 1.0, -25.0),
        ("same-start", "sharded_t", 1.0, -50.0),
    ],
    columns=["dataset", "test", "fraction", "log10_p"],
)
CALIBRATION = pd.DataFrame(
    [
        ("sum", "sharded_exact", 5, 0.05, 0.012, 0.006, 0.021),
        ("sum", "sharded_exact_monte_carlo", 20, 0.05, 0.068, 0.053, 0.085),
        ("boundary", "sharded_exact_monte_carlo", 20, 0.05, 0.05, 0.04, 0.06),
        ("boundary", "sharded_exact_monte_carlo", 20, 0.01, 0.05, 0.04, 0.06),
        ("sum", "anytime", 5, 0.05, 0.022, 0.01, 0.03),
        ("sum", "sharded_t", 5, 0.05, 0.042, 0.03, 0.05),
        ("sum", "sharded_t", 20, 0.05, 0.06, 0.04, 0.07),
        ("heavy_tailed", "sharded_t", 5, 0.05, 0.029, 0.02, 0.04),
        ("sum", "sharded_t_ddof_0", 5, 0.05, 0.071, 0.05, 0.08),
        ("sum", "sharded_t_ddof_0", 20, 0.05, 0.2, 0.1, 0.3),
    ],
    columns=["scores", "test", "shards", "alpha", "rate", "low", "high"],
)
FAILURES = pd.DataFrame(
    [
        ("clean", "as published (shuffled)", "order carries information", -3.0, -3.0),
        ("clean", "sorted by text", "order carries information", -4.8, -0.8),
        ("clean", "near-duplicates in pairs", "suspicious", -29.0, -14.3),
        ("clean", "numbered", "quiet", -0.7, -1.2),
        ("clean", "very short (three words)", "quiet", -3.0, -3.0),
        ("clean", "joined in tens (longer than the context)", "quiet", -3.0, -3.0),
        ("contaminated", "numbered", "order carries information", -3.0, -40.0),
    ],
    columns=["model", "order", "verdict", "log10_p_compressor", "log10_p_successor"],
)
# few: heuristic alone; seven, late: tests alone; often, most: both.
MIN_K = pd.DataFrame(
    [
        ("contaminated", "few", 1, "min_k_20", 0.30, 0.12),
        ("contaminated", "seven", 7, "min_k_20", 0.10, 0.02),
        ("contaminated", "late", 7, "min_k_20", 0.05, 0.00),
        ("contaminated", "often", 64, "min_k_20", 0.85, 0.70),
        ("contaminated", "most", 64, "min_k_20", 1.00, 0.90),
        ("contaminated", "seven", 7, "loss", 1.00, 0.90),
        ("clean", "seven", 0, "min_k_20", 1.00, 0.90),
    ],
    columns=["model", "dataset", "dup_count", "score", "share_detected", "share_detected_low"],
)
CANARIES = pd.DataFrame(
    [
        ("contaminated", "few", "successor", 0.2),
        ("contaminated", "few", "permutation", 0.01),  # does not stand beside the heuristics
        ("contaminated", "seven", "successor", 0.01),
        ("contaminated", "seven", "sharded_t", 0.9),
        ("contaminated", "late", "sharded_t", 0.05),
        ("contaminated", "often", "sharded_exact", 0.001),
        ("contaminated", "most", "sharded_exact", 0.001),
        ("clean", "few", "successor", 0.01),
    ],
    columns=["model", "dataset", "test", "holm_p"],
)
WITHIN = pd.DataFrame(
    [
        ("clean", "pre-training", "mean", "loss", 51.24),
        ("clean", "pre-training", "mean", "mem_25", 55.0),
        ("clean", "pre-training", "mean", "min_prob_5", 43.0),
        ("clean", "pre-training", "mean", "min_k_5", 20.0),
        ("clean", "pre-training", "mean", "mem_off_by_one_25", 20.0),
        ("clean", "pre-training", "a", "loss", 49.0),
        ("clean-4", "pre-training", "mean", "loss", 99.0),
        ("clean", "fine-tuning", "mean", "mem_25", 95.36),
    ],
    columns=["model", "phase", "domain", "metric", "auc_percent"],
)
BOOKS = pd.DataFrame(
    [
        ("a", "unread", "same packages", 0.5),
        ("b", "unread", "same packages", 0.1),
        ("a", "unread", "other packages", 0.6),
        ("b", "unread", "other packages", 0.9),
        ("c", "unread, elsewhere", "other packages", 0.9),
        ("d", "read once", "same packages", 0.9),
    ],
    columns=["book", "truth", "validation", "rate"],
)
BOOKS_VALIDATION = pd.DataFrame(
    [
        ("min_k_20", "same packages", 0.55),
        ("min_k_20", "other packages", 0.76),
        ("loss", "other packages", 0.99),
    ],
    columns=["score", "validation", "auc"],
)
DETECTION = pd.DataFrame(
    [
        (1.05, 24, 12, 2, 2, 0.02, 0.4, 0.87),
        (1.15, 24, 12, 5, 4, 0.0992, 0.6511, 0.87),
    ],
    columns=[
        *("window", "chunks", "untreated", "suspicious", "hits", "recall_low", "recall_high"),
        "auc_ratio",
    ],
)
OPTIONS = pd.DataFrame(
    [
        ("whole", 1, "successor", 0.3, -0.52, 0.4, -0.4),
        ("whole", 16, "successor", 1e-5, -5.0, 0.9, -0.05),
        ("whole", 16, "options", 1e-9, -9.0, 0.5, -0.3),
        ("shuffled", 16, "successor", 0.25, -0.6, 0.5, -0.3),
        ("shuffled", 16, "options", 1e-8, -8.0, 0.06, -1.2),
        ("single", 16, "successor", 0.75, -0.12, 0.5, -0.3),
        ("single", 16, "options", 0.0, -400.0, 0.5, -0.3),
        ("single", 16, "both", 0.0, -399.0, 0.5, -0.3),
    ],
    columns=["planting", "dup_count", "test", "p", "log10_p", "control_p", "control_log10_p"],
).assign(examples=60)
# By the name of the file in results/tables/ that a manifest reads; the canary sets it has itself.
FILES = {
    "power_replicates": REPLICATES,
    "calibration": CALIBRATION,
    "failures": FAILURES,
    "min_k": MIN_K,
    "assumptions_within": WITHIN,
    "books": BOOKS,
    "books_validation": BOOKS_VALIDATION,
    "unlearning_detection": DETECTION,
    "options": OPTIONS,
}
