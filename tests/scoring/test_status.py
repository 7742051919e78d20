"""What a row says of a model or set that could not be had."""

import socket

import pytest
from huggingface_hub.errors import LocalEntryNotFoundError

from contamination.errors import InputError
from contamination.scoring.status import status_of


def _raised(cause: Exception, *, explicit: bool) -> InputError:
    try:
        try:
            raise cause
        except Exception as error:
            if explicit:
                raise InputError("gone") from error
            raise InputError("gone")  # noqa: B904 - the case in question
    except InputError as error:
        return error


@pytest.mark.parametrize("explicit", [True, False])
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
def test_only_what_is_out_of_reach_was_not_run(
    cause: Exception, status: str, explicit: bool
) -> None:
    assert status_of(_raised(cause, explicit=explicit)) == status


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InputError("one\n  two"), "failed: one two"),
        (RuntimeError("lost"), "failed: RuntimeError: lost"),
        (MemoryError(), "failed: MemoryError: no reason given"),
        (ConnectionResetError("peer"), "not run here: ConnectionResetError: peer"),
    ],
)
def test_it_is_one_line_with_a_reason(error: Exception, status: str) -> None:
    assert status_of(error) == status
