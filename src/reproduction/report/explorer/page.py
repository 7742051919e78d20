"""The explorer as one HTML file: no server, no network, all data inside.

The charts are drawn by Vega-Lite and the tables by DataTables; both come from wheels and stand in
the page. Texts of test sets are other people's. They travel as compressed JSON in base64, which
holds no markup, and are shown as text alone. The content security policy names the scripts of the
page by their hash and allows no other, and no connection.
"""

import base64
import gzip
import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import vl_convert
from IPython.display import IFrame

from contamination.audit.battery import DEFAULT_TESTS, TESTS
from contamination.audit.diagnosis import Diagnosis
from contamination.errors import InputError
from contamination.statistics import adjust
from contamination.tables import MISSING, SIGNIFICANT
from contamination.testsets.orderings import shard_bounds
from reproduction.report.explorer.mmlu import layout, mmlu_payload, p_cell
from reproduction.report.explorer.outcomes import Outcome
from reproduction.report.explorer.scored import MMLU_GROUP, View, scored_sets, view_sets
from reproduction.run.experiment import Experiment

UNSCORED = 25  # examples of a part, where nothing was scored
USUAL, TRIED = "in advance", "after looking"
# Verdict of the diagnosis -> what it makes of a small p-value.
MEANING = {
    "quiet": "Nothing in the records themselves explains it, as far as the diagnostics see: this "
    "is evidence that the model has read the set in this order.",
    "suspicious": "Be careful: the order of the records may carry information by itself, as the "
    "diagnostics say.",
    "order carries information": "This is no evidence of contamination: the order of the records "
    "carries information by itself, as the diagnostics say.",
    "too few records": "The records are too few to say whether their order carries information by "
    "itself.",
}


def make_page(
    experiment: Experiment,
    results: Path | str,
    *,
    published: Path | str,
    measurements: Path | str,
    sets: Sequence[str] = (),
) -> str:
    """Make the page of a run as HTML: MMLU, and everything that the run has scored.

    `published` and `measurements` are the directories of the papers' tables and of the measurements
    that stand in for MMLU where the run has none in `results`. Of the scored sets those in `sets`
    are shown, or all. Raises InputError if none that is scored has one of the names.
    """
    scored = list(scored_sets(experiment))
    names = sorted({each.test_set.name for each in scored})
    if unknown := [name for name in sets if name not in names]:
        there = f"there are {', '.join(names)}" if names else "none is; run `make reproduce` first"
        raise InputError(f"no set {unknown[0]!r} is scored: {there}")
    views = view_sets([each for each in scored if not sets or each.test_set.name in sets])
    read = {each.test_set.name for each in scored if each.group == MMLU_GROUP}
    mmlu, texts = mmlu_payload(published, measurements, results, read)
    at_hand = {name: each for name, each in texts.items() if name not in read}
    return render(payload(views, mmlu, at_hand, experiment.profile.name))


def frame(page: str) -> IFrame:
    """The page within a notebook, whose server need not serve the directory of results."""
    data = base64.b64encode(page.encode()).decode()
    return IFrame(f"data:text/html;charset=utf-8;base64,{data}", "100%", 900)


def payload(
    views: Sequence[View], mmlu: Mapping[str, Any], at_hand: Mapping[str, Sequence[str]], title: str
) -> dict[str, Any]:
    """Return what the page shows, ready for JSON; there may be no view.

    `mmlu` is of `mmlu_payload`, `at_hand` has the examples of subsets that were not scored.
    """
    sets: dict[tuple[str, str], dict[str, Any]] = {}
    outcomes = []
    for view, holm in zip(views, _holm(views), strict=True):
        key = (view.scored.group, view.scored.test_set.name)
        shown = sets.setdefault(key, _texts(view.scored.test_set.examples) | {"diagnoses": {}})
        for shards, diagnosis in view.diagnoses.items():
            bounds = shard_bounds(len(shown["texts"]), shards)
            shown["starts"][shards] = [start for start, _ in bounds]
            shown["diagnoses"][shards] = _diagnosis(diagnosis)
        index = list(sets).index(key)
        outcomes += [(view, outcome, holm, index) for outcome in view.outcomes]
    # What was set in advance comes first, of that the default test, of that the smallest p.
    outcomes.sort(key=lambda o: o[1].result.log10_p)
    outcomes.sort(key=lambda o: (not o[0].scored.is_usual(o[1]), o[1].test not in DEFAULT_TESTS))
    titles = ("Model", "Test set", "Group", "Test", "Shards", "b", "Shards and b were set", "Order")
    p_values = ("p", "over all choices", "over all sets")
    return {
        "title": title,
        "mmlu": mmlu,
        "at_hand": {name: _texts(texts) for name, texts in at_hand.items()},
        "sets": list(sets.values()),
        "results": layout(titles, p_values, [_row(v, o, holm) for v, o, holm, _ in outcomes]),
        "outcomes": [_outcome(view, outcome, index) for view, outcome, _, index in outcomes],
    }


