"""One subset of MMLU at a time: a view for each question that a reader has of it.

Every view takes `MmluEvidence` and the name of a subset, and returns a table or a sentence.
It raises InputError for a name that is none of the subsets. The notebook explore_mmlu
calls them one by one, and the page of a run shows the same.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from contamination.statistics import fisher
from contamination.tables import MISSING, Layout, format_p, lay_out
from contamination.testsets.sources import available, open_test_set
from reproduction.notebooks.mmlu.evidence import (
    PUBLISHED_RULE,
    MmluEvidence,
    check_subset,
    curve_of,
    shown_model,
)
from reproduction.notebooks.mmlu.measure import FAMILY, SEGMENTATIONS


def p_values_of(evidence: MmluEvidence, subset: str) -> pd.DataFrame:
    """Return the p-value of every model: columns curve, kind, log10_p and excluded.

    `kind` is "published", "control" (published as well, of a model that cannot know
    MMLU) or "measured".
    """
    rows = evidence.of_subset(subset)
    published = rows["curve"] == rows["model"]
    kinds = np.where(published, "published", "measured")
    kinds = np.where(published & rows["control"], "control", kinds)
    rows = rows.assign(kind=kinds).reset_index(drop=True)
    return rows[["curve", "kind", "log10_p", "excluded"]]


def exclusion_of(evidence: MmluEvidence, subset: str) -> str:
    """Return who excludes a subset and why, or that it is kept, in sentences."""
    rows = evidence.of_subset(subset)
    sentences = []
    for rule, of_rule in rows.groupby("rule", sort=False):
        reason = of_rule["reason"].iloc[0]
        if rule == PUBLISHED_RULE:
            sentences.append(_verdict_of_the_paper(reason))
        elif reason:
            test = rule.replace("_", " ")
            sentences.append(f"Our control excludes it in the {test} test: {reason}.")
    return " ".join(sentences)


def _verdict_of_the_paper(reason: str) -> str:
    if not reason:
        return "The paper keeps it: neither BioMedLM nor GPT-2 XL has p below 0.05."
    if "Table 4" in reason:
        return "Table 4 of the paper does not list it, so its rule cannot keep it."
    named = reason.replace(", ", " and ")
    return (
        f"The paper excludes it: {named}. Its controls cannot know MMLU, so something "
        "other than memory makes this order likely."
    )


def segmentation_of(evidence: MmluEvidence, subset: str) -> Layout:
    """Lay out the evidence of order in its examples, by record and by line."""
    check_subset(subset)
    rows = evidence.lines[evidence.lines["subset"] == subset]
    shown = []
    for segmentation in SEGMENTATIONS:
        segmented = rows[rows["segmentation"] == segmentation]
        if len(segmented):
            shown.append(_segmentation_row(segmented))
    laid_out: Layout = Layout(shown, dtype=object).fillna(MISSING)
    return laid_out


def _segmentation_row(segmented: pd.DataFrame) -> dict[str, str]:
    """Return the cells of one segmentation: diagnosis, zlib baseline, models."""
    first = segmented.iloc[0]
    row = {
        "Read by": str(first["segmentation"]),
        "Examples": str(first["examples"]),
        "Order": str(first["verdict"]),
        "zlib baseline": _p_text(first["compressor_log10_p"]),
    }
    for _, tested in segmented.dropna(subset="model").iterrows():
        curve = curve_of(tested["model"], tested["test"])
        row[curve] = _p_text(tested["log10_p"])
    return row


def _p_text(log10_p: float) -> str:
    return format_p(10.0**log10_p, log10_p)


def lines_of(evidence: MmluEvidence, subset: str) -> str:
    """Return how its records lie in lines, and which models were asked by line."""
    check_subset(subset)
    rows = evidence.lines[evidence.lines["subset"] == subset]
    if rows.empty:
        return "Nobody has measured its records here."
    first = rows.iloc[0]
    facts = (
        f"A record has {first['lines_per_record']:.1f} lines on average; "
        f"{first['spanning']:.0%} of the records span several lines, and "
        f"{first['shared_passages']:.0%} share a passage with another record."
    )
    by_line = rows[rows["segmentation"] == "line"].dropna(subset="model")
    if by_line.empty:
        return f"{facts} No model was asked by line."
    asked = ", ".join(shown_model(model) for model in by_line["model"].unique())
    return f"{facts} Asked by line: {asked}."


def _audited_curves(
    evidence: MmluEvidence, subset: str
) -> Iterator[tuple[str, pd.DataFrame, pd.DataFrame]]:
    """Yield each audited curve that has the subset: its name, its rows, that of the subset."""
    check_subset(subset)
    for curve, of_curve in evidence.audited().groupby("curve", sort=False):
        own = of_curve[of_curve["subset"] == subset]
        if len(own):
            yield str(curve), of_curve, own


def places_of(evidence: MmluEvidence, subset: str) -> pd.DataFrame:
    """Return its place among the subsets that each audited model keeps.

    Columns curve, log10_p, kept (whether it is one of them), rank (kept subsets with a
    p-value at most as large, itself included) and subsets (all that are kept).
    """
    rows = []
    for curve, of_curve, own in _audited_curves(evidence, subset):
        log10_p = float(own["log10_p"].iloc[0])
        kept = of_curve[~of_curve["excluded"]]
        rows.append(
            {
                "curve": curve,
                "log10_p": log10_p,
                "kept": not own["excluded"].iloc[0],
                "rank": int((kept["log10_p"] <= log10_p).sum()),
                "subsets": len(kept),
            }
        )
    return pd.DataFrame(rows)


def leave_one_out(evidence: MmluEvidence, subset: str) -> pd.DataFrame:
    """Combine the kept subsets by Fisher's method, with this subset and without it.

    Columns curve, log10_p_with, log10_p_without and others (how many others are kept).
    The law is that of independent subsets; p is one-sided.
    """
    rows = []
    for curve, of_curve, own in _audited_curves(evidence, subset):
        is_other = of_curve["subset"] != subset
        others = of_curve[~of_curve["excluded"] & is_other]
        everything = pd.concat([others, own])
        rows.append(
            {
                "curve": curve,
                "log10_p_with": fisher(log10_p=everything["log10_p"]).log10_p,
                "log10_p_without": fisher(log10_p=others["log10_p"]).log10_p,
                "others": len(others),
            }
        )
    return pd.DataFrame(rows)


def combination_layout(evidence: MmluEvidence, subset: str) -> Layout:
    """Lay out the contribution of one subset: `places_of` and `leave_one_out`."""
    rows = places_of(evidence, subset).merge(leave_one_out(evidence, subset), on="curve")
    return lay_out(rows, {"curve": "Model"}, _combination_cells)


def _combination_cells(row: dict[str, Any]) -> dict[str, str]:
    return {
        "Its p": _p_text(row["log10_p"]),
        "Kept subsets up to it": f"{row['rank']} of {row['subsets']}",
        "Others": str(row["others"]),
        "Fisher's p with it": _p_text(row["log10_p_with"]),
        "without it": _p_text(row["log10_p_without"]),
    }


def examples_of(evidence: MmluEvidence, subset: str) -> list[str]:
    """Return the text of its examples, as many as were measured.

    Nothing is fetched: there are none if its file is not at hand. Raises InputError if
    the file is not what the registry says.
    """
    check_subset(subset)
    name = FAMILY + subset
    if not available(name):
        return []
    test_set = open_test_set(name, max_records=evidence.most_records)
    return [text.rstrip("\n") for text in test_set.examples]


def fetch_command(subset: str) -> str:
    """Return the command that fetches the file of a subset."""
    return f"contamination data fetch {FAMILY}{subset}"


def audit_command(subset: str) -> str:
    """Return the command that audits a model on a subset."""
    return f"contamination test MODEL {FAMILY}{subset} --control gpt2"
