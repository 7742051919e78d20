"""The explorer as one HTML file: no server, no network, all data inside.

Texts of test sets are other people's. They travel as compressed JSON in base64, which holds no
markup, and the script of the page shows them as text alone. The content security policy names the
page's own script and style by their hash and allows nothing else, no connection included.
"""

import base64
import gzip
import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from contamination.audit.battery import DEFAULT_TESTS, TESTS
from contamination.audit.diagnosis import Diagnosis
from contamination.errors import InputError
from contamination.statistics import adjust
from contamination.tables import SIGNIFICANT, format_p
from contamination.testsets.orderings import shard_bounds
from reproduction.report.explorer.mmlu import Mmlu, load_mmlu, mmlu_payload
from reproduction.report.explorer.outcomes import Outcome
from reproduction.report.explorer.scored import MMLU_GROUP, View, scored_sets, view_sets
from reproduction.run.experiment import Experiment

SCRIPTS = ("charts", "sections", "mmlu", "page")  # in this order
LONGEST_TEXT = 5_000  # characters shown of an example; the longest of MMLU has 4,900


# Verdict of the diagnosis -> what it makes of a small p-value.
_MEANING = {
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
    found = scored_sets(experiment)
    names = sorted({each.test_set.name for each in found.sets})
    if unknown := [name for name in sets if name not in names]:
        there = f"there are {', '.join(names)}" if names else "none is; run `make reproduce` first"
        raise InputError(f"no set {unknown[0]!r} is scored: {there}")
    chosen = [each for each in found.sets if not sets or each.test_set.name in sets]
    mmlu = load_mmlu(published, measurements, results)
    return render(payload(view_sets(chosen), found.left_out, mmlu, experiment.profile.name))


@dataclass(frozen=True)
class Frame:
    """The page within a notebook.

    It comes as a data address, since a notebook's server need not serve the directory of results.
    """

    html: str = field(repr=False)

    def _repr_html_(self) -> str:
        data = base64.b64encode(self.html.encode()).decode()
        return (
            f'<iframe title="Explorer" src="data:text/html;charset=utf-8;base64,{data}" '
            'style="width: 100%; height: 56rem; border: 0"></iframe>'
        )


def payload(
    views: Sequence[View], left_out: Sequence[str], mmlu: Mmlu, title: str
) -> dict[str, Any]:
    """Return what the page shows, ready for JSON; there may be no view."""
    complaints = [*left_out, *(line for view in views for line in view.left_out)]
    shown = [view for view in views if view.outcomes]
    by_set: dict[tuple[str, str], list[View]] = {}
    for view in shown:
        by_set.setdefault((view.scored.group, view.scored.test_set.name), []).append(view)
    place = {key: index for index, key in enumerate(by_set)}
    return {
        "title": title,
        "default_test": DEFAULT_TESTS[0],
        "tests": {t.name: {"label": t.label, "colour": t.colour} for t in TESTS.values()},
        "mmlu": mmlu_payload(mmlu),
        "at_hand": {
            name: [_cut(text) for text in texts]
            for name, texts in mmlu.examples.items()
            if (MMLU_GROUP, name) not in by_set
        },
        "sets": [_set(each) for each in by_set.values()],
        "results": [
            {"set": place[view.scored.group, view.scored.test_set.name], **_result(view, holm)}
            for view, holm in zip(shown, _holm(shown), strict=True)
        ],
        "left_out": complaints,
    }


def render(data: dict[str, Any]) -> str:
    """Put data, style and script into the page."""
    page, style = _asset("page.html"), _asset("page.css")
    script = "\n\n".join(_asset(f"{name}.js") for name in SCRIPTS)
    text = json.dumps(data, ensure_ascii=False, allow_nan=False)
    parts = {
        "@@STYLE_HASH@@": _hash(style),
        "@@SCRIPT_HASH@@": _hash(script),
        "@@STYLE@@": style,
        "@@SCRIPT@@": script,
        "@@DATA@@": base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode(),
    }
    for mark, part in parts.items():
        page = page.replace(mark, part)
    return page


def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8").strip()


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _holm(views: Sequence[View]) -> list[str]:
    """The joint p of each view, adjusted over the sets of its model and group."""
    keys = [(view.scored.model, view.scored.group) for view in views]
    table = pd.DataFrame({"key": keys, "log10_p": [view.joint_log10_p for view in views]})
    adjusted = table.groupby("key")["log10_p"].transform(
        lambda log10_p: adjust(log10_p=log10_p, method="holm").log10_p
    )
    return [format_plain_p(each) for each in adjusted]


def _set(views: Sequence[View]) -> dict[str, Any]:
    """What the views of one set share, whichever model: texts, shards and diagnoses."""
    test_set = views[0].scored.test_set
    diagnoses = {shards: d for view in views for shards, d in view.diagnoses.items()}
    count = len(test_set.examples)
    return {
        "name": test_set.name,
        "group": views[0].scored.group,
        "examples": [_cut(text) for text in test_set.examples],
        "starts": {r: [start for start, _ in shard_bounds(count, r)] for r in diagnoses},
        "diagnoses": {shards: _diagnosis(each) for shards, each in diagnoses.items()},
    }


def _cut(text: str) -> str:
    text = text.rstrip("\n")
    more = len(text) - LONGEST_TEXT
    return f"{text[:LONGEST_TEXT]} […{more} more characters]" if more > 0 else text


def _diagnosis(diagnosis: Diagnosis) -> dict[str, Any]:
    rows = []
    for row in diagnosis.table.itertuples():
        both = (row.log10_p, np.log10(row.holm_p))
        shown = ["–" if np.isnan(log10_p) else format_plain_p(log10_p) for log10_p in both]
        rows.append([row.diagnostic, row.reading, *shown])
    return {"verdict": diagnosis.verdict, "reasons": list(diagnosis.reasons), "rows": rows}


def _result(view: View, holm: str) -> dict[str, Any]:
    return {
        "model": view.scored.model,
        "about": view.scored.about,
        "joint": format_plain_p(view.joint_log10_p),
        "holm": holm,
        "outcomes": [_outcome(view, each) for each in view.outcomes],
    }


def _outcome(view: View, outcome: Outcome) -> dict[str, Any]:
    result, null = outcome.result, outcome.null
    return {
        "test": outcome.test,
        "shards": result.shards,
        "b": outcome.b,
        "permutations": result.permutations,
        "usual": view.scored.is_usual(outcome),
        "p": format_plain_p(result.log10_p),
        "log10_p": round(result.log10_p, 4),
        "verdict": verdict(result.log10_p),
        "reading": reading(outcome, view.diagnoses[result.shards]),
        "unit": outcome.unit,
        "by_shard": outcome.by_shard.round(2).tolist(),
        "null": {"low": null.low, "high": null.high, "counts": null.counts.tolist()},
        "canonical": round(outcome.canonical, 3),
    }


def format_plain_p(log10_p: float) -> str:
    """A p-value of which only the logarithm is known: it has no floor."""
    return format_p(10.0**log10_p, log10_p)


def verdict(log10_p: float) -> str:
    """The shortest reading of a p-value at the usual level."""
    small = log10_p <= math.log10(SIGNIFICANT)
    return "The model prefers the published order" if small else "Nothing proved"


def reading(outcome: Outcome, diagnosis: Diagnosis) -> str:
    """What one outcome says, and what it does not."""
    result = outcome.result
    chance = "An order drawn at random stands out at least as much with probability "
    parts = [f"{chance}{format_plain_p(result.log10_p)}."]
    if verdict(result.log10_p) == "Nothing proved":
        parts.append("A model may have read the set without showing it here.")
    else:
        parts.append(_MEANING[diagnosis.verdict])
    if outcome.test == "sharded_t":
        parts.append("The p-value is an approximation that needs many similar shards.")
    if outcome.test == "permutation":
        floor = 1 / (1 + result.permutations)
        parts.append(f"With {result.permutations} shuffles it cannot fall below {floor:.3g}.")
    return " ".join(parts)
