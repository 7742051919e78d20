"""One line that says why a model or a test set is unavailable."""

import socket
from collections.abc import Iterator

from huggingface_hub.errors import LocalEntryNotFoundError

from contamination.errors import InputError

OK = "ok"
# What a cell may raise: input, device, disk or memory. Anything else is a mistake of
# ours.
FAILURES = (InputError, RuntimeError, OSError, MemoryError)
# Somewhere behind such a failure where there is no network: neither model nor set is at
# fault.
OUT_OF_REACH = (LocalEntryNotFoundError, ConnectionError, TimeoutError, socket.gaierror)


def status_of(error: BaseException) -> str:
    """Return "not run here: reason" where the hub is out of reach, else "failed: reason"."""
    text = " ".join(str(error).split()) or "no reason given"
    reason = text if isinstance(error, InputError) else f"{type(error).__name__}: {text}"
    away = any(isinstance(cause, OUT_OF_REACH) for cause in causes(error))
    return f"{'not run here' if away else 'failed'}: {reason}"


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, what it was raised from, and so on."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
