"""The explorer as one HTML file: no server, no network, all data inside.

The charts are drawn by Vega-Lite and the tables by DataTables; both come from wheels
and stand in the page. Texts of test sets are other people's. They travel as compressed
JSON in base64, which holds no markup, and are shown as text alone. The content security
policy names the scripts of the page by their hash and allows no other, and no
connection.
"""

import base64
import gzip
import hashlib
import html
import json
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import vl_convert
from IPython.display import IFrame

from contamination.audit.controls.diagnosis import Diagnosis
from contamination.audit.decision import decide, log10_floor
from contamination.audit.objections import ZLIB_BASELINE, Evidence
from contamination.audit.registry import DEFAULT_TESTS, TESTS
from contamination.statistics import adjust
from contamination.tables import SIGNIFICANT, format_p
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.orderings import shard_bounds
from reproduction.notebooks.mmlu.evidence import load_evidence
from reproduction.report.explorer.cells import layout, p_cell
from reproduction.report.explorer.mmlu import mmlu_payload
from reproduction.report.explorer.scored import Outcome, find_outcomes, scored_sets
from reproduction.run.experiment import Experiment

SCRIPTS = ("page.js", "fisher.js", "mmlu.js", "scored.js", "start.js")  # in this order
FRAME_HEIGHT = 900  # pixels


def make_page(
    experiment: Experiment,
    results: Path | str,
    *,
    published: Path | str,
    measurements: Path | str,
    released: Path | str,
) -> str:
    """Make the page of a run as HTML: MMLU, and everything that the run has scored.

    The directories are those of `reproduction.notebooks.mmlu.evidence.load_evidence`.

    Parameters
    ----------
    experiment
        The run.
    results
        Directory of its results.
    published
        Directory of the papers' tables.
    measurements
        Directory of measurements.
    released
        Directory of the results of released models.
    """
    evidence = load_evidence(published, measurements, released, results)
    outcomes = find_outcomes(list(scored_sets(experiment)))
    return render(payload(outcomes, mmlu_payload(evidence), experiment.profile.name))


def frame(page: str) -> IFrame:
    """Return the page within a notebook, whose server need not serve the directory of results.

    The page stands in the frame's own markup: browsers limit the length of an address.
    The markup is escaped, so that the browser reads the same bytes and the hashes of
    the scripts hold.
    """
    content = html.escape(page, quote=True)
    return IFrame("about:srcdoc", "100%", FRAME_HEIGHT, extras=[f'srcdoc="{content}"'])


def payload(
    outcomes: Sequence[Outcome],
    mmlu: Mapping[str, Any],
    title: str,
) -> dict[str, Any]:
    """Return the data of the page, ready for JSON; there may be no outcome.

    Parameters
    ----------
    outcomes
        Outcomes of all test sets that were scored.
    mmlu
        Data of `mmlu_payload`.
    title
        Title of the page.
    """
    corrected = corrected_p_values(outcomes)
    # The default test comes first, of that the smallest p.
    ranked = sorted(outcomes, key=lambda outcome: outcome.result.log10_p)
    ranked.sort(key=lambda outcome: outcome.result.test not in DEFAULT_TESTS)
    sets: dict[tuple[str, str], list[str]] = {}
    rows = []
    panels = []
    for outcome in ranked:
        scored = outcome.scored
        key = (scored.group, scored.test_set.name)
        sets.setdefault(key, _texts(scored.test_set))
        joint, holm = corrected.loc[scored.model, *key]
        rows.append(_outcome_row(outcome, joint, holm))
        panels.append({"set": list(sets).index(key), **_outcome_panel(outcome, holm)})
    titles = ("Model", "Test set", "Group", "Test", "Shards", "Order")
    p_values = ("p", "best of the set's tests", "over all sets")
    return {
        "title": title,
        "mmlu": mmlu,
        "sets": list(sets.values()),
        "results": layout(titles, p_values, rows),
        "outcomes": panels,
    }


def _outcome_row(outcome: Outcome, joint: float, holm: float) -> list[Any]:
    """Return the row of an outcome in the table of results, with log10 p."""
    return [
        outcome.scored.model,
        outcome.scored.test_set.name,
        outcome.scored.group,
        TESTS[outcome.result.test].label,
        outcome.result.shards,
        outcome.diagnosis.verdict,
        p_cell(outcome.result.log10_p),
        p_cell(joint),
        p_cell(holm),
    ]


def _diagnosis_in_sentences(diagnosis: Diagnosis) -> str:
    """Return the verdict of a diagnosis and its reasons, in which names of code are words."""
    sentences = []
    for part in (diagnosis.verdict, *diagnosis.reasons):
        words = part.replace("_", " ")
        sentences.append(f"{words[0].upper()}{words[1:]}.")
    return " ".join(sentences)


