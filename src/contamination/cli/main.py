"""The entry point `contamination`: every command by its name.

Exit status: 0 done; 1 done, and a test rejects at the level asked for; 2 bad input, explained in
one line on standard error; 3 cannot say (published options without a control); 130 interrupted.
"""

import sys

import typer
from typer.exceptions import TyperException

from contamination.cli import data, wikimia
from contamination.cli.books import books
from contamination.cli.membership import membership
from contamination.cli.plan import plan
from contamination.cli.score import score
from contamination.cli.seal import seal, verify
from contamination.cli.test import test
from contamination.cli.unlearned import unlearned
from contamination.errors import InputError

MOST_SHOWN = 200  # characters of a path, from its end

app = typer.Typer(
    rich_markup_mode="markdown",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (test, score, seal, verify, plan, membership, books, unlearned):
    app.command()(command)
for name, group in (("data", data), ("wikimia", wikimia)):
    app.add_typer(group.app, name=name)


def main() -> None:
    """Run the command line; bad input becomes one line, without a traceback."""
    run(app)


def run(app: typer.Typer) -> None:
    """Run an application of typer: bad input becomes one line and exit status 2."""
    try:
        status = app(standalone_mode=False)
    except (InputError, TyperException, OSError) as error:
        print(f"error: {_line(error)}", file=sys.stderr)
        raise SystemExit(2) from error
    raise SystemExit(status)


def _line(error: InputError | TyperException | OSError) -> str:
    if isinstance(error, TyperException):
        told = " ".join(error.format_message().split()) or "no command is given"
        return f"{told}; see --help of the command"
    if isinstance(error, OSError):
        if error.filename is None:  # of no path, so nothing that a user could name otherwise
            raise error
        return f"{str(error.filename)[-MOST_SHOWN:]}: {error.strerror}; give another path"
    return str(error)
