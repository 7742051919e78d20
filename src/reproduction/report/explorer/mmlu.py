"""MMLU without a store: Table 4 of Oren, whom its procedure excludes, and what was measured."""

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from contamination.audit.battery import DEFAULT_TESTS, TESTS
from contamination.scoring.status import OK
from contamination.statistics import dkw_band
from contamination.tables import MISSING, SIGNIFICANT, format_p
from contamination.testsets.registry import lookup
from contamination.testsets.sources import available, open_test_set
from reproduction.notebooks.mmlu.subsets import FAMILY, SEGMENTATIONS, subset_names, title
from reproduction.notebooks.mmlu.tables import published_subsets
from reproduction.output.figures import MODEL_COLOURS
from reproduction.output.published import AUDITED, CONTROLS, load_published

MEASURED = ("mmlu_subsets", "mmlu_lines")  # tables of notebook 04
BAND = 0.95  # of the band around uniform p-values, as in Figure 4 of notebook 04
PUBLISHED = "published"  # the paper's rule of exclusion; others are named after their test
BESIDE = [f"here, by {way}" for way in SEGMENTATIONS]  # a control in the default test


def p_cell(log10_p: float) -> dict[str, Any]:
    """A p-value as a cell of a table: "—" for NaN, and no floor, since its logarithm is given."""
    value = 1.0 if np.isnan(log10_p) else float(log10_p)  # unknown ones are sorted last
    return {"text": format_p(10.0**log10_p, log10_p), "value": value}


def layout(titles: Sequence[str], p_values: Sequence[str], rows: list[list[Any]]) -> dict[str, Any]:
    """A table of the page whose last columns hold cells of `p_cell`."""
    render = {"_": "text", "sort": "value", "type": "value"}
    columns = [*({"title": t} for t in titles), *({"title": t, "render": render} for t in p_values)]
    return {"columns": columns, "rows": rows}


def mmlu_payload(
    published: Path | str, measurements: Path | str, results: Path | str, scored: Collection[str]
) -> tuple[dict[str, Any], Mapping[str, Sequence[str]]]:
    """Return what the page shows of MMLU, and the examples of subsets whose files are at hand.

    What was measured is read from the tables of the run if it measured MMLU, else from
    `measurements`; `scored` are subsets with stores. A curve is an audited model of Table 4, or a
    model measured here in one test; its `rule` names the filter of its subsets: that of the paper,
    or that of our controls in its test. Examples are as many as were measured; nothing is fetched.
    Raises InputError if a published table is missing, or a file is not what the registry says.
    """
    tables = [Path(results) / "tables" / f"{name}.csv" for name in MEASURED]
    own = [pd.read_csv(path) for path in tables if path.is_file()]
    here = len(own) == len(MEASURED) and not own[1].empty
    subsets, lines = own if here else [load_published(measurements, name) for name in MEASURED]
    measured = subsets[(subsets["source"] == "measured") & (subsets["status"] == OK)]
    measured = measured.assign(rule=measured["test"], model=_labels(measured))
    lines = lines.assign(control=_labels(lines))
    printed = published_subsets(load_published(published, "oren2024_table4_mmlu"), SIGNIFICANT)
    printed = printed.assign(rule=PUBLISHED, log10_p=np.log10(printed["published_p"]))
    names = subset_names()
    most = int(lines.loc[lines["segmentation"] == "record", "examples"].max())

    beside = lines[lines["test"] == DEFAULT_TESTS[0]].drop_duplicates(["subset", "segmentation"])
    both = pd.concat([printed, measured])
    p = pd.concat([both, beside.assign(model="here, by " + beside["segmentation"])])
    p = p.pivot(index="subset", columns="model", values="log10_p").reindex(names)
    out = both[both["excluded"]].drop_duplicates(["subset", "rule"])
    out = out.pivot(index="subset", columns="rule", values="reason").reindex(names)
    facts = lines.drop_duplicates("subset").set_index("subset").reindex(names)
    words = _words(p, out, p.index.isin(printed["subset"]), facts["spanning"] > 0)
    words["scored by this run"] = p.index.isin(list(scored))
    notes = {name: [word for word in words if words.loc[name, word]] for name in names}

    controls = set(lines["control"].dropna())
    audited = measured[~measured["model"].isin(controls)].drop_duplicates("model")
    rules = dict.fromkeys(AUDITED.values(), PUBLISHED)
    rules |= dict(zip(audited["model"], audited["rule"], strict=True))
    table2 = load_published(published, "oren2024_table2_open_models").set_index("dataset")
    combined = table2.loc["MMLU (Fisher)", list(AUDITED)].rename(AUDITED).map("{:.3f}".format)
    colours = [*MODEL_COLOURS, *["#666666"] * len(rules)]
    shown = [*(AUDITED | CONTROLS).values(), *BESIDE]
    where = "in this run" if here else "for docs/mmlu.md, not in this run"
    rows = [
        [title(name), "; ".join(notes[name]), lookup(FAMILY + name).records]
        + ([f"{facts.loc[name, 'lines_per_record']:.1f}"] if name in facts.index else [MISSING])
        + [p_cell(p.loc[name].get(model, np.nan)) for model in shown]
        for name in names
    ]
    page = {
        "curves": [
            {"name": m, "rule": rule, "colour": colour, "printed": combined.get(m, MISSING)}
            for (m, rule), colour in zip(rules.items(), colours, strict=False)
        ],
        "band": dkw_band(1, BAND),
        "words": [word for word in words if words[word].any()],
        "source": f"Measured {where}, under models trained here that have not read MMLU in this "
        f"order; at most {most} records of a subset.",
        "subsets": [
            {"name": name, "title": title(name), "words": notes[name]}
            | {"p": json.loads(p.loc[name].to_json()), "out": json.loads(out.loc[name].to_json())}
            for name in names
        ],
        "table": layout(("Subset", "Notes", "Records", "Lines per record"), shown, rows),
        "measured": _measured(lines, measured),
    }
    at_hand = [name for name in names if available(FAMILY + name)]
    return page, {n: open_test_set(FAMILY + n, max_records=most).examples for n in at_hand}


