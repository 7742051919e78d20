"""The explorer as one HTML file: no server, no network, all data inside.

The charts are drawn by Vega-Lite and the tables by DataTables; both come from wheels and stand in
the page. Texts of test sets are other people's. They travel as compressed JSON in base64, which
holds no markup, and are shown as text alone. The content security policy names the scripts of the
page by their hash and allows no other, and no connection.

MMLU is shown without a store: Table 4 of Oren, whom its procedure excludes, and what was measured.
"""

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import vl_convert
from IPython.display import IFrame

from contamination.audit.battery import DEFAULT_TESTS, TESTS
from contamination.audit.decision import COMPRESSOR, Evidence, decide, log10_floor
from contamination.scoring.status import OK
from contamination.statistics import adjust, dkw_band, ecdf, fisher
from contamination.tables import MISSING, SIGNIFICANT, format_p
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.orderings import shard_bounds
from contamination.testsets.registry import entries
from contamination.testsets.sources import available, open_test_set
from reproduction.notebooks.mmlu.measure import FAMILY, SEGMENTATIONS, subset_names, title
from reproduction.notebooks.mmlu.tables import published_subsets
from reproduction.output.figures import MODEL_COLOURS
from reproduction.output.published import AUDITED, CONTROLS, load_published
from reproduction.report.explorer.scored import Outcome, find_outcomes, scored_sets
from reproduction.run.experiment import Experiment

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
    published: Path | str, measurements: Path | str, results: Path | str
) -> dict[str, Any]:
    """Return what the page shows of MMLU.

    What was measured is read from the tables of the run if it measured MMLU, else from
    `measurements`. A curve is an audited model of Table 4, or a model measured here in one test.
    Its subsets are those that the paper's rule keeps, or our controls in its test. Of the subsets
    whose files are at hand there are as many examples as were measured; nothing is fetched. Raises
    InputError if a published table is missing, or a file is not what the registry says.
    """
    tables = [Path(results) / "tables" / f"{name}.csv" for name in MEASURED]
    own = [pd.read_csv(path) for path in tables if path.is_file()]
    here = len(own) == len(MEASURED) and not own[1].empty
    read = own if here else [load_published(measurements, name) for name in MEASURED]
    labels = {name: f", {test.label.lower()}" for name, test in TESTS.items()}
    subsets, lines = (t.assign(label=t["model"] + t["test"].map(labels)) for t in read)
    measured = subsets[(subsets["source"] == "measured") & (subsets["status"] == OK)]
    measured = measured.assign(rule=measured["test"], model=measured["label"])
    printed = published_subsets(load_published(published, "oren2024_table4_mmlu"), SIGNIFICANT)
    printed = printed.assign(rule=PUBLISHED, log10_p=np.log10(printed["published_p"]))
    names, both = subset_names(), pd.concat([printed, measured])
    most = int(lines.loc[lines["segmentation"] == "record", "examples"].max())

    beside = lines[lines["test"] == DEFAULT_TESTS[0]].drop_duplicates(["subset", "segmentation"])
    p = pd.concat([both, beside.assign(model="here, by " + beside["segmentation"])])
    shown = [*(AUDITED | CONTROLS).values(), *BESIDE]
    p = p.pivot(index="subset", columns="model", values="log10_p").reindex(names, columns=shown)
    why = both[both["excluded"]].drop_duplicates(["subset", "rule"])
    why = (why["rule"] + ": " + why["reason"]).groupby(why["subset"]).agg("; ".join)
    lengths = lines.drop_duplicates("subset").set_index("subset")["lines_per_record"]
    lengths = lengths.map("{:.1f}".format).reindex(names, fill_value=MISSING)
    rows = [
        [title(name), why.get(name, ""), entries()[FAMILY + name].records, lengths[name]]
        + [p_cell(log10_p) for log10_p in p.loc[name]]
        for name in names
    ]

    table2 = load_published(published, "oren2024_table2_open_models").set_index("dataset")
    combined = table2.loc["MMLU (Fisher)", list(AUDITED)].rename(AUDITED).map("{:.3f}".format)
    kept = both[~both["excluded"] & ~both["model"].isin([*CONTROLS.values(), *lines["label"]])]
    logs = {name: found.to_numpy() for name, found in kept.groupby("model", sort=False)["log10_p"]}
    widest = dkw_band(min(map(len, logs.values())), BAND)
    curves, fisher_rows = [], []
    for (name, found), colour in zip(logs.items(), cycle(MODEL_COLOURS), strict=False):
        x, height = ecdf(10.0 ** np.maximum(found, -300.0))
        points = [(0.0, 0.0), *zip(x.tolist(), height.tolist(), strict=True), (1.0, 1.0)]
        curves.append({"name": name, "colour": colour, "points": points})
        joint = p_cell(fisher(log10_p=found).log10_p)
        fisher_rows.append([name, len(found), combined.get(name, MISSING), joint])
    where = "in this run" if here else "for docs/mmlu.md, not in this run"
    at_hand = [name for name in names if available(FAMILY + name)]
    return {
        "names": names,
        "at_hand": {n: _texts(open_test_set(FAMILY + n, max_records=most)) for n in at_hand},
        "table": layout(("Subset", "Excluded", "Records", "Lines per record"), shown, rows),
        "fisher": layout(("Model", "Kept", "Table 2"), ("Fisher's p",), fisher_rows),
        "curves": curves,
        "band": [
            {"p": p, "low": max(0.0, p - widest), "high": min(1.0, p + widest)}
            for p in np.linspace(0, 1, 51).tolist()
        ],
        "source": f"Measured {where}, under models trained here that have not read MMLU in this "
        f"order; at most {most} records of a subset.",
    }


