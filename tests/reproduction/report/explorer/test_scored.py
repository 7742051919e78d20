"""What a run has scored is found and tested; what is missing or cannot be used is named."""

import math
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from contamination.errors import InputError
from contamination.files import write_json
from contamination.scoring.store import open_store
from fakes.data_fixtures import EXAMPLES, SETS, write_profile
from fakes.made_up_sets import make_set, make_store
from reproduction.notebooks.mmlu.subsets import by_line
from reproduction.report.explorer import scored as scored_module
from reproduction.report.explorer.outcomes import store_outcomes
from reproduction.report.explorer.scored import ScoredSet, View, find_sets, scored_sets, view_sets
from reproduction.run.experiment import Experiment

successors = partial(make_store, kind="successors", shards=2, tokens_per_example=32)


@pytest.fixture
def experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Experiment:
    """A run whose canary sets are there, with the stores of two of them."""
    run = Experiment(write_profile(tmp_path / "tiny.yaml"), tmp_path / "build")
    template = {"template": "text/1"}
    write_json(run.corpus / "corpus.json", {"canaries": dict.fromkeys(SETS, template)})
    monkeypatch.setattr(Experiment, "test_set", lambda _, name: make_set(name, EXAMPLES))
    for name in ("one", "eight"):
        test_set = make_set(name, EXAMPLES)
        successors(run.build / "stores", "contaminated", test_set)
        make_store(run.build / "stores", "contaminated", test_set, "orderings", 4)
    return run


def test_canary_sets_know_how_often_they_were_planted(experiment: Experiment) -> None:
    make_store(experiment.build / "stores", "clean", make_set("eight", EXAMPLES), "orderings", 4)
    clean, eight, one = scored_sets(experiment)
    assert (eight.model, eight.test_set.name, one.test_set.name) == ("contaminated", "eight", "one")
    assert [path.name for path in eight.stores] == ["orderings-004", "successors-002"]
    assert eight.shards == 4  # the profile's
    assert eight.about == "Copies in this model's training data: 8."
    assert clean.about.endswith(": 0.")


def test_walk_names_sets_as_their_stores_do_and_reports_what_does_not_open(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sets = {name: make_set(name) for name in ("a set", "gone")}
    folders = {name: successors(tmp_path, "org/model", each) for name, each in sets.items()}

    def load(name: str, examples: int):
        if name == "gone":
            raise InputError("no network")
        assert examples == 24
        return sets[name]

    (found,) = find_sets(tmp_path, "Sets", load)
    assert (found.model, found.group, found.stores) == ("org/model", "Sets", (folders["a set"],))
    assert capsys.readouterr().out == f"left out: {folders['gone'].parent}: no network\n"


def test_subsets_of_mmlu_by_record_and_by_line(
    experiment: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = make_set("mmlu/anatomy", 40)

    def open_test_set(name: str, *, max_records: int):
        assert name == whole.name
        return replace(
            whole, examples=whole.examples[:max_records], records=whole.records[:max_records]
        )

    monkeypatch.setattr(scored_module, "open_test_set", open_test_set)
    read = replace(open_test_set(whole.name, max_records=30), name="anatomy")
    lines = by_line(read)
    assert len(lines.examples) != 30
    for test_set in (read, lines):
        successors(experiment.build / "stores" / "mmlu", "m", test_set)
    orphan = replace(lines, name="virology-by-line")
    successors(experiment.build / "stores" / "mmlu", "m", orphan)
    by_name = {each.test_set.name: each for each in scored_sets(experiment)}
    assert by_name["anatomy"].group == "MMLU"
    assert by_name["anatomy"].test_set.examples == read.examples
    assert by_name["anatomy-by-line"].group == "MMLU by line"
    assert by_name["anatomy-by-line"].test_set.revision == lines.revision
    assert "virology-by-line" not in by_name


def test_sets_of_an_audit_of_open_models(
    experiment: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    public = make_set("gsm8k", 30)

    def open_test_set(name: str, *, max_records: int):
        assert (name, max_records) == ("gsm8k", 30)
        return public

    monkeypatch.setattr(scored_module, "open_test_set", open_test_set)
    for test_set in (public, make_set("one", EXAMPLES)):
        directory = experiment.build / "stores" / "open_models"
        successors(directory, "gpt2", test_set)
    found = [each for each in scored_sets(experiment) if each.model == "gpt2"]
    assert [(each.group, each.test_set.name) for each in found] == [
        ("Audited sets", "gsm8k"),
        ("Audited sets", "one"),
    ]


# --- the view of one set under one model ----------------------------------------------------------


def _view(test_set, *stores: Path) -> View:
    (view,) = view_sets([ScoredSet("m", "Sets", test_set, stores)])
    return view


@pytest.mark.parametrize(("set_by_profile", "shards"), [(None, 6), (4, 4)])
def test_what_was_set_in_advance(
    views: list[View], set_by_profile: int | None, shards: int
) -> None:
    scored = replace(views[0].scored, shards=set_by_profile)
    usual = {(o.test, o.result.shards, o.b) for o in views[0].outcomes if scored.is_usual(o)}
    assert usual == {
        ("permutation", 1, None),
        ("sharded_t", shards, None),
        ("sharded_exact", shards, None),
        ("token_standardised", shards, None),
        ("boundary", shards, "16"),
        ("successor", 2, "32"),
    }


def test_joint_p_is_corrected_over_stores(views: list[View]) -> None:
    joints = [store_outcomes(open_store(path))[1].log10_p for path in views[0].scored.stores]
    assert len(joints) == 5
    assert views[0].joint_log10_p == min(0.0, min(joints) + math.log10(5))


def test_of_two_stores_of_the_same_shards_the_fuller_one_counts(tmp_path: Path) -> None:
    test_set = make_set("s")
    short = successors(tmp_path, "m", test_set)
    whole = make_store(tmp_path / "whole", "m", test_set, "successors", 2)
    for stores in ((short, whole), (whole, short)):
        view = _view(test_set, *stores)
        assert [o.b for o in view.outcomes] == ["8", "16", "32", "all"]
        assert view.joint_log10_p == store_outcomes(open_store(whole))[1].log10_p


def test_stores_of_other_texts_and_damaged_ones_are_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    test_set = make_set("s")
    good = successors(tmp_path, "m", test_set)
    assert _view(replace(test_set, revision="another"), good).outcomes == ()
    assert "scored from another revision" in capsys.readouterr().out
    bad = make_store(tmp_path, "m", test_set, "orderings", 4)
    (part,) = bad.glob("part-*")
    part.write_bytes(part.read_bytes()[: part.stat().st_size // 2])
    assert {o.test for o in _view(test_set, bad, good).outcomes} == {"successor"}
    assert "damaged" in capsys.readouterr().out
