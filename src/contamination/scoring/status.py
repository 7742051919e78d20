"""One line for a model or a test set that cannot be had."""

import socket

from huggingface_hub.errors import LocalEntryNotFoundError

from contamination.errors import InputError

OK = "ok"
# What a cell may raise: input, device, disk or memory. Anything else is a mistake of ours.
FAILURES = (InputError, RuntimeError, OSError, MemoryError)
# Somewhere behind such a failure where there is no network: neither model nor set is at fault.
OUT_OF_REACH = (LocalEntryNotFoundError, ConnectionError, TimeoutError, socket.gaierror)


def status_of(error: BaseException) -> str:
    """Return "not run here: reason" where the hub is out of reach, else "failed: reason"."""
    text = " ".join(str(error).split()) or "no reason given"
    reason = text if isinstance(error, InputError) else f"{type(error).__name__}: {text}"
    behind: BaseException | None = error
    while behind is not None:
        if isinstance(behind, OUT_OF_REACH):
            return f"not run here: {reason}"
        behind = behind.__cause__ or behind.__context__
    return f"failed: {reason}"
