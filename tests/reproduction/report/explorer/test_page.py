"""The page without a browser: what it holds and says, and what it can never do."""

import base64
import gzip
import hashlib
import json
import math
import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from contamination.audit.diagnosis import Verdict
from contamination.audit.diagnostics import diagnose
from contamination.errors import InputError
from contamination.files import sha256_of
from contamination.statistics import ShardedExactResult, adjust
from contamination.testsets.example_set import ExampleSet
from fakes.data_fixtures import ROOT, write_profile
from fakes.made_up_sets import HOSTILE, make_set
from reproduction.report.explorer import page as page_module
from reproduction.report.explorer.mmlu import Mmlu
from reproduction.report.explorer.outcomes import Histogram, Outcome
from reproduction.report.explorer.page import (
    _MEANING,
    LONGEST_TEXT,
    _cut,
    format_plain_p,
    make_page,
    payload,
    reading,
    render,
    verdict,
)
from reproduction.report.explorer.scored import ScoredSet, ScoredSets, View
from reproduction.run.experiment import Experiment

Run = Callable[..., str]
DATA = os.environ.get("CONTAMINATION_DATA")


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
    )


def unpack(html: str) -> dict[str, Any]:
    (packed,) = re.findall(r'<script type="text/plain" id="data">([A-Za-z0-9+/=]+)</script>', html)
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def test_p_values_are_those_of_the_outcomes(html: str, views: list[View]) -> None:
    data = unpack(html)
    assert len(data["results"]) == len(views) == 4
    for result, view in zip(data["results"], views, strict=True):
        assert result["model"] == view.scored.model
        assert data["sets"][result["set"]]["name"] == view.scored.test_set.name
        for shown, outcome in zip(result["outcomes"], view.outcomes, strict=True):
            log10_p, shards = outcome.result.log10_p, outcome.result.shards
            assert (shown["test"], shown["shards"]) == (outcome.test, shards)
            assert shown["b"] == outcome.b
            assert shown["log10_p"] == pytest.approx(log10_p, abs=1e-4)
            assert shown["p"] == format_plain_p(log10_p)
            assert len(shown["by_shard"]) == shards


def test_what_was_planted_stands_out_and_nothing_else(html: str) -> None:
    data = unpack(html)
    for result in data["results"]:
        read = (result["model"], data["sets"][result["set"]]["name"]) == ("reader", "planted")
        verdicts = {o["verdict"] for o in result["outcomes"] if o["usual"]}
        assert ("The model prefers the published order" in verdicts) is read


def test_texts_are_whole_and_stored_once(html: str, found: ScoredSets) -> None:
    data = unpack(html)
    assert [each["name"] for each in data["sets"]] == ["planted", "unread"]
    for each, scored in zip(data["sets"], found.sets[:2], strict=True):
        assert [f"{text}\n" for text in each["examples"]] == list(scored.test_set.examples)
        assert each["starts"]["4"] == [0, 6, 12, 18]
        assert {*each["diagnoses"]} == {*each["starts"]} == {"1", "2", "4", "6"}
        assert len(each["diagnoses"]["4"]["rows"]) >= 8


def test_joint_p_is_adjusted_by_holm_over_the_sets_of_a_model(views: list[View], html: str) -> None:
    for model in ("reader", "stranger"):
        joint = [v.joint_log10_p for v in views if v.scored.model == model]
        expected = adjust(log10_p=joint, method="holm").log10_p
        shown = [r for r in unpack(html)["results"] if r["model"] == model]
        assert [r["joint"] for r in shown] == [format_plain_p(p) for p in joint]
        assert [r["holm"] for r in shown] == [format_plain_p(p) for p in expected]


