"""The entry point `contamination`, its commands, and how every command of this project ends.

Exit status: 0 done; 1 proven or evidence; 3 the order is no evidence, or nothing can be said
(`contamination.audit.decision`); 2 bad input, explained in one line on standard error, or a bug;
130 interrupted; 141 the reader of the output has gone.
"""

import ctypes
import gc
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

from contamination.errors import InputError, printable
from contamination.extras import advice_on_missing

if TYPE_CHECKING:
    import typer

MOST_SHOWN = 200  # characters of a path, from its end
M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # of glibc's malloc.h
ROOMS = {  # the commands, by the modules that hold them
    "audit": ["test", "audit", "score"],
    "verify": ["verify"],
    "seal": ["seal"],
    "audit_logs": ["audit-logs"],
    "membership": ["membership"],
    "data": ["data"],
}


def main() -> None:
    """Run the command line; bad input becomes one line, without a traceback."""
    run(lambda **how: application(*sys.argv[1:2])(**how))


def application(first: str = "") -> "typer.Typer":
    """Return the command line; where `first` names a command, only its module is imported."""
    import typer  # here, so that an interrupt meanwhile ends in one line, too

    from contamination.cli.options import option

    app = typer.Typer(
        rich_markup_mode=None,  # plain help is shorter, and there in half the time
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["--help", "-h"]},
    )
    version = option("Print the version.", "--version", callback=_print_version, is_eager=True)

    @app.callback()
    def contamination(_: Annotated[bool, version] = False) -> None:
        """Prove from log-probabilities that a language model has read a test set."""

    for room, names in [each for each in ROOMS.items() if first in each[1]] or ROOMS.items():
        module = import_module(f"contamination.cli.{room}")
        for name in names:
            made = getattr(module, name.replace("-", "_"))
            if isinstance(made, typer.Typer):
                app.add_typer(made, name=name)
            else:
                app.command(name)(made)
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(version("contamination"))
        raise SystemExit


def run(app: Callable[..., Any]) -> None:
    """Run an application of typer, and end with a status as above: 1 is kept for a rejection."""
    gc.set_threshold(50_000)  # torch and transformers make a million objects at the start that stay
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "mallopt"):  # glibc's
        # Freed memory stays here: of a virtual machine's host, large buffers come slowly.
        libc.mallopt(M_MMAP_MAX, 0)
        libc.mallopt(M_TRIM_THRESHOLD, -1)
    try:
        status = app(standalone_mode=False)
        sys.stdout.flush()
    except KeyboardInterrupt:
        status = 130
    except (BrokenPipeError, SystemExit) as error:  # typer and rich make the first the second
        if not isinstance(error.__context__ or error, BrokenPipeError):
            raise
        with suppress(OSError):  # what is still buffered goes nowhere
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 141
    except Exception as error:
        status = 2
        if type(error).__name__ == "Abort":  # typer's, which stands for an interrupt
            status = 130
        elif (line := _line(error)) is not None:
            print(f"error: {line}", file=sys.stderr)
        else:
            sys.excepthook(*sys.exc_info())
    if status == 130:
        kept = "what is finished is kept; run the same command again to go on"
        print(f"\ninterrupted; {kept}", file=sys.stderr)
    raise SystemExit(status)


def _line(error: Exception) -> str | None:
    """Return what is wrong with the input, in one line; None for a bug."""
    if isinstance(error, InputError):
        return str(error)
    if isinstance(error, ModuleNotFoundError):
        return advice_on_missing(error)
    if isinstance(error, OSError):
        reason = error.strerror or str(error)
        if error.filename is None:
            return f"the system refuses a file, the output or the network: {printable(reason)}"
        return f"{printable(str(error.filename))[-MOST_SHOWN:]}: {reason}; give another path"
    if hasattr(error, "format_message"):  # typer's
        shown = " ".join(error.format_message().split()).rstrip(".") or "no command is given"
        several = "; for several sets use `contamination audit SET... --model MODEL`"
        return f"{shown}{several * ('extra argument' in shown)}; see --help of the command"
    return None
