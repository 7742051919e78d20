"""Phases of notebook 08, and names of its scores in tables; nothing here needs a model."""

# Control: texts that fine-tuning will read, before it does.
PHASES = ("control", "pre-training", "fine-tuning")
KEYS = ["phase", "domain", "member"]  # what tells apart scored texts

# k of Fu; its names in the tables.
FIRST = (50, 100, 200)
MIN_K = (5, 15, 25)
MEM = (5, 15, 25)
ENTROPY = (5, 15, 25)
LABELS = (
    {f"ppl_{k}": f"PPL_{k}" for k in FIRST}
    | {"loss": "PPL"}
    | {f"min_prob_{k}": f"Min {k}% token" for k in MIN_K}  # as Fu define it
    | {f"min_k_{k}": f"Min-K% {k} (log)" for k in MIN_K}  # as Shi do
    | {f"mem_{k}": f"Mem {k}" for k in MEM}
    | {f"mem_off_by_one_{k}": f"Mem {k}, off by one" for k in MEM}
    | {f"entropy_{k}": f"Entropy {k}" for k in ENTROPY}
)
# Column of `contamination.membership.columns` -> assumption, and the name of the score.
ROWS = {
    "verbatim": ("A4", "Continued word for word"),
    "rouge_l": ("A4", "Continued, ROUGE-L"),
    "choice": ("A4", "Chosen among copies (DE-COP)"),
    "cloze": ("A5", "Key of a gap, gain"),
    "cloze_first": ("A5", "Key of a gap is first"),
    "cdd": ("A6", "Samples near the greedy text (CDD)"),
    "agreement": ("A6", "Mean distance of the samples"),
}
