"""Tables of MMLU: records against lines.

The tests, the diagnostics and the zlib baseline see each subset cut into records, and cut
into lines. The tables say which of the two each of them rejects, beside the subsets
that the paper excludes.
"""

import math

import numpy as np
import pandas as pd

from contamination.tables import format_p, lay_out
from reproduction.notebooks.mmlu.measure import BASELINE, COMPRESSOR, SEGMENTATIONS, title
from reproduction.output.published import CONTROLS
from reproduction.run.grid import Row


def line_table(
    free: pd.DataFrame,
    measured: pd.DataFrame,
    table4: pd.DataFrame,
    exclude_below: float,
) -> pd.DataFrame:
    """Compare segmentations, p-values of models, and exclusions of the paper.

    A row for each subset, segmentation, model and test: the columns of `model_free`,
    those of `judge_stores` on the model, published_biomedlm and published_gpt2_xl of
    Table 4, and excluded_in_paper, where either of these is below `exclude_below`.

    Parameters
    ----------
    free
        The table of `model_free`.
    measured
        The table of `judge_stores`.
    table4
        The published Table 4.
    exclude_below
        p-value of a control of the paper below which a subset is out.
    """
    controls = table4.set_index("subset")[list(CONTROLS)]
    excluded = (controls < exclude_below).any(axis=1).astype("boolean")
    controls = controls.add_prefix("published_").assign(excluded_in_paper=excluded)
    tested = measured.drop(columns=["examples", "published_p"])
    by_segmentation = free.merge(tested, "left", ["subset", "segmentation"])
    return by_segmentation.merge(controls, "left", "subset")


def outcomes(lines: pd.DataFrame, exclude_below: float) -> pd.DataFrame:
    """Return which segmentation each piece of evidence rejects, by subset.

    `lines` come from `line_table`. Evidence is "compressor" or a model and test, which
    reject where p is below `exclude_below`, or "diagnostics", which reject where the
    order carries information. `record` and `line` say whether it rejects that
    segmentation, `outcome` says so in words.
    """
    level = math.log10(exclude_below)
    free = lines.drop_duplicates(["subset", "segmentation"])
    tested = lines[lines["log10_p"].notna()]
    evidence = tested["model"] + ", " + tested["test"]
    telling = free["verdict"] == "order carries information"
    pieces = (
        free.assign(evidence="diagnostics", rejects=telling),
        free.assign(evidence=COMPRESSOR, rejects=free["compressor_log10_p"] < level),
        tested.assign(evidence=evidence, rejects=tested["log10_p"] < level),
    )
    rejects = pd.concat(pieces).set_index(["subset", "evidence", "segmentation"])["rejects"]
    wide = rejects.unstack().reindex(columns=list(SEGMENTATIONS)).astype(bool).reset_index()
    excluded = free.drop_duplicates("subset")[["subset", "excluded_in_paper"]]
    table = excluded.merge(wide, on="subset")
    both = [table["record"] & table["line"], table["record"], table["line"]]
    words = ["by both", "by record only", "by line only"]
    return table.assign(outcome=np.select(both, words, "by neither"))


def exclusions_layout(lines: pd.DataFrame, judged: pd.DataFrame) -> pd.DataFrame:
    """Lay out the subsets that the paper excludes: its controls, and each evidence here.

    `lines` come from `line_table`, and `judged` from `outcomes`. Each evidence says
    which segmentation it rejects, bold where that is the lines only of records that
    span several: elsewhere both are the same, and only chance sets them apart.
    """

    def cells(row: Row) -> dict[str, str]:
        outcome = row["outcome"].removeprefix("by ")
        explains = outcome == "line only" and row["spanning"] > 0
        shown = f"**{outcome}**" if explains else outcome
        cells_of_row = {"Lines per record": f"{row['lines_per_record']:.1f}"}
        for column, name in CONTROLS.items():
            cells_of_row[name] = format_p(row[f"published_{column}"])
        evidence = row["evidence"].replace("_", " ").capitalize()
        if row["evidence"] == COMPRESSOR:
            evidence = BASELINE
        cells_of_row[evidence] = shown
        return cells_of_row

    excluded = judged[judged["excluded_in_paper"].fillna(False).astype(bool)]
    facts = lines.drop_duplicates("subset").drop(columns="excluded_in_paper")
    rows = excluded.merge(facts, on="subset").sort_values(["subset", "evidence"])
    return lay_out(
        rows.assign(subset=rows["subset"].map(title)),
        {"subset": "Subset"},
        cells,
    )