def _outcome_panel(outcome: Outcome, holm: float) -> dict[str, Any]:
    """Return the data of the panel that opens when a reader chooses an outcome."""
    test = TESTS[outcome.result.test]
    diagnosis = outcome.diagnosis
    bounds = shard_bounds(len(outcome.scored.test_set.examples), outcome.result.shards)
    return {
        "starts": [start for start, _ in bounds],
        "reasons": _diagnosis_in_sentences(diagnosis),
        "colour": test.colour,
        "unit": "difference in nats" if test.name == "sharded_t" else "z-score",
        "by_shard": outcome.by_shard.round(2).tolist(),
        "reading": verdict_sentence(outcome, holm),
    }


def corrected_p_values(outcomes: Sequence[Outcome]) -> pd.DataFrame:
    """Return log10 of the smallest exact p of each model, group and set, corrected.

    `joint` pays for all exact tests of the set (Bonferroni), `holm` for the sets of its
    model and group as well.
    """
    exact = []
    for outcome in outcomes:
        if outcome.result.test != "sharded_t":
            exact.append(
                {
                    "model": outcome.scored.model,
                    "group": outcome.scored.group,
                    "set": outcome.scored.test_set.name,
                    "log10_p": outcome.result.log10_p,
                },
            )
    keys = ["model", "group", "set"]
    p_values = pd.DataFrame(exact, columns=[*keys, "log10_p"]).groupby(keys)["log10_p"]
    joint = (p_values.min() + np.log10(p_values.size())).clip(upper=0.0)
    joint_by_group = joint.groupby(keys[:2])
    holm = joint_by_group.transform(lambda log10_p: adjust(log10_p, method="holm").log10_p)
    return joint.to_frame("joint").assign(holm=holm)


def _texts(test_set: ExampleSet) -> list[str]:
    return [text.rstrip("\n") for text in test_set.examples]


def encoded(content: bytes) -> str:
    """Return bytes in base64, whose letters hold no markup."""
    return base64.b64encode(content).decode()


def render(data: dict[str, Any]) -> str:
    """Return the page as HTML, with its data, libraries, style and scripts."""
    here = files(__package__)
    itables = files("itables") / "html"
    tables = (itables / "dt_bundle.js").read_text(encoding="utf-8")
    library = re.search(r"([\w$]+) as default", tables)
    assert library is not None, "DataTables has another bundle: name what it exports"
    script = "\n".join((here / name).read_text(encoding="utf-8") for name in SCRIPTS)
    modules = {
        "@@VEGA@@": vl_convert.javascript_bundle(),  # type: ignore[call-arg]
        # A block of its own: the names of the bundle's shortened variables are not ours.
        "@@SCRIPT@@": f"{tables}\n{{ const DataTable = {library[1]};\n{script}}}",
    }
    digests = [hashlib.sha256(module.encode()).digest() for module in modules.values()]
    text = json.dumps(data, ensure_ascii=False, allow_nan=False)
    parts = modules | {
        "@@HASHES@@": " ".join(f"'sha256-{encoded(digest)}'" for digest in digests),
        "@@TABLES@@": (itables / "dt_bundle.css").read_text(encoding="utf-8"),
        "@@DATA@@": encoded(gzip.compress(text.encode(), 9, mtime=0)),
    }
    page = (here / "page.html").read_text(encoding="utf-8")
    return re.sub("@@[A-Z]+@@", lambda mark: parts[mark[0]], page)


def verdict_sentence(outcome: Outcome, holm_log10_p: float) -> str:
    """Return the sentence of the command about an outcome.

    `holm_log10_p` is that of its set over all tests and sets. The larger of both
    p-values decides.
    """
    result = outcome.result
    evidence = Evidence(
        result.test,
        max(result.p, 10**holm_log10_p),
        10 ** log10_floor(result),
        outcome.diagnosis.verdict,
        {ZLIB_BASELINE: outcome.control_p},
    )
    verdict = decide([evidence], alpha=SIGNIFICANT)
    shown = f"p = {format_p(result.p, result.log10_p)}"
    if holm_log10_p >= result.log10_p:
        shown = f"p over all sets = {format_p(10**holm_log10_p, holm_log10_p)}"
    words = str(verdict).replace(f"p = {verdict.p:.3g}", shown, 1)
    sentence = f"Verdict: {words}."
    if result.test == "sharded_t":
        sentence = f"Verdict: {words}; p is an approximation that needs many similar shards."
    return f"{outcome.scored.about} {sentence}".strip()
