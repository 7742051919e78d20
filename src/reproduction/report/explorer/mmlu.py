"""MMLU without a store: Table 4 of Oren, whom its procedure excludes, and what was measured."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from contamination.audit.battery import DEFAULT_TESTS, TESTS
from contamination.scoring.status import OK
from contamination.statistics import dkw_band
from contamination.tables import SIGNIFICANT
from contamination.testsets.registry import lookup
from contamination.testsets.sources import available, open_test_set
from reproduction.notebooks.mmlu.segmentation import SEGMENTATIONS
from reproduction.notebooks.mmlu.subsets import FAMILY, subset_names, title
from reproduction.notebooks.mmlu.tables import published_subsets
from reproduction.output.figures import MODEL_COLOURS
from reproduction.output.published import AUDITED, CONTROLS, load_published

MEASURED = ("mmlu_subsets", "mmlu_lines")  # tables of notebook 04
LEVEL = 0.95  # of the band around uniform p-values, as in Figure 4 of notebook 04


@dataclass(frozen=True, eq=False)
class Mmlu:
    """Tables of MMLU.

    Attributes
    ----------
    published : of `published_subsets`.
    combined : Fisher's p of Table 2, by the model's name.
    measured : of `measured_subsets`, by record.
    lines : of `line_table`: controls in both segmentations, and what needs no model.
    here : whether the run measured them itself.
    examples : by subset, of the files that are on this machine, as many as were measured.
    """

    published: pd.DataFrame
    combined: pd.Series
    measured: pd.DataFrame
    lines: pd.DataFrame
    here: bool
    examples: Mapping[str, tuple[str, ...]]


def load_mmlu(published: Path | str, measurements: Path | str, results: Path | str) -> Mmlu:
    """Read the tables of the papers, and of the run if it measured MMLU, else of `measurements`.

    Nothing is fetched: examples are those of files in the mirror or the cache. Raises InputError if
    a published table is missing, or a file is not what the registry says.
    """
    table4 = load_published(published, "oren2024_table4_mmlu")
    table2 = load_published(published, "oren2024_table2_open_models").set_index("dataset")
    paths = [Path(results) / "tables" / f"{name}.csv" for name in MEASURED]
    tables = [pd.read_csv(path) for path in paths if path.is_file()]
    here = len(tables) == len(MEASURED) and not tables[1].empty
    if not here:
        tables = [load_published(measurements, name) for name in MEASURED]
    subsets = tables[0]
    return Mmlu(
        published_subsets(table4, SIGNIFICANT),
        table2.loc["MMLU (Fisher)", list(AUDITED)].rename(AUDITED),
        subsets[(subsets["source"] == "measured") & (subsets["status"] == OK)],
        tables[1],
        here,
        _examples_at_hand(_most_records(tables[1])),
    )


def _examples_at_hand(most: int) -> dict[str, tuple[str, ...]]:
    names = [name for name in subset_names() if available(FAMILY + name)]
    return {name: open_test_set(FAMILY + name, max_records=most).examples for name in names}


def _most_records(lines: pd.DataFrame) -> int:
    return int(lines.loc[lines["segmentation"] == "record", "examples"].max())


def mmlu_payload(mmlu: Mmlu) -> dict[str, Any]:
    """Return what the page shows of MMLU, ready for JSON.

    A column is a model of Table 4, or a model measured here in one test; its `rule` names the
    filter of its subsets: that of the paper, or that of our controls in its test.
    """
    colours = iter(MODEL_COLOURS)
    columns = [
        {"id": name, "label": name, "rule": "published", "control": name in CONTROLS.values()}
        for name in (AUDITED | CONTROLS).values()
    ]
    controls = set(mmlu.lines["model"].dropna())
    audited = mmlu.measured[~mmlu.measured["model"].isin(controls)]
    columns += [
        {"id": f"{model}, {test}", "label": _label(model, test), "rule": test, "control": False}
        for model, test in audited[["model", "test"]].drop_duplicates().itertuples(index=False)
    ]
    for column in columns:
        if not column["control"]:
            column["colour"] = next(colours, "#666666")
            combined = mmlu.combined.get(column["id"])
            column["printed"] = None if pd.isna(combined) else f"{combined:.3f}"
    shown = mmlu.lines[mmlu.lines["test"] == DEFAULT_TESTS[0]]
    names = subset_names()
    return {
        "columns": columns,
        "level": SIGNIFICANT,
        "band": dkw_band(1, LEVEL),
        "beside": _label(shown["model"].iloc[0], DEFAULT_TESTS[0]) if len(shown) else "",
        "source": _source(mmlu),
        "subsets": [_subset(name, mmlu) for name in names],
    }


def _label(model: str, test: str) -> str:
    return f"{model}, {TESTS[test].label.lower()}"


def _source(mmlu: Mmlu) -> str:
    where = "in this run" if mmlu.here else "for docs/mmlu.md, not in this run"
    return (
        f"Measured {where}, under models trained here that have not read MMLU in this order; at "
        f"most {_most_records(mmlu.lines)} records of a subset."
    )


def _subset(name: str, mmlu: Mmlu) -> dict[str, Any]:
    printed = mmlu.published[mmlu.published["subset"] == name]
    ours = mmlu.measured[mmlu.measured["subset"] == name]
    lines = mmlu.lines[mmlu.lines["subset"] == name]
    p = {row.model: float(np.log10(row.published_p)) for row in printed.itertuples()}
    p |= {f"{row.model}, {row.test}": row.log10_p for row in ours.itertuples()}
    excluded = {row.test: row.reason for row in ours[ours["excluded"]].itertuples()}
    if len(printed) and printed["excluded"].any():
        excluded["published"] = printed["reason"].iloc[0]
    return {
        "name": name,
        "title": title(name),
        "records": lookup(FAMILY + name).records,
        "listed": len(printed) > 0,
        "p": p,
        "excluded": excluded,
        "facts": _facts(lines),
        "cut": {way: _cut(lines[lines["segmentation"] == way], ours) for way in SEGMENTATIONS}
        if len(lines)
        else {},
    }


def _facts(lines: pd.DataFrame) -> dict[str, float]:
    """What the records are like, whichever way they are cut."""
    names = ("lines_per_record", "spanning", "shared_passages")
    return {name: float(lines[name].iloc[0]) for name in names} if len(lines) else {}


def _cut(lines: pd.DataFrame, ours: pd.DataFrame) -> dict[str, Any]:
    """One subset in one segmentation: what needs no model, and every model and test."""
    first = lines.iloc[0]
    tested = lines[lines["log10_p"].notna()]
    rows = [
        {"model": row.model, "test": row.test, "shards": int(row.shards), "log10_p": row.log10_p}
        for row in tested.itertuples()
    ]
    if first["segmentation"] == "record":
        shards = {row.test: int(row.shards) for row in tested.itertuples()}
        others = ours[~ours["model"].isin(tested["model"])]
        rows += [
            {"model": row.model, "test": row.test, "shards": shards.get(row.test)}
            | {"log10_p": row.log10_p}
            for row in others.itertuples()
        ]
    return {
        "examples": int(first["examples"]),
        "verdict": first["verdict"],
        "compressor": float(first["compressor_log10_p"]),
        "rows": rows,
    }
