"""Columns of the tables of MMLU, in their order."""

ROWS = (
    "model",
    "subset",
    "segmentation",
    "examples",
    "test",
    "shards",
    "permutations",
    "statistic",
    "p",
    "log10_p",
    "published_p",
    "tokens_scored",
)
SUBSET_COLUMNS = (
    "model",
    "source",
    "test",
    "subset",
    "examples",
    "shards",
    "permutations",
    "p",
    "log10_p",
    "published_p",
    "excluded",
    "reason",
    "status",
)
TYPES = dict.fromkeys(("examples", "shards", "permutations"), "Int64")
TYPES |= dict.fromkeys(("p", "log10_p", "published_p"), "float64")
FISHER_COLUMNS = (
    "model",
    "source",
    "test",
    "subsets_kept",
    "statistic",
    "p",
    "log10_p",
    "published_p",
    "cauchy_p",
    "harmonic_mean_p",
    "status",
)
