"""Processes that cannot meet, and two real ones of which one is killed in the middle of a store."""

import os
import signal
import subprocess
import sys
from unittest import mock

import pytest
from accelerate.state import PartialState
from torch.distributed import TCPStore

from contamination.errors import InputError
from contamination.scoring import score as scoring
from contamination.scoring.processes import processes
from fakes import scoring_run
from fakes.made_up_scorer import MadeUpScorer
from fakes.made_up_store import contents

LIMIT = 240  # seconds, for a machine that does other things, too


@pytest.fixture
def fifo(tmp_path):
    os.mkfifo(tmp_path / "taken")
    return tmp_path / "taken"


def test_several_processes_that_cannot_meet_are_refused(monkeypatch):
    monkeypatch.setattr(PartialState, "_shared_state", {})
    # The whole environment comes back: accelerate itself writes to it.
    with mock.patch.dict(os.environ, {"WORLD_SIZE": "2"}):
        for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
            os.environ.pop(name, None)
        with pytest.raises(InputError, match=r"WORLD_SIZE is 2.*start them with torchrun"):
            processes.__wrapped__()


@pytest.mark.parametrize("killed", [0, 1])
def test_without_torchrun_the_other_ends_with_a_message_and_a_later_run_goes_on(
    fifo, tmp_path, tokenizer, model_directory, monkeypatch, killed
):
    """The test keeps the store of the rendezvous, so nobody has to guess a port."""
    meeting = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    meeting_place = os.environ | {
        "PYTHONPATH": os.pathsep.join(sys.path),  # where the stand-ins are
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(meeting.port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "WORLD_SIZE": "2",
    }
    monkeypatch.setattr(scoring, "SMALLEST_PART", scoring_run.SMALLEST_PART)
    scoring_run.run(MadeUpScorer(tokenizer), tmp_path / "one")
    store, expected = tmp_path / "store", contents(tmp_path / "one")
    program = [sys.executable, scoring_run.__file__, model_directory, store, str(killed), fifo]
    running = [
        subprocess.Popen(
            program,
            env=meeting_place | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        errors = [process.communicate(timeout=LIMIT)[1] for process in running]
    finally:
        for process in running:
            process.kill()
    assert running[killed].returncode == -signal.SIGKILL
    assert running[1 - killed].returncode == 1
    assert f"error: process {1 - killed}: another process has ended" in errors[1 - killed]
    assert "Traceback" not in errors[1 - killed]
    # It had finished its share first.
    kept = contents(store)
    assert 1 < len(kept) < len(expected)
    assert kept.items() < expected.items()
    scoring_run.run(MadeUpScorer(tokenizer), store)
    assert contents(store) == expected
