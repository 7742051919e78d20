"""The entry point `contamination` and its commands; `ending` has its statuses."""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

from contamination.cli.ending import run
from contamination.errors import InputError

if TYPE_CHECKING:
    import typer

# Each has a module of its own, named after it.
COMMANDS = (
    "test",
    "compare",
    "audit",
    "score",
    "verify",
    "seal",
    "audit-logs",
    "membership",
    "wikimia",
    "leaderboard",
    "data",
)


def main() -> NoReturn:
    """Run the command line; bad input becomes one line, without a traceback."""
    run(command_line)


def command_line(**how: Any) -> Any:
    """Run what was typed; return what the command returns."""
    typed = application(*sys.argv[1:2])
    try:
        return typed(**how)
    except InputError as error:
        from contamination.cli.flags import in_flags

        raise InputError(in_flags(error, typed, sys.argv[1:])) from error


def application(first: str = "") -> "typer.Typer":
    """Return the command line; of a command `first` only its module is imported."""
    import typer  # here, so that an interrupt meanwhile ends in one line, too

    from contamination.cli.help import Command, Group
    from contamination.cli.options import option

    app = typer.Typer(
        cls=Group,
        rich_markup_mode=None,  # plain help is shorter, and there in half the time
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["--help", "-h"]},
    )
    version = option(
        "Print the version.",
        "--version",
        callback=_print_version,
        is_eager=True,
    )

    @app.callback()
    def contamination(_: Annotated[bool, version] = False) -> None:
        """Prove from log-probabilities that a language model has read a test set."""

    for name in [first] if first in COMMANDS else COMMANDS:
        module_name = name.replace("-", "_")
        module = import_module(f"contamination.cli.{module_name}")
        command = getattr(module, module_name)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        else:
            app.command(name, cls=Command)(command)
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        import typer

        print(version("contamination"))
        raise typer.Exit


if __name__ == "__main__":
    main()
