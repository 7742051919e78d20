"""Several processes of one run, played one after the other by the process of a test."""

from collections.abc import Iterator
from contextlib import nullcontext
from copy import deepcopy

import pytest

from contamination.scoring import score as scoring
from contamination.scoring.processes import processes


def one_after_the_other(monkeypatch: pytest.MonkeyPatch, size: int) -> Iterator[int]:
    """Be each of `size` processes in turn: its rank. All learn what was missing before the first.

    Nobody writes what was run, which needs all of them at once.
    """
    missing: list = []

    def share(work):
        value = work()
        missing[:] = missing or [value]
        return deepcopy(missing)

    monkeypatch.setattr(scoring, "share", share)
    monkeypatch.setattr(scoring, "together", lambda work: work())
    monkeypatch.setattr(scoring, "recorded", lambda *_: nullcontext())
    monkeypatch.setattr(processes(), "num_processes", size)
    for rank in range(size):
        monkeypatch.setattr(processes(), "process_index", rank)
        yield rank
