"""The page without a browser: what it holds and says, and what it can never do."""

import base64
import gzip
import hashlib
import html as markup
import json
import math
import re
from collections.abc import Callable
from functools import partial
from operator import itemgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from contamination.audit.controls.diagnosis import OrderState
from contamination.audit.registry import TESTS
from contamination.statistics import adjust
from fakes.data_fixtures import ROOT, write_profile
from fakes.made_up_sets import HOSTILE
from fakes.notebook import run_cells
from reproduction.report.explorer.page import frame, make_page, verdict_sentence
from reproduction.report.explorer.scored import Outcome, ScoredSet
from reproduction.run.experiment import Experiment

Run = Callable[..., str]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that makes the page of a run without stores, and without files of MMLU."""
    for variable in ("CONTAMINATION_DATA", "CONTAMINATION_CACHE"):
        monkeypatch.setenv(variable, str(tmp_path))
    return partial(
        make_page,
        Experiment(write_profile(tmp_path / "tiny.yaml"), tmp_path / "build"),
        tmp_path / "results",
        published=ROOT / "data" / "published",
        measurements=ROOT / "docs" / "measurements",
        released=ROOT / "results" / "reference" / "pocket",
    )


def unpack(html: str) -> dict[str, Any]:
    (packed,) = re.findall(r'<script type="text/plain" id="data">([A-Za-z0-9+/=]+)</script>', html)
    return json.loads(gzip.decompress(base64.b64decode(packed)))


@pytest.fixture(scope="module")
def data(html: str) -> dict[str, Any]:
    return unpack(html)


def test_every_outcome_is_a_row_and_its_p_pays_for_tests_and_sets(
    data: dict[str, Any], outcomes: list[Outcome]
) -> None:
    of_outcome = itemgetter(0, 1, 3, 4)  # model, set, test and shards
    rows = {of_outcome(row): row for row in data["results"]["rows"]}
    assert len(rows) == len(outcomes)
    for model in ("reader", "stranger"):
        group: dict[str, list[float]] = {}
        for each in outcomes:
            if each.scored.model == model and each.result.test != "sharded_t":
                group.setdefault(each.scored.test_set.name, []).append(each.result.log10_p)
        assert {len(exact) for exact in group.values()} == {5}
        joint = [min(0.0, min(exact) + math.log10(5)) for exact in group.values()]
        holm = dict(zip(group, adjust(log10_p=joint, method="holm").log10_p, strict=True))
        for each in outcomes:
            name = each.scored.test_set.name
            if each.scored.model == model:
                row = rows[model, name, TESTS[each.result.test].label, each.result.shards]
                expected = each.result.log10_p, joint[list(group).index(name)], holm[name]
                assert [cell["value"] for cell in row[-3:]] == pytest.approx(expected)


def test_what_was_planted_stands_out_and_nothing_else(data: dict[str, Any]) -> None:
    shown = zip(data["results"]["rows"], data["outcomes"], strict=True)
    shown = list(shown)
    silent = ("no evidence: ", "cannot say: ")  # the order of the made-up records is not quiet
    proven = set()
    for row, outcome in shown:
        if not any(words in outcome["reading"] for words in silent):
            proven.add(tuple(row[:2]))
    assert proven == {("reader", "planted")}
    assert [row[3] for row, _ in shown[:4]] == ["Successor"] * 4  # the default test comes first


def test_texts_are_whole_and_stored_once(data: dict[str, Any], found: list[ScoredSet]) -> None:
    assert len(data["sets"]) == 2
    for texts, scored in zip(data["sets"], found[:2], strict=True):
        assert [f"{text}\n" for text in texts] == list(scored.test_set.examples)
    starts = {len(each["by_shard"]): each["starts"] for each in data["outcomes"]}
    assert starts == {1: [0], 2: [0, 12], 6: [0, 4, 8, 12, 16, 20]}
    states = tuple(state.capitalize() for state in OrderState.__args__)
    assert all(each["reasons"].startswith(states) for each in data["outcomes"])
    assert all("_" not in each["reasons"] for each in data["outcomes"])


def test_no_text_of_others_stands_in_the_page_as_markup(html: str) -> None:
    assert HOSTILE in unpack(html)["sets"][0]
    assert HOSTILE not in html
    own = html[html.rindex("const DataTable = ") :]
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(", own)


def test_the_page_may_run_its_own_scripts_and_nothing_else(html: str) -> None:
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', html)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    scripts = re.findall(r'<script type="module">(.*?)</script>', html, re.DOTALL)
    digests = [
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts
    ]
    assert rules["script-src"] == " ".join(f"'sha256-{digest}'" for digest in digests)
    assert not re.search(r"<(link|img|iframe|script [^>]*src)\b", html[: html.index("<script")])
    assert "@@" not in html.replace("@@iterator", "")


def test_a_run_that_has_scored_nothing_shows_mmlu(run: Run) -> None:
    data = unpack(run())
    assert data["sets"] == []
    assert data["outcomes"] == []
    assert len(data["mmlu"]["table"]["rows"]) == 57


def test_the_notebook_shows_the_page(tmp_path: Path) -> None:
    shown = run_cells(
        ROOT / "notebooks" / "explore_mmlu.ipynb",
        profile=str(write_profile(tmp_path / "tiny.yaml")),
        build=str(tmp_path),
        results=str(tmp_path),
    )
    (page,) = re.findall(r'srcdoc="([^"]+)"', shown[-1]._repr_html_())
    assert len(unpack(markup.unescape(page))["mmlu"]["names"]) == 57


def test_a_frame_holds_the_same_bytes(html: str) -> None:
    (content,) = re.findall(r'srcdoc="([^"]*)"', frame(html)._repr_html_())
    assert markup.unescape(content) == html


@pytest.mark.parametrize("judged", OrderState.__args__)
def test_a_small_p_is_evidence_only_where_order_and_compressor_are_quiet(judged: str) -> None:
    def said(p: float, holm_p: float = 1e-9, control_p: float = 0.5) -> str:
        result = SimpleNamespace(test="successor", p=p, shards=4, permutations=10_000)
        result.log10_p = math.log10(p)
        outcome = SimpleNamespace(result=result, control_p=control_p)
        outcome.scored = SimpleNamespace(about="")
        outcome.diagnosis = SimpleNamespace(verdict=judged)
        return verdict_sentence(outcome, math.log10(holm_p))

    assert ("Verdict: evidence" in said(0.05)) is (judged in ("quiet", "suspicious"))
    assert ("proven" in said(0.001)) is (judged == "quiet")
    assert "p over all sets = 0.040" in said(0.01, 0.04)
    never = (said(0.0501), said(0.01, 0.06), said(0.01, control_p=0.01))
    assert not any("proven" in one or "Verdict: evidence" in one for one in never)
