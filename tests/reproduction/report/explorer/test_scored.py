"""Scored sets are found with the numbers of the tests; unusable stores are named."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from contamination.audit.registry import TESTS
from contamination.errors import InputError
from contamination.files import write_json
from contamination.scoring.store import open_store
from fakes.data_fixtures import EXAMPLES, SETS, write_profile
from fakes.made_up_sets import make_set, make_store
from reproduction.notebooks.mmlu.measure import by_line
from reproduction.report.explorer import scored as scored_module
from reproduction.report.explorer.scored import (
    Outcome,
    ScoredSet,
    find_outcomes,
    scored_sets,
)
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
        successors(run.build / "stores", "contaminated", test_set, shards=1)
        for shards in (3, 4):  # the profile's are 4
            make_store(run.build / "stores", "contaminated", test_set, "orderings", shards)
    return run


def test_canary_sets_know_how_often_they_were_planted(experiment: Experiment) -> None:
    make_store(experiment.build / "stores", "clean", make_set("eight", EXAMPLES), "orderings", 4)
    clean, eight, one = scored_sets(experiment)
    assert eight.model == "contaminated"
    assert eight.test_set.name == "eight"
    assert one.test_set.name == "one"
    assert [path.name for path in eight.stores] == ["orderings-004", "successors-001"]
    assert eight.about == "Copies in this model's training data: 8."
    assert clean.about.endswith(": 0.")


def test_subsets_of_mmlu_and_audited_sets(
    experiment: Experiment, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = {name: make_set(name, 40) for name in ("mmlu/anatomy", "gsm8k")}

    def open_test_set(name: str, *, max_records: int):
        if name not in whole:
            raise InputError("no such set")
        cut = slice(max_records)
        return replace(
            whole[name], examples=whole[name].examples[cut], records=whole[name].records[cut]
        )

    monkeypatch.setattr(scored_module, "open_test_set", open_test_set)
    read = replace(open_test_set("mmlu/anatomy", max_records=30), name="anatomy")
    lines = by_line(read)
    gone = replace(read, name="virology")
    for test_set in (read, lines, gone):
        successors(experiment.build / "stores" / "mmlu", "m", test_set)
    for test_set in (whole["gsm8k"], make_set("one", EXAMPLES)):
        successors(experiment.build / "stores" / "open_models", "org/gpt2", test_set)
    found = [each for each in scored_sets(experiment) if each.model != "contaminated"]
    assert [(each.model, each.group, each.test_set.name) for each in found] == [
        ("m", "MMLU", "anatomy"),
        ("org/gpt2", "Audited sets", "gsm8k"),
        ("org/gpt2", "Audited sets", "one"),
    ]
    assert found[0].test_set.examples == read.examples
    left_out = capsys.readouterr().out
    assert left_out.startswith("left out: ")
    assert "no such set" in left_out


SET = make_set("some")


def outcomes_of(test_set, *stores: Path) -> dict[str, Outcome]:
    found = find_outcomes([ScoredSet("m", "Sets", test_set, stores)])
    return {each.result.test: each for each in found}


@pytest.fixture
def stores(tmp_path: Path) -> dict[str, Path]:
    make = partial(make_store, tmp_path, "m", SET)
    whole = make("orderings", 1, permutations=19)
    return {"whole": whole, "orderings": make("orderings", 6, gain=0.4)} | {
        "successors": make("successors", 3, tokens_per_example=32, gain=0.4)
    }


@pytest.fixture
def own(stores: dict[str, Path]) -> dict[str, Outcome]:
    return outcomes_of(SET, *stores.values())


def test_every_number_is_that_of_the_registry(stores, own) -> None:
    kinds = {"permutation": "whole", "successor": "successors"}
    for name in (*kinds, "sharded_t", "sharded_exact", "token_standardised", "boundary"):
        store = open_store(stores[kinds.get(name, "orderings")])
        expected = TESTS[name].result(store, 19 if name == "permutation" else 9)
        assert repr(own.pop(name).result) == repr(expected)
    assert own == {}


def test_evidence_of_the_shards_adds_up(stores, own) -> None:
    sums = open_store(stores["orderings"]).log_probs(9)
    z = (sums[:, 0] - sums.mean(axis=1)) / sums.std(axis=1)
    np.testing.assert_allclose(own["sharded_exact"].by_shard, z, rtol=1e-9)
    differences = sums[:, 0] - sums[:, 1:].mean(axis=1)
    np.testing.assert_allclose(own["sharded_t"].by_shard, differences, rtol=1e-9)


def test_stores_that_cannot_be_used_are_left_out_and_named(
    tmp_path: Path, stores: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    good = stores["successors"]
    assert outcomes_of(replace(SET, revision="another"), good) == {}
    assert "scored from another revision" in capsys.readouterr().out
    bad = make_store(tmp_path / "bad", "m", SET, "orderings", 4)
    (part,) = bad.glob("part-*")
    part.write_bytes(part.read_bytes()[: part.stat().st_size // 2])
    short = make_store(tmp_path / "short", "m", SET, "successors", 3, tokens_per_example=5)
    canonical = make_store(tmp_path / "canonical", "m", SET, "orderings", 3, permutations=0)
    interrupted = open_store(stores["orderings"])
    extra = interrupted.examples((0, 10))
    values = np.zeros(int(interrupted.header.stored[extra].sum()), dtype=np.float32)
    interrupted.append([((0, 10), extra, values)])
    found = outcomes_of(SET, bad, short, canonical, stores["orderings"], good)
    assert set(found) == {"successor"}
    assert capsys.readouterr().out.count("left out: m, some: ") == 4