def test_no_text_of_others_stands_in_the_page_as_markup(html: str) -> None:
    assert HOSTILE in unpack(html)["sets"][0]["examples"]
    assert "onerror" not in html
    assert "no store" not in html
    assert html.count("</script>") == 2
    script = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)[0]
    dangerous = r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|Function\("
    assert not re.search(dangerous, script)


def test_the_page_may_run_its_own_script_and_nothing_else(html: str) -> None:
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', html)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert set(rules) == {"default-src", "script-src", "style-src", "base-uri", "form-action"}
    for tag, rule in (("script", "script-src"), ("style", "style-src")):
        (text,) = re.findall(rf"<{tag}>(.*?)</{tag}>", html, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert rules[rule] == f"'sha256-{digest}'"


def test_the_page_names_nothing_outside_itself(html: str) -> None:
    assert set(re.findall(r"https?://[^\"'\s]+", html)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"<(link|img|iframe|script [^>]*src)", html)
    assert "@@" not in html


def test_long_texts_are_cut_and_say_so() -> None:
    assert _cut("x" * LONGEST_TEXT + "\n\n") == "x" * LONGEST_TEXT
    assert _cut("x" * (LONGEST_TEXT + 7)) == "x" * LONGEST_TEXT + " […7 more characters]"


def test_the_page_of_a_run_and_of_chosen_sets(
    views: list[View], mmlu: Mmlu, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same stores give the same bytes; a set that is not scored is named."""
    found = ScoredSets(tuple(view.scored for view in views))
    monkeypatch.setattr(page_module, "scored_sets", lambda _: found)
    assert run() == run() == render(payload(views, [], mmlu, "tiny"))
    one = unpack(run(sets=["unread"]))
    assert [each["name"] for each in one["sets"]] == ["unread"]
    assert [each["model"] for each in one["results"]] == ["reader", "stranger"]
    with pytest.raises(InputError, match="no set 'another' is scored: there are planted, unread"):
        run(sets=["unread", "another"])


def test_a_run_that_has_scored_nothing_shows_mmlu(run: Run) -> None:
    data = unpack(run())
    assert (data["sets"], data["results"]) == ([], [])
    assert len(data["mmlu"]["subsets"]) == 57
    (line,) = data["left_out"]
    assert line.endswith("no test set is scored; run `make reproduce`")
    with pytest.raises(InputError, match="no set 'any' is scored: none is; run `make reproduce`"):
        run(sets=["any"])


# --- as large as it gets --------------------------------------------------------------------------


def _made_up(scored: ScoredSet, rng: np.random.Generator) -> View:
    """As many random outcomes as two full stores of a set give."""
    count = len(scored.test_set.examples)
    outcomes = []
    choices = [("sharded_t", None), ("sharded_exact", None), ("token_standardised", None)]
    choices += [(t, b) for t in ("boundary", "successor") for b in ("8", "16", "32", "all")]
    for test, b in choices:
        shards = count // 10 if test == "successor" else min(50, count // 4)
        log10_p = math.log10(rng.random())
        result = ShardedExactResult(
            test=test,
            statistic=1.0,
            p=10**log10_p,
            log10_p=log10_p,
            shards=shards,
            permutations=25,
            null_sd=1.0,
            z=1.0,
            resolution=0.0,
        )
        counts, edges = np.histogram(rng.normal(size=10_000), 41)
        null = Histogram(float(edges[0]), float(edges[-1]), counts)
        outcomes.append(Outcome(test, b, result, rng.normal(size=shards), "z", null, rng.normal()))
    quiet = diagnose(make_set("any").examples, shards=2, rng=rng)
    diagnoses = {o.result.shards: quiet for o in outcomes}
    return View(scored, tuple(outcomes), -1.0, diagnoses, ())


@pytest.mark.skipif(DATA is None, reason="CONTAMINATION_DATA is not set")
def test_all_of_mmlu_under_two_models_is_below_five_megabytes(mmlu: Mmlu) -> None:
    import csv

    rng = np.random.default_rng(0)
    sets = []
    for path in sorted(Path(DATA or "", "mmlu", "test").glob("*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        texts = tuple("\n".join(row.values()) + "\n" for row in rows)
        sets.append(ExampleSet(path.stem, texts, "mmlu/2", sha256_of(*texts)))
    assert len(sets) == 57
    views = [
        _made_up(ScoredSet(model, "MMLU", each, ()), rng)
        for model in ("one", "other")
        for each in sets
    ]
    assert len(render(payload(views, [], mmlu, "all")).encode()) < 5_000_000


# --- words ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("log10_p", "text"),
    [
        (0.0, "1.000"),
        (np.log10(0.0466), "0.047"),
        (np.log10(0.0012), "0.001"),
        (np.log10(3.44e-5), "3.4\u00a0×\u00a010⁻⁵"),
        (-37.4, "4.0\u00a0×\u00a010⁻³⁸"),
        (-1234.5, "3.2\u00a0×\u00a010⁻¹²³⁵"),
    ],
)
def test_plain_p(log10_p: float, text: str) -> None:
    assert format_plain_p(log10_p) == text


@pytest.mark.parametrize(("p", "small"), [(0.0499, True), (0.05, True), (0.0501, False)])
def test_verdict(p: float, small: bool) -> None:
    assert (verdict(float(np.log10(p))) == "The model prefers the published order") is small


def _said(test: str, p: float, judged: str) -> str:
    result = SimpleNamespace(log10_p=float(np.log10(p)), permutations=19)
    outcome = SimpleNamespace(test=test, result=result)
    return reading(outcome, SimpleNamespace(verdict=judged))


def test_a_small_p_is_evidence_only_where_the_order_is_quiet() -> None:
    assert "this is evidence" in _said("successor", 1e-4, "quiet")
    for judged in ("suspicious", "order carries information", "too few records"):
        assert "this is evidence" not in _said("successor", 1e-4, judged)
    assert "no evidence" in _said("successor", 1e-4, "order carries information")
    for judged in _MEANING:
        assert "evidence" not in _said("successor", 0.2, judged)


def test_every_verdict_has_a_meaning() -> None:
    assert set(_MEANING) == set(Verdict.__args__)
    few = diagnose(["a", "b"], shards=1, rng=np.random.default_rng(0))
    assert few.verdict in _MEANING


def test_limits_of_the_papers_tests_are_stated() -> None:
    assert "0.05" in _said("permutation", 0.05, "quiet").split("cannot fall below")[1]
    assert "approximation" in _said("sharded_t", 0.3, "quiet")
    assert "approximation" not in _said("sharded_exact", 0.3, "quiet")
