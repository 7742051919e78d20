"""Stores that travel: the tests find the same in them as in the stores of the run."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from contamination.audit.battery import TESTS
from contamination.errors import InputError
from contamination.files import read_json, write_json
from contamination.scoring.store_sums import SummedStore
from fakes.data_fixtures import ROOT, SETS, MadeUpRun
from reproduction.notebooks.start.shipped import NEEDS, keep_tokens, open_shipped, ship_stores
from reproduction.run.experiment import MODELS
from reproduction.run.profile import CanarySpec

RUN = {
    "profile": "tiny",
    "seed": 5,
    "commit": "0" * 12,
    "hardware": "none",
    "python": "3",
    "packages": {},
    "corpus": {},
    "models": {},
}


@pytest.fixture(scope="module")
def finished(run: MadeUpRun) -> MadeUpRun:
    """Return a run that has scored everything and has a manifest."""
    for model in MODELS:
        for name in SETS:
            for test in NEEDS:
                run.experiment.store_for(model, name, TESTS[test])
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
    for model in MODELS:
        for name in SETS:
            for test in ("permutation", "sharded_t", "sharded_exact", "successor"):
                scored, permutations = finished.experiment.store_for(model, name, TESTS[test])
                store, as_many = shipped.store_for(model, name, TESTS[test])
                assert as_many == permutations
                assert store.header == scored.header
                expected = TESTS[test].result(scored, permutations)
                assert repr(TESTS[test].result(store, permutations)) == repr(expected)


def test_tokens_in_shards_of_two_sets_stay_and_no_others(
    finished: MadeUpRun, tmp_path: Path
) -> None:
    shipped = open_shipped(ship(finished, tmp_path / "stores"))
    assert shipped.with_tokens == ("sixty-four", "one")
    for model in MODELS:
        for name in SETS:
            store, permutations = shipped.store_for(model, name, TESTS["boundary"])
            assert isinstance(store, SummedStore) == (name == "eight")
            if name != "eight":
                scored, _ = finished.experiment.store_for(model, name, TESTS["boundary"])
                expected = TESTS["boundary"].result(scored, permutations)
                assert repr(TESTS["boundary"].result(store, permutations)) == repr(expected)
            whole, _ = shipped.store_for(model, name, TESTS["permutation"])
            assert isinstance(whole, SummedStore)


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
        sums = store / "sums.parquet"
        sums.write_bytes(sums.read_bytes()[::-1])
    elif fault == "missing":
        (store / "sums.parquet").unlink()
    else:
        (store / "part-1.parquet").touch()
    with pytest.raises(InputError, match=f"{store}: not the store"):
        open_shipped(stores)


def test_which_sets_keep_their_tokens_is_a_matter_of_their_counts() -> None:
    def chosen(*counts: int) -> list[str]:
        return keep_tokens(
            [
                CanarySpec(name=f"{place}: {count}", examples=8, dup_count=count, kind="question")
                for place, count in enumerate(counts)
            ]
        )

    assert chosen(1, 4, 64, 4, 7, 64) == ["2: 64", "1: 4"]
    assert chosen(1, 2, 2) == ["1: 2"]
    assert chosen(16, 8) == ["0: 16"]


# --- what lies in the repository ------------------------------------------------------------------

SHIPPED = ROOT / "data" / "stores"


def test_the_shipped_stores_are_whole_small_and_of_the_default_profile() -> None:
    shipped = open_shipped(SHIPPED)
    assert shipped.run["profile"] == "laptop"
    assert sum(map(len, files(SHIPPED).values())) < 5e6
    assert len(shipped.with_tokens) == 2
    for model in MODELS:
        for name in shipped.canaries:
            for test in NEEDS:
                store, _ = shipped.store_for(model, name, TESTS[test])
                assert store.header.dataset_revision == shipped.canaries[name]["revision"]
                assert store.header.seed == shipped.run["seed"]


def test_no_text_and_no_token_of_a_test_set_is_shipped() -> None:
    """Columns are numbers, and none is an index of a vocabulary."""
    columns = {
        (field.name, str(field.type))
        for path in SHIPPED.rglob("*.parquet")
        for field in pq.read_schema(path)
    }
    places = {(name, "int32") for name in ("shard", "ordering", "example", "position")}
    numbers = {("logprob", "float"), ("sums", "list<element: double>")}
    assert columns == places | numbers
    assert {path.suffix for path in SHIPPED.rglob("*.*")} == {".json", ".parquet"}


def test_nothing_is_shipped_without_a_manifest_of_the_same_sets(
    finished: MadeUpRun, tmp_path: Path
) -> None:
    stores = ship(finished, tmp_path / "stores")
    before = files(stores)
    manifest = finished.results / "manifest.json"
    whole = read_json(manifest)
    try:
        write_json(manifest, whole | {"canaries": {}})
        with pytest.raises(InputError, match=r"manifest\.json: it is of other test sets than"):
            ship(finished, stores)
        manifest.unlink()
        with pytest.raises(InputError, match=r"manifest\.json: cannot be read"):
            ship(finished, stores)
    finally:
        write_json(manifest, whole)
    assert files(stores) == before
