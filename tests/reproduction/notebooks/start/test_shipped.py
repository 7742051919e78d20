"""Stores that travel: the tests find the same in them as in the run, and notebook 00 shows it."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure

from contamination.audit.registry import TESTS
from contamination.errors import InputError
from contamination.files import write_json
from contamination.tables import SIGNIFICANT
from fakes.data_fixtures import ROOT, SETS, MadeUpRun
from fakes.notebook import run_cells
from reproduction.notebooks.start.shipped import NEEDS, open_shipped, ship_stores
from reproduction.run.experiment import MODELS

RUN: dict[str, object] = {"profile": "tiny", "seed": 5, "commit": "0" * 12, "hardware": "none"}
RUN |= {"python": "3", "packages": {}, "corpus": {}, "models": {}}


@pytest.fixture(scope="module")
def finished(run: MadeUpRun) -> MadeUpRun:
    canaries = run.experiment.corpus_facts["canaries"]
    write_json(run.results / "manifest.json", RUN | {"canaries": canaries})
    return run


def ship(run: MadeUpRun, directory: Path) -> Path:
    ship_stores(run.experiment, run.results, directory)
    return directory


def files(directory: Path) -> dict[str, bytes]:
    paths = (path for path in directory.rglob("*") if path.is_file())
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in paths}


def test_every_test_finds_the_same_as_in_the_run(finished: MadeUpRun, tmp_path: Path) -> None:
    shipped = open_shipped(ship(finished, tmp_path / "stores"))
    assert shipped.run == RUN
    assert shipped.with_tokens == ("sixty-four", "one")
    for model, name in product(MODELS, SETS):
        whole, _ = shipped.store_for(model, name, TESTS["permutation"])
        assert whole.header.summed
        tests = ["permutation", "sharded_t", "sharded_exact", "successor"]
        for test in tests + ["boundary"] * (name in shipped.with_tokens):
            scored, permutations = finished.experiment.store_for(model, name, TESTS[test])
            store, as_many = shipped.store_for(model, name, TESTS[test])
            assert as_many == permutations
            assert replace(store.header, summed=False) == scored.header
            expected = TESTS[test].result(scored, permutations)
            assert repr(TESTS[test].result(store, permutations)) == repr(expected)
        shards, _ = shipped.store_for(model, name, TESTS["sharded_exact"])
        assert shards.header.summed == (name == "eight")


def test_the_same_run_gives_the_same_bytes_and_replaces_what_was_there(
    finished: MadeUpRun, tmp_path: Path
) -> None:
    stores = ship(finished, tmp_path / "stores")
    before = files(stores)
    (stores / "left over").touch()
    assert files(ship(finished, stores)) == before
    assert len(before) > 2 * len(SETS) * len(NEEDS)


@pytest.mark.parametrize("fault", ["changed", "missing", "added"])
def test_a_store_that_is_not_the_shipped_one_is_named(
    finished: MadeUpRun, tmp_path: Path, fault: str
) -> None:
    stores = ship(finished, tmp_path / "stores")
    store = stores / "clean" / "eight" / "orderings-004"
    if fault == "changed":
        (sums,) = store.glob("*.parquet")
        sums.write_bytes(sums.read_bytes()[::-1])
    elif fault == "missing":
        (store / "store.json").unlink()
    else:
        (store / "part-1.parquet").touch()
    with pytest.raises(InputError, match=f"{store}: not the store"):
        open_shipped(stores)


def test_nothing_is_shipped_without_a_manifest_of_the_same_sets(
    finished: MadeUpRun, tmp_path: Path
) -> None:
    stores = ship(finished, tmp_path / "stores")
    before = files(stores)
    other = tmp_path / "manifest.json"
    for fault in ("cannot be read", "of other test sets than"):
        with pytest.raises(InputError, match=rf"manifest\.json: .*{fault}"):
            ship_stores(finished.experiment, tmp_path, stores)
        write_json(other, RUN | {"canaries": {}})
    assert files(stores) == before


SHIPPED = ROOT / "data" / "stores"


def test_the_shipped_stores_are_whole_small_and_of_the_default_profile() -> None:
    shipped = open_shipped(SHIPPED)
    assert shipped.run["profile"] == "laptop"
    assert sum(map(len, files(SHIPPED).values())) < 5e6
    assert len(shipped.with_tokens) == 2
    for model, name, test in product(MODELS, shipped.canaries, NEEDS):
        header = shipped.store_for(model, name, TESTS[test])[0].header
        assert header.dataset_revision == shipped.canaries[name]["revision"]
        assert header.seed == shipped.run["seed"]


def test_the_notebook_finds_the_set_of_most_copies_and_does_not_accuse_the_clean_model(
    tmp_path: Path,
) -> None:
    shown = run_cells(ROOT / "notebooks" / "00_start_here.ipynb", results=str(tmp_path))
    assert sum(isinstance(value, Figure) for value in shown) == 3
    rows = pd.read_csv(tmp_path / "tables" / "start.csv")
    most = rows[rows["dup_count"] == rows["dup_count"].max()].set_index(["model", "test"])
    for test in ("sharded_t", "sharded_exact", "successor"):
        assert most.loc[("contaminated", test), "holm_p"].max() < 1e-4
    assert most.loc["contaminated"].loc["permutation", "p"] == 1 / 20  # "can never say less"
    assert most.loc["clean", "holm_p"].min() > SIGNIFICANT