def _texts(examples: Sequence[str]) -> dict[str, Any]:
    """Examples and where their parts start, by how many there are: 0 for parts of one length."""
    texts = [text.rstrip("\n") for text in examples]
    return {"texts": texts, "starts": {0: list(range(0, len(texts), UNSCORED))}}


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
    text = json.dumps(data, ensure_ascii=False, allow_nan=False)
    parts = modules | {
        "@@HASHES@@": " ".join(f"'{_hash(module)}'" for module in modules.values()),
        "@@TABLES@@": (itables / "dt_bundle.css").read_text(encoding="utf-8"),
        "@@DATA@@": base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode(),
    }
    page = (here / "page.html").read_text(encoding="utf-8")
    return re.sub("@@[A-Z]+@@", lambda mark: parts[mark[0]], page)


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _holm(views: Sequence[View]) -> list[float]:
    """log10 of the joint p of each view, adjusted over the sets of its model and group."""
    keys = [(view.scored.model, view.scored.group) for view in views]
    table = pd.DataFrame({"key": keys, "log10_p": [view.joint_log10_p for view in views]})
    adjusted = table.groupby("key")["log10_p"].transform(
        lambda log10_p: adjust(log10_p=log10_p, method="holm").log10_p
    )
    return list(adjusted)


def _diagnosis(diagnosis: Diagnosis) -> dict[str, Any]:
    rows = [
        [
            f"{row.diagnostic.replace('_', ' ')}: {row.reading}",
            *map(p_cell, (row.log10_p, np.log10(row.holm_p))),
        ]
        for row in diagnosis.table.itertuples()
    ]
    return {"reasons": " ".join([f"{diagnosis.verdict}.", *diagnosis.reasons]), "rows": rows}


def _row(view: View, outcome: Outcome, holm: float) -> list[Any]:
    scored, result = view.scored, outcome.result
    when = USUAL if scored.is_usual(outcome) else TRIED
    return [
        *(scored.model, scored.test_set.name, scored.group, TESTS[outcome.test].label),
        *(result.shards, outcome.b or MISSING, when, view.diagnoses[result.shards].verdict),
        *(p_cell(log10_p) for log10_p in (result.log10_p, view.joint_log10_p, holm)),
    ]


def _outcome(view: View, outcome: Outcome, index: int) -> dict[str, Any]:
    """What is drawn and said of one outcome, of the set number `index`."""
    (counts, edges), t_test = outcome.null, outcome.test == "sharded_t"
    bins = zip(edges.round(3), edges[1:].round(3), (counts / counts.sum()).round(5), strict=False)
    return {
        "set": index,
        "shards": outcome.result.shards,
        "colour": TESTS[outcome.test].colour,
        "statistic": "t" if t_test else "z",
        "unit": "difference in nats" if t_test else "z-score",
        "reading": f"{view.scored.about} {reading(outcome, view.diagnoses)}".strip(),
        "by_shard": outcome.by_shard.round(2).tolist(),
        "null": [{"from": low, "to": high, "share": share} for low, high, share in bins],
        "canonical": round(outcome.canonical, 3),
    }


def reading(outcome: Outcome, diagnoses: dict[int, Diagnosis]) -> str:
    """What one outcome says, and what it does not."""
    result = outcome.result
    small = result.log10_p <= math.log10(SIGNIFICANT)
    parts = [
        "The model prefers the published order." if small else "Nothing is proved.",
        "An order drawn at random stands out at least as much with probability "
        f"{p_cell(result.log10_p)['text']}.",
        MEANING[diagnoses[result.shards].verdict]
        if small
        else "A model may have read the set without showing it here.",
    ]
    if outcome.test == "sharded_t":
        parts.append("The p-value is an approximation that needs many similar shards.")
    if outcome.test == "permutation":
        floor = 1 / (1 + result.permutations)
        parts.append(f"With {result.permutations} shuffles it cannot fall below {floor:.3g}.")
    return " ".join(parts)
