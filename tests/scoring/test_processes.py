"""Processes that run alone, and those that cannot meet; real ones meet in `test_distributed`."""

import pytest
from accelerate.state import PartialState

from contamination.errors import InputError
from contamination.scoring.processes import gather, processes


def test_a_process_alone_meets_nobody():
    assert (processes().process_index, processes().num_processes) == (0, 1)
    assert gather({"parts": [1, 2]}) == [{"parts": [1, 2]}]


def test_several_processes_that_cannot_meet_are_refused(monkeypatch):
    for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr(PartialState, "_shared_state", {})
    with pytest.raises(InputError, match=r"WORLD_SIZE is 2.*start them with torchrun"):
        processes.__wrapped__()
