"""What a row says of a model or set that could not be had."""

import pytest
from huggingface_hub.errors import LocalEntryNotFoundError

from contamination.errors import InputError
from contamination.scoring.status import status_of


def caused(cause: Exception, by: str) -> InputError:
    error = InputError("gone")
    setattr(error, by, cause)
    return error


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (caused(LocalEntryNotFoundError("offline"), "__cause__"), "not run here: gone"),
        (caused(FileNotFoundError("no file"), "__cause__"), "failed: gone"),
        (InputError("one  two"), "failed: one two"),
        (MemoryError(), "failed: MemoryError: no reason given"),
        (ConnectionResetError("peer"), "not run here: ConnectionResetError: peer"),
    ],
)
def test_only_what_is_out_of_reach_was_not_run(error: Exception, status: str) -> None:
    assert status_of(error) == status
