"""Two real processes score one store, on a CPU, with and without torchrun."""

import json
import os
import signal
import subprocess
import sys

import pytest
import torch
from torch.distributed import TCPStore

from contamination.scoring import score as scoring
from fakes import scoring_run
from fakes.made_up_store import contents

LIMIT = 240  # seconds, for a machine that does other things, too


@pytest.fixture
def one_process(model_directory, tmp_path_factory, monkeypatch):
    """Return a function that gives the store of one process, by the kind of scorer."""
    monkeypatch.setattr(scoring, "SMALLEST_PART", scoring_run.SMALLEST_PART)
    assert torch.get_num_threads() == 1  # as in the processes below

    def score(kind: str) -> dict[str, bytes]:
        directory = tmp_path_factory.mktemp("one") / "store"
        scoring_run.run(scoring_run.scorer_of(kind, model_directory), directory)
        files = contents(directory)
        assert len(files) > 6
        return files

    return score


@pytest.fixture
def fifos(tmp_path):
    for name in ("taken", "others-done"):
        os.mkfifo(tmp_path / name)
    return tmp_path


@pytest.fixture
def launch(model_directory, tmp_path):
    """Return a function that starts two processes by hand and returns (status, stderr) of both.

    The test keeps the store of their rendezvous, as torchrun's agent would: so no port has to be
    guessed, and nobody kills one process for the death of the other.
    """
    running = []

    def start(*behaviour, patience: str = "120") -> list[tuple[int, str]]:
        meeting = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        environment = os.environ | {
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(meeting.port),
            "TORCHELASTIC_USE_AGENT_STORE": "True",
            "WORLD_SIZE": "2",
            "PATIENCE": patience,
        }
        running.extend(
            subprocess.Popen(
                command("made-up", model_directory, tmp_path / "store", *behaviour),
                env=environment | {"RANK": str(rank)},
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank in range(2)
        )
        errors = [process.communicate(timeout=LIMIT)[1] for process in running]
        return [(p.returncode, error) for p, error in zip(running, errors, strict=True)]

    yield start
    for process in running:
        process.kill()


def command(*arguments) -> list[str]:
    return [sys.executable, scoring_run.__file__, *map(str, arguments)]


def torchrun(*arguments) -> subprocess.CompletedProcess:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    return subprocess.run(
        [*launcher, "--nproc-per-node", "2", *command(*arguments)[1:]],
        check=False,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )


def records(directory) -> list[dict]:
    return [json.loads(path.read_text()) for path in sorted(directory.glob("run-*.json"))]


def test_a_slow_process_does_less_and_the_store_is_that_of_one(
    fifos, tmp_path, one_process, model_directory
):
    run = torchrun("network", model_directory, tmp_path / "store", "share", fifos)
    assert run.returncode == 0, run.stderr
    expected = one_process("network")
    assert contents(tmp_path / "store") == expected
    parts = len(expected) - 1
    assert run.stdout.splitlines() == [f"process 0 had scored {parts - 1} parts"]
    (record,) = records(tmp_path / "store")
    assert (record["processes"], record["lost"], len(record["parts"])) == (2, [], parts)


def test_what_a_killed_process_leaves_behind_process_0_does(launch, fifos, tmp_path, one_process):
    (status, _), (killed, _) = launch("kill", 1, fifos, patience="0.5")
    assert (status, killed) == (0, -signal.SIGKILL)
    assert contents(tmp_path / "store") == one_process("made-up")
    (record,) = records(tmp_path / "store")
    assert (record["processes"], record["lost"]) == (2, [1])


def test_without_process_0_the_other_ends_with_a_message_and_a_later_run_goes_on(
    launch, fifos, tmp_path, one_process, model_directory
):
    (killed, _), (status, told) = launch("kill", 0, fifos)
    assert (killed, status) == (-signal.SIGKILL, 1)
    assert "error: process 1: process 0 has ended" in told
    assert "Traceback" not in told
    kept, expected = contents(tmp_path / "store"), one_process("made-up")
    assert 1 < len(kept) < len(expected)
    assert kept.items() < expected.items()
    scoring_run.run(scoring_run.scorer_of("made-up", model_directory), tmp_path / "store")
    assert contents(tmp_path / "store") == expected


def test_under_torchrun_a_killed_process_ends_the_run_and_the_next_does_the_rest(
    fifos, tmp_path, one_process, model_directory
):
    store, expected = tmp_path / "store", one_process("made-up")
    broken = torchrun("made-up", model_directory, store, "kill", 1, fifos)
    assert broken.returncode != 0
    kept = {path: path.stat().st_mtime_ns for path in store.glob("part-*")}
    assert len(kept) < len(expected) - 1
    again = torchrun("made-up", model_directory, store)
    assert again.returncode == 0, again.stderr
    assert contents(store) == expected
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    added = [set(record["parts"]) for record in records(store) if record["seconds"]]
    assert added == [expected.keys() - {path.name for path in kept} - {"store.json"}]
