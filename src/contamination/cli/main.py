"""The entry point `contamination`: every command by its name.

Exit status: 0 done; 1 done, and a test rejects at the level asked for; 2 bad input, explained in
one line on standard error; 130 interrupted.
"""

import sys

import typer

from contamination.cli import data, stage, wikimia
from contamination.cli.books import books
from contamination.cli.membership import membership
from contamination.cli.plan import plan
from contamination.cli.score import score
from contamination.cli.test import test
from contamination.cli.unlearned import unlearned
from contamination.errors import InputError

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
for command in (test, score, plan, membership, books, unlearned):
    app.command()(command)
for name, group in (("data", data), ("wikimia", wikimia), ("stage", stage)):
    app.add_typer(group.app, name=name)


def main() -> None:
    """Run the command line; an `InputError` becomes one line, without a traceback."""
    try:
        app()
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from error
