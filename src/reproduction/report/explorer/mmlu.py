"""MMLU on the page: every subset, the measurements of each, and Fisher's combination.

The browser combines p-values itself, since a reader chooses the subsets; so the page
holds the p-values of every subset, and which of them are kept.
"""

from collections.abc import Sequence
from itertools import cycle
from typing import Any

import numpy as np
import pandas as pd

from contamination.audit.registry import DEFAULT_TESTS
from contamination.statistics import dkw_band, ecdf, fisher
from contamination.tables import MISSING
from contamination.testsets.registry import entries
from reproduction.notebooks.mmlu.evidence import PUBLISHED_RULE, MmluEvidence, shown_model
from reproduction.notebooks.mmlu.measure import FAMILY, subset_names, title
from reproduction.notebooks.mmlu.subset import (
    audit_command,
    examples_of,
    exclusion_of,
    fetch_command,
    lines_of,
    p_values_of,
    segmentation_of,
)
from reproduction.output.figures import MODEL_COLOURS
from reproduction.report.explorer.cells import layout, p_cell

BAND = 0.95  # of the band around uniform p-values, as in Figure 4 of notebook 04
SMALLEST = -300.0  # log10 of the smallest p-value that a curve shows as a number


def mmlu_payload(evidence: MmluEvidence) -> dict[str, Any]:
    """Return the data of MMLU on the page.

    A curve is an audited model of Table 4, or a model that was measured in one test.
    Its subsets are those that the paper's rule keeps, or that our controls keep in its
    test. If the file of a subset is on this machine, its measured examples are shown;
    nothing is fetched.

    Raises
    ------
    InputError
        If a file differs from its entry in the registry.
    """
    names = subset_names()
    curves = _curves(evidence)
    examples = {name: examples_of(evidence, name) for name in names}
    return {
        "names": names,
        "table": _subset_table(evidence, names),
        "fisher": _fisher_table(evidence, curves),
        "curves": curves,
        "band": _band(curves),
        "subsets": {name: _subset(evidence, name) for name in names},
        "at_hand": {name: texts for name, texts in examples.items() if texts},
        "source": evidence.source,
    }


def _subset_table(evidence: MmluEvidence, names: Sequence[str]) -> dict[str, Any]:
    """Lay out a row for each subset, p-values first, for narrow screens."""
    p_values = _wide_p_values(evidence)
    excluded = _who_excludes(evidence)
    lines = evidence.lines.drop_duplicates("subset").set_index("subset")["lines_per_record"]
    rows = []
    for name in names:
        cells = [p_cell(log10_p) for log10_p in p_values.loc[name]]
        records = entries()[FAMILY + name].records
        length = f"{lines[name]:.1f}" if name in lines else MISSING
        rows.append([title(name), *cells, excluded.get(name, ""), records, length])
    last = ("Excluded by", "Records", "Lines per record")
    return layout(("Subset",), list(p_values), rows, last)


def _wide_p_values(evidence: MmluEvidence) -> pd.DataFrame:
    """Return log10 p by subset: published, default test, then each model by line."""
    rows = evidence.p_values
    default = rows["test"].isin(DEFAULT_TESTS)
    published = rows["curve"] == rows["model"]
    shown = rows[published | default]
    shown = shown.assign(heading=shown["model"].str.removesuffix("-Instruct"))
    headings = list(dict.fromkeys(shown["heading"]))
    wide = shown.pivot(index="subset", columns="heading", values="log10_p")[headings]
    lines = evidence.lines
    by_line = lines[(lines["segmentation"] == "line") & lines["test"].isin(DEFAULT_TESTS)]
    for model, rows_of_model in by_line.groupby("model", sort=False):
        wide[f"{shown_model(model)}, by line"] = rows_of_model.set_index("subset")["log10_p"]
    return wide.reindex(subset_names())


def _who_excludes(evidence: MmluEvidence) -> dict[str, str]:
    """Name by subset who excludes it: the paper, or our controls in a test."""
    excluded = evidence.p_values[evidence.p_values["excluded"]]
    excluded = excluded.drop_duplicates(["subset", "rule"])
    names = excluded["rule"].replace(PUBLISHED_RULE, "paper").str.replace("_", " ")
    joined: dict[str, str] = names.groupby(excluded["subset"]).agg(", ".join).to_dict()
    return joined


def _curves(evidence: MmluEvidence) -> list[dict[str, Any]]:
    """Return each audited model with its p-values, the kept subsets and their ECDF."""
    curves = []
    groups = evidence.audited().groupby("curve", sort=False)
    for (name, rows), colour in zip(groups, cycle(MODEL_COLOURS), strict=False):
        kept = rows[~rows["excluded"]]
        curves.append(
            {
                "name": name,
                "colour": colour,
                "published": bool((rows["model"] == name).all()),
                "log10_p": dict(zip(rows["subset"], rows["log10_p"], strict=True)),
                "kept": list(kept["subset"]),
                "points": _points(kept["log10_p"].to_numpy()),
            },
        )
    return curves


def _points(log10_p: np.ndarray) -> list[tuple[float, float]]:
    """Return the corners of an ECDF of p-values, from (0, 0) to (1, 1)."""
    x, height = ecdf(10.0 ** np.maximum(log10_p, SMALLEST))
    inner = zip(x.tolist(), height.tolist(), strict=True)
    return [(0.0, 0.0), *inner, (1.0, 1.0)]


def _band(curves: Sequence[dict[str, Any]]) -> list[dict[str, float]]:
    """Return the band of uniform p-values for the curve of fewest subsets."""
    fewest = min(len(curve["kept"]) for curve in curves)
    width = dkw_band(fewest, BAND)
    band = []
    for p in np.linspace(0, 1, 51).tolist():
        band.append({"p": p, "low": max(0.0, p - width), "high": min(1.0, p + width)})
    return band


def _fisher_table(
    evidence: MmluEvidence,
    curves: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    """Lay out Fisher's p of the kept subsets of every curve, and that of Table 2."""
    rows = []
    for curve in curves:
        kept = [curve["log10_p"][name] for name in curve["kept"]]
        combined = p_cell(fisher(log10_p=kept).log10_p)
        printed = evidence.table2.get(curve["name"])
        shown = MISSING if printed is None else f"{printed:.3f}"
        rows.append([curve["name"], len(kept), shown, combined])
    return layout(("Model", "Kept", "Table 2"), ("Fisher's p",), rows)


def _subset(evidence: MmluEvidence, name: str) -> dict[str, Any]:
    """Return the data of the panel of one subset."""
    p_values = p_values_of(evidence, name)
    texts = [p_cell(log10_p)["text"] for log10_p in p_values["log10_p"]]
    ways = segmentation_of(evidence, name)
    return {
        "title": title(name),
        "why": exclusion_of(evidence, name),
        "p_values": p_values.assign(text=texts).to_dict("records"),
        "ways": {
            "columns": [{"title": column} for column in ways],
            "rows": ways.to_numpy().tolist(),
        },
        "lines": lines_of(evidence, name),
        "fetch": fetch_command(name),
        "audit": audit_command(name),
    }