def _labels(table: pd.DataFrame) -> pd.Series:
    """Name one test under one model."""
    return table["model"] + ", " + table["test"].map(lambda t: TESTS[t].label.lower(), "ignore")


def _words(
    p: pd.DataFrame, out: pd.DataFrame, listed: np.ndarray, lines: pd.Series
) -> pd.DataFrame:
    """What is to be known of each subset, a column of truth values for each word."""
    small = p < np.log10(SIGNIFICANT) * (1 + 1e-9)  # 0.05 as printed is not
    excluded = out[PUBLISHED].notna()
    by_record, by_line = (small.get(column, False) for column in BESIDE)
    return pd.DataFrame(
        {
            "kept": listed & ~excluded,
            "excluded": excluded,
            "not in Table 4": ~listed,
            "small under an audited model": ~excluded & small[list(AUDITED.values())].any(axis=1),
            "several lines": lines,
            "small by line, not by record": by_line & ~by_record,
        }
    )


def _measured(lines: pd.DataFrame, measured: pd.DataFrame) -> dict[str, Any]:
    """Lay out every subset under every model and test measured here, by record and by line."""
    same = ["subset", "segmentation"]
    others = measured[~measured["model"].isin(lines["control"])].assign(segmentation="record")
    others = others[[*same, "test", "model", "log10_p"]].rename(columns={"model": "control"})
    shards = lines[[*same, "test", "shards"]].drop_duplicates().dropna()
    free = ["examples", "verdict", "compressor_log10_p", "spanning", "shared_passages"]
    others = others.merge(shards, how="left").merge(lines[[*same, *free]].drop_duplicates())
    every = pd.concat([lines[lines["log10_p"].notna()], others])
    titles = ["Subset", "Model and test", "Examples by", "Examples", "Shards", "Order of examples"]
    titles += ["On several lines", "Share a passage"]
    rows = [
        [
            *(title(r.subset), r.control, r.segmentation, r.examples, f"{r.shards:.0f}", r.verdict),
            *(f"{r.spanning:.0%}", f"{r.shared_passages:.0%}"),
            *(p_cell(r.compressor_log10_p), p_cell(r.log10_p)),
        ]
        for r in every.itertuples()
    ]
    return layout(titles, ("p of a compressor", "p"), rows)
