"""The end of every command of this project: one status, all output printed.

Only a verdict is 1 or 3, and a command returns it as an `ExitStatus`. Whatever else
happens, from a closed output to a bug, has a status of its own here, so that no fault
looks like a proof.
"""

import errno
import gc
import io
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from enum import IntEnum
from typing import Any, NoReturn, TextIO

from contamination.errors import InputError, printable
from contamination.extras import advice_on_missing

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
MOST_SHOWN = 200  # characters of a path, from its end
M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # of glibc's malloc.h


class ExitStatus(IntEnum):
    """The statuses of all commands; docs/how-to/reading-the-verdict.md explains them."""

    DONE = 0  # and nothing is proven
    PROVEN = 1
    DIFFERENT = 1  # of the reproduction: a value is not that of the reference
    FAILED = 2  # bad input, a system that refuses, or a bug
    NOT_SAID = 3  # the order is no evidence, or nothing can be said
    INTERRUPTED = 130
    NOT_READ = 141  # the reader of the output has gone


def run(app: Callable[..., Any]) -> NoReturn:
    """Run an application of typer, and end the process with its status."""
    status = outcome(app)
    raise SystemExit(int(flushed(status)))


def outcome(app: Callable[..., Any]) -> ExitStatus:
    """Run an application; return its status, or that of what went wrong."""
    try:
        _open_streams()
        _keep_memory()
        returned = app(standalone_mode=False)
    except BaseException as error:
        return report_error(error)
    if isinstance(returned, ExitStatus):
        return returned
    if returned == ExitStatus.INTERRUPTED:  # typer turns an interrupt into this number
        return report_error(KeyboardInterrupt())
    return ExitStatus.FAILED if returned else ExitStatus.DONE


def report_error(error: BaseException) -> ExitStatus:
    """Print what went wrong on standard error, and return its status."""
    cause = error.__context__ if isinstance(error, SystemExit) else error
    if isinstance(cause, BrokenPipeError):  # of which typer and rich make a SystemExit
        return ExitStatus.NOT_READ
    # that of typer
    if _is_interrupt(error) or type(error).__name__ == "Abort":
        kept = "what is finished is kept; run the same command again to go on"
        _print_error(f"\ninterrupted; {kept}")
        return ExitStatus.INTERRUPTED
    if isinstance(error, SystemExit) and not error.code:
        return ExitStatus.DONE
    line = _line(error)
    if type(error).__name__ == "NoArgsIsHelpError":  # typer's: its message is the help
        _print_error(str(error))
    elif line is None:
        _print_error("".join(traceback.format_exception(error)).rstrip())
    else:
        _print_error(f"error: {line}")
    return ExitStatus.FAILED


def _is_interrupt(error: BaseException | None) -> bool:
    """Return whether Ctrl-C has led to an error, which a library may have made of it."""
    seen: set[int] = set()  # a cause may have come up while its effect was handled
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        # Pydantic's core keeps the text alone.
        if isinstance(error, KeyboardInterrupt) or (
            type(error).__name__ == "SchemaError" and "KeyboardInterrupt" in str(error)
        ):
            return True
        error = error.__cause__ or error.__context__
    return False


def flushed(status: ExitStatus) -> ExitStatus:
    """Write out what is buffered; return the status, or that of a failure to write."""
    for stream in (sys.stdout, sys.stderr):
        if stream is None:
            continue
        try:
            stream.flush()
        except (OSError, ValueError) as error:
            if status in (ExitStatus.DONE, ExitStatus.PROVEN, ExitStatus.NOT_SAID):
                status = report_error(error)
            _silence(stream)
    return status


def _line(error: BaseException) -> str | None:
    """Return what is wrong with the input, in one line; None for a bug."""
    if isinstance(error, InputError):
        return str(error)
    if isinstance(error, ModuleNotFoundError):
        return advice_on_missing(error)
    if isinstance(error, OSError):
        reason = error.strerror or str(error)
        if error.filename is None:
            shown = printable(reason)
            if _is_refused(sys.stdout):
                return f"standard output cannot be written ({shown}); redirect it elsewhere"
            if error.errno in FULL:  # a file that a command was asked to write is named
                return (
                    f"standard output or a temporary file cannot be written ({shown}); free space"
                )
            return f"I/O error: {shown}"
        path = printable(str(error.filename))[-MOST_SHOWN:]
        return f"{path}: {reason}; give another path"
    if hasattr(error, "format_message"):  # typer's
        shown = printable(" ".join(error.format_message().split()).rstrip("."))
        shown = shown or "no command is given"
        if "extra argument" in shown:
            shown += "; for several sets use `contamination audit SET... --model MODEL`"
        if shown.endswith("?"):
            return f"{shown} See --help of the command"
        return f"{shown}; see --help of the command"
    return None


def _print_error(text: str) -> None:
    """Print on standard error; where that fails, the status alone says what happened."""
    with suppress(OSError, ValueError):
        print(text, file=sys.stderr, flush=True)


def _open_streams() -> None:
    """Make outputs take any character; raise InputError for a closed output."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            # Else the next file that is opened would get this number, and the output.
            os.open(os.devnull, os.O_RDWR)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if sys.stderr is None:
        # It stays open until the end.
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stdout is None:
        raise InputError(
            "standard output is closed: redirect it to a file, or to /dev/null",
        )


def _is_refused(stream: TextIO | None) -> bool:
    """Return whether a stream holds something that it cannot write out."""
    try:
        if stream is not None:
            stream.flush()
    except (OSError, ValueError):
        return True
    return False


def _silence(stream: TextIO) -> None:
    """Drop what a stream still holds: the interpreter would fail on it at its end."""
    with suppress(OSError, ValueError):  # a stream of a test has no number
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _keep_memory() -> None:
    """Collect garbage seldom, and keep freed memory here.

    Torch and transformers make a million objects at the start that stay, and large
    buffers come slowly from the host of a virtual machine.
    """
    gc.set_threshold(50_000)
    if sys.platform != "linux":
        return
    import ctypes

    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):  # glibc's
        library.mallopt(M_MMAP_MAX, 0)
        library.mallopt(M_TRIM_THRESHOLD, -1)
