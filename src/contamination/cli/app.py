"""All commands of `contamination` by the modules that hold them."""

from importlib import import_module
from typing import Annotated

import typer

from contamination.cli.options import option

ROOMS = {
    "audit": ["test", "audit", "score"],
    "verify": ["verify"],
    "seal": ["seal", "audit-logs"],
    "membership": ["membership"],
    "data": ["data"],
}


def application(first: str = "") -> typer.Typer:
    """Return the command line; where `first` names a command, only its module is imported."""
    app = typer.Typer(
        rich_markup_mode=None,  # plain help is shorter, and there in half the time
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["--help", "-h"]},
    )
    app.callback()(contamination)
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
        raise typer.Exit


def contamination(
    _: Annotated[
        bool,
        option("Print the version.", "--version", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """Prove from log-probabilities that a language model has read a test set."""
