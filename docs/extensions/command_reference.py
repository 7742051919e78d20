"""The reference of the command line, made from its own options whenever the site is built."""

import html
import inspect
import re
from collections.abc import Iterator
from typing import Any

import typer.main
from sphinx.application import Sphinx

from contamination.cli.main import app as command_line

PAGE = "reference/command-line"
PLACE = "<!-- commands -->"


def setup(app: Sphinx) -> dict[str, Any]:
    """Fill in the page, and read it again although its file has not changed."""
    app.connect("source-read", _fill)
    app.connect("env-get-outdated", lambda *_: [PAGE])
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


def _fill(app: Sphinx, name: str, source: list[str]) -> None:
    if name == PAGE:
        group = typer.main.get_command(command_line)
        source[0] = source[0].replace(PLACE, "\n".join(_described(group, "contamination", 1)))


def _described(command: Any, name: str, level: int) -> Iterator[str]:
    """Yield the Markdown of a command and of those below it."""
    if level > 1:
        yield from (f"{'#' * level} `{name}`", "", _text(inspect.cleandoc(command.help or "")), "")
    if commands := getattr(command, "commands", None):
        for own, below in commands.items():
            yield from _described(below, f"{name} {own}", level + 1)
        return
    context = typer.Context(command, info_name=name)
    pieces = [piece for p in command.params for piece in p.get_usage_pieces(context)]
    usage = " ".join([name, "[OPTIONS]", *(re.sub(r"[{}]", "", piece).upper() for piece in pieces)])
    yield from ("```text", usage, "```", "")
    panel = None
    for parameter in command.params:
        if (own := parameter.rich_help_panel) != panel:
            panel = own
            yield from (f"**{panel}**", "")
        yield from _parameter(parameter, context)


def _parameter(parameter: Any, context: Any) -> Iterator[str]:
    """Yield an item of a definition list: what is typed, and what it means."""
    default = parameter.default
    told = "" if default in (None, False, ()) or callable(default) else f" Default: `{default}`."
    if parameter.param_type_name == "argument":
        yield f"`{parameter.name.upper()}`"
    else:
        value = "" if parameter.is_flag else f" {parameter.display_type(context)}"
        yield ", ".join(f"`{name}{value}`" for name in parameter.opts + parameter.secondary_opts)
    yield from (f": {_text(parameter.help or '')}{told}", "")


def _text(help_text: str) -> str:
    """Escape what Markdown would take for markup, and show options as code."""
    parts = help_text.split("`")
    for i in range(0, len(parts), 2):
        escaped = html.escape(parts[i], quote=False).replace("*", "\\*")
        parts[i] = re.sub(r"(?<!\w)(--[a-z][a-z-]*)", r"`\1`", escaped)
    return "`".join(parts)