def make_page(
    experiment: Experiment, results: Path | str, *, published: Path | str, measurements: Path | str
) -> str:
    """Make the page of a run as HTML: MMLU, and everything that the run has scored.

    `published` and `measurements` are the directories of the papers' tables and of the measurements
    that stand in for MMLU where the run has none in `results`.
    """
    mmlu = mmlu_payload(published, measurements, results)
    outcomes = find_outcomes(list(scored_sets(experiment)))
    return render(payload(outcomes, mmlu, experiment.profile.name))


def frame(page: str) -> IFrame:
    """The page within a notebook, whose server need not serve the directory of results."""
    return IFrame(f"data:text/html;charset=utf-8;base64,{encoded(page.encode())}", "100%", 900)


def payload(outcomes: Sequence[Outcome], mmlu: Mapping[str, Any], title: str) -> dict[str, Any]:
    """Return what the page shows, ready for JSON; there may be no outcome."""
    corrected = joint_p(outcomes)
    # The default test comes first, of that the smallest p.
    ranked = sorted(outcomes, key=lambda each: each.result.log10_p)
    ranked.sort(key=lambda each: each.result.test not in DEFAULT_TESTS)
    sets: dict[tuple[str, str], list[str]] = {}
    rows, drawn = [], []
    for each in ranked:
        scored, shards, diagnosis = each.scored, each.result.shards, each.diagnosis
        test, name = TESTS[each.result.test], scored.test_set.name
        key = (scored.group, name)
        texts = sets.setdefault(key, _texts(scored.test_set))
        joint, holm = corrected.loc[scored.model, *key]
        facts = [scored.model, name, scored.group, test.label, shards, diagnosis.verdict]
        rows.append([*facts, *map(p_cell, (each.result.log10_p, joint, holm))])
        drawn.append(
            {
                "set": list(sets).index(key),
                "starts": [start for start, _ in shard_bounds(len(texts), shards)],
                "reasons": " ".join([f"{diagnosis.verdict}.", *diagnosis.reasons]),
                "colour": test.colour,
                "unit": "difference in nats" if test.name == "sharded_t" else "z-score",
                "by_shard": each.by_shard.round(2).tolist(),
                "reading": reading(each, holm),
            }
        )
    titles = ("Model", "Test set", "Group", "Test", "Shards", "Order")
    p_values = ("p", "over all tests", "over all sets")
    return {
        "title": title,
        "mmlu": mmlu,
        "sets": list(sets.values()),
        "results": layout(titles, p_values, rows),
        "outcomes": drawn,
    }


def joint_p(outcomes: Sequence[Outcome]) -> pd.DataFrame:
    """log10 of the smallest exact p of each model, group and set, corrected.

    `joint` pays for all exact tests of the set (Bonferroni), `holm` for the sets of its model and
    group as well.
    """
    keys = ["model", "group", "set"]
    exact = [
        (o.scored.model, o.scored.group, o.scored.test_set.name, o.result.log10_p)
        for o in outcomes
        if o.result.test != "sharded_t"
    ]
    p = pd.DataFrame(exact, columns=[*keys, "log10_p"]).groupby(keys)["log10_p"]
    joint = (p.min() + np.log10(p.size())).clip(upper=0.0)
    holm = joint.groupby(keys[:2]).transform(
        lambda log10_p: adjust(log10_p=log10_p, method="holm").log10_p
    )
    return joint.to_frame("joint").assign(holm=holm)


def _texts(test_set: ExampleSet) -> list[str]:
    return [text.rstrip("\n") for text in test_set.examples]


def encoded(content: bytes) -> str:
    """Bytes as letters, which hold no markup."""
    return base64.b64encode(content).decode()


def render(data: dict[str, Any]) -> str:
    """Put data, libraries, style and script into the page."""
    here, itables = files(__package__), files("itables") / "html"
    tables = (itables / "dt_bundle.js").read_text(encoding="utf-8")
    library = re.search(r"([\w$]+) as default", tables)
    assert library is not None, "DataTables has another bundle: name what it exports"
    script = (here / "page.js").read_text(encoding="utf-8")
    modules = {
        "@@VEGA@@": vl_convert.javascript_bundle(),  # type: ignore[call-arg]
        # A block of its own: the names of the bundle's shortened variables are not ours.
        "@@SCRIPT@@": f"{tables}\n{{ const DataTable = {library[1]};\n{script}}}",
    }
    digests = [hashlib.sha256(module.encode()).digest() for module in modules.values()]
    text = json.dumps(data, ensure_ascii=False, allow_nan=False)
    parts = modules | {
        "@@HASHES@@": " ".join(f"'sha256-{encoded(each)}'" for each in digests),
        "@@TABLES@@": (itables / "dt_bundle.css").read_text(encoding="utf-8"),
        "@@DATA@@": encoded(gzip.compress(text.encode(), 9, mtime=0)),
    }
    page = (here / "page.html").read_text(encoding="utf-8")
    return re.sub("@@[A-Z]+@@", lambda mark: parts[mark[0]], page)


def reading(outcome: Outcome, holm_log10_p: float) -> str:
    """What one outcome proves, in the words of the command.

    `holm_log10_p` is that of its set over all tests and sets. The larger of both p-values decides.
    """
    result, order = outcome.result, outcome.diagnosis.verdict
    p, floor = max(result.p, 10**holm_log10_p), 10 ** log10_floor(result)
    evidence = Evidence(result.test, p, floor, order, {COMPRESSOR: outcome.control_p})
    verdict = decide([evidence], alpha=SIGNIFICANT)
    approximate = "; p is an approximation that needs many similar shards"
    said = f"Verdict: {verdict}{approximate * (result.test == 'sharded_t')}."
    return f"{outcome.scored.about} {said}".strip()
