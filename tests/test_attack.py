"""The attack of `make attack`, a few attempts of it, and that it would see what it looks for."""

import importlib
import sys
from collections.abc import Iterator
from types import ModuleType

import numpy as np
import pyarrow.parquet as pq
import pytest

from contamination.scoring import store_format
from fakes.data_fixtures import ROOT


@pytest.fixture(scope="module")
def run() -> Iterator[ModuleType]:
    """Return the module `run` of the attack, which changes the size of parts in this process."""
    from contamination.scoring import score

    folder, size = str(ROOT / "benchmarks" / "attack"), score.SMALLEST_PART
    sys.path.insert(0, folder)
    try:
        yield importlib.import_module("run")
    finally:
        sys.path.remove(folder)
        score.SMALLEST_PART = size


@pytest.mark.parametrize("front", ["records", "templates", "stores", "servers"])
def test_a_few_attempts_come_to_a_good_end(run: ModuleType, front: str, capfd) -> None:
    ends = run.attack(front, seed=0, first=0, times=15)
    assert ends["failed"] == 0, capfd.readouterr()
    assert ends.total() == 15
    assert ends["refused"] > 0
    assert ends["survived"] > 0


def test_a_store_that_believes_what_it_reads_is_found_out(run, monkeypatch) -> None:
    """Without checksums a flipped bit is another number."""

    def believing(*args, page_checksum_verification: bool, **kwargs):
        return read_table(*args, **kwargs)

    read_table = pq.read_table
    monkeypatch.setattr(store_format.pq, "read_table", believing)
    ends = run.attack("stores", seed=0, first=0, times=40)
    assert ends["failed"] > 0


def test_a_message_of_two_lines_and_a_traceback_are_failures(run, monkeypatch) -> None:
    class TwoLines(run.InputError):
        def __str__(self) -> str:
            return "one\ntwo"

    def raises(error: Exception):
        def front(rng: np.random.Generator, folder) -> str:
            raise error

        return front

    for error, end in (
        (TwoLines(""), "failed"),
        (KeyError("location"), "failed"),
        (MemoryError(), "failed"),
        (run.InputError("set.jsonl, line 1: no record"), "refused"),
    ):
        monkeypatch.setitem(run.FRONTS, "records", (raises(error), 1))
        assert run.attempt("records", 0, 0)[0] == end
