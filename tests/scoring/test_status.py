"""What a row says of a model or set that could not be had."""

import socket

import pytest
from huggingface_hub.errors import LocalEntryNotFoundError

from contamination.errors import InputError
from contamination.scoring.status import status_of


@pytest.mark.parametrize("chained", ["__cause__", "__context__"])  # `raise ... from` or without
@pytest.mark.parametrize(
    ("cause", "status"),
    [
        (LocalEntryNotFoundError("offline"), "not run here: gone"),
        (ConnectionRefusedError("refused"), "not run here: gone"),
        (TimeoutError("slow"), "not run here: gone"),
        (socket.gaierror(-2, "unknown name"), "not run here: gone"),
        (FileNotFoundError("no file"), "failed: gone"),
        (ValueError("damaged"), "failed: gone"),
    ],
)
def test_only_what_is_out_of_reach_was_not_run(cause, status, chained) -> None:
    error = InputError("gone")
    setattr(error, chained, cause)
    assert status_of(error) == status


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InputError("one  two"), "failed: one two"),
        (RuntimeError("one\n  two"), "failed: RuntimeError: one two"),
        (RuntimeError("lost"), "failed: RuntimeError: lost"),
        (MemoryError(), "failed: MemoryError: no reason given"),
        (ConnectionResetError("peer"), "not run here: ConnectionResetError: peer"),
    ],
)
def test_it_is_one_line_with_a_reason(error: Exception, status: str) -> None:
    assert status_of(error) == status
