"""The entry point `contamination`: every command by its name.

Exit status: 0 done; 1 done, and a test rejects at the level asked for; 2 bad input, explained in
one line on standard error, or a bug; 3 cannot say (published options without a control); 130
interrupted; 141 the reader of the output has gone.
"""

import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import version
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.exceptions import TyperException

from contamination.cli import data, wikimia
from contamination.cli.books import books
from contamination.cli.membership import membership
from contamination.cli.plan import plan
from contamination.cli.score import score
from contamination.cli.seal import seal, verify
from contamination.cli.test import test
from contamination.cli.unlearned import unlearned
from contamination.errors import InputError, printable

MOST_SHOWN = 200  # characters of a path, from its end

app = typer.Typer(
    rich_markup_mode="markdown",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)
for command in (test, score, seal, verify, plan, membership, books, unlearned):
    app.command()(command)
for name, group in (("data", data), ("wikimia", wikimia)):
    app.add_typer(group.app, name=name)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(version("contamination"))
        raise typer.Exit


@app.callback()
def contamination(
    _: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Prove from log-probabilities that a language model has read a test set."""


def main() -> None:
    """Run the command line; bad input becomes one line, without a traceback."""
    run(app)


def run(app: Callable[..., Any]) -> None:
    """Run an application of typer, and end with its status: 1 is kept for a rejection.

    Bad input becomes one line and status 2, a bug its traceback and status 2. Where the reader of
    the output has gone, the status is 141, as a shell reports it.
    """
    Console.on_broken_pipe = _leave  # type: ignore[assignment, method-assign]  # rich ends with 1
    try:
        status = app(standalone_mode=False)
        sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort):
        print("interrupted", file=sys.stderr)
        status = 130
    except BrokenPipeError:
        with suppress(OSError):  # what is still buffered goes nowhere
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 141
    except Exception as error:
        if isinstance(error, InputError | TyperException | OSError):
            print(f"error: {_line(error)}", file=sys.stderr)
        else:
            traceback.print_exc()
        status = 2
    raise SystemExit(status)


def _leave(console: Console) -> None:
    raise BrokenPipeError


def _line(error: InputError | TyperException | OSError) -> str:
    if isinstance(error, TyperException):
        shown = " ".join(error.format_message().split()) or "no command is given"
        return f"{shown}; see --help of the command"
    if isinstance(error, OSError):
        reason = error.strerror or str(error)
        if error.filename is None:
            return f"the system refuses a file or the network: {printable(reason)}"
        return f"{printable(str(error.filename))[-MOST_SHOWN:]}: {reason}; give another path"
    return str(error)
