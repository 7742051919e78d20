"""One set under one model: choices set in advance, correction over stores, what is left out."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

import contamination.report.explorer.views as views_module
from contamination.report.explorer.outcomes import store_outcomes
from contamination.report.explorer.scored import Found, ScoredSet
from contamination.report.explorer.views import Viewer
from contamination.scoring.store import open_store
from fakes.made_up_sets import make_set, make_store


def _scored(test_set, *stores: Path, **usual: int) -> ScoredSet:
    return ScoredSet("m", "Sets", test_set, stores, {"orderings": 4, "successors": 2} | usual)


def test_what_was_set_in_advance(found: Found) -> None:
    scored = replace(found.sets[0], usual_shards={"orderings": 4, "successors": 2})
    view = Viewer().view(scored)
    usual = {(o.test, o.result.shards, o.b) for o in view.outcomes if view.is_usual(o)}
    assert usual == {
        ("permutation", 1, None),
        ("sharded_t", 4, None),
        ("sharded_exact", 4, None),
        ("token_standardised", 4, None),
        ("boundary", 4, "16"),
        ("successor", 2, "32"),
    }


def test_joint_p_is_corrected_over_stores(found: Found) -> None:
    scored = found.sets[0]
    joints = [store_outcomes(open_store(path)).joint.log10_p for path in scored.stores]
    assert len(joints) == 5
    assert Viewer().view(scored).joint_log10_p == min(0.0, min(joints) + math.log10(5))


def test_joint_p_is_a_p_value(tmp_path: Path) -> None:
    test_set = make_set("s", 8)
    stores = [
        make_store(tmp_path, "m", test_set, "orderings", r, permutations=1, gain=-30.0)
        for r in (1, 2, 4)
    ]
    assert Viewer().view(_scored(test_set, *stores)).joint_log10_p == 0.0


def test_of_two_stores_of_the_same_shards_the_fuller_one_counts(tmp_path: Path) -> None:
    test_set = make_set("s")
    short = make_store(tmp_path, "m", test_set, "successors", 2, tokens_per_example=32)
    whole = make_store(tmp_path / "whole", "m", test_set, "successors", 2)
    for stores in ((short, whole), (whole, short)):
        view = Viewer().view(_scored(test_set, *stores))
        assert [o.b for o in view.outcomes] == ["8", "16", "32", "all"]
        assert view.joint_log10_p == store_outcomes(open_store(whole)).joint.log10_p


def test_stores_of_other_texts_are_left_out(tmp_path: Path) -> None:
    test_set = make_set("s")
    store = make_store(tmp_path, "m", test_set, "successors", 2, tokens_per_example=32)
    other = replace(test_set, revision="another")
    view = Viewer().view(_scored(other, store))
    assert view.outcomes == ()
    (line,) = view.left_out
    assert line == f"m, s: {store}: scored from another revision of the test set; score it again"


def test_a_damaged_store_is_left_out_and_the_others_are_shown(tmp_path: Path) -> None:
    test_set = make_set("s")
    good = make_store(tmp_path, "m", test_set, "successors", 2, tokens_per_example=32)
    bad = make_store(tmp_path, "m", test_set, "orderings", 4)
    (part,) = bad.glob("part-*")
    part.write_bytes(part.read_bytes()[: part.stat().st_size // 2])
    view = Viewer().view(_scored(test_set, bad, good))
    assert {o.test for o in view.outcomes} == {"successor"}
    assert len(view.left_out) == 1
    assert "damaged" in view.left_out[0]


def test_diagnoses_are_made_once_per_set_and_shards(
    found: Found, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    real = views_module.diagnose

    def counting(texts, records, *, shards, rng):
        asked.append((texts, shards))
        return real(texts, records, shards=shards, rng=rng)

    monkeypatch.setattr(views_module, "diagnose", counting)
    viewer = Viewer()
    for scored in found.sets:
        assert set(viewer.view(scored).diagnoses) == {1, 2, 4, 6}
    assert len(asked) == 2 * 4  # sets times numbers of shards; two models share them
