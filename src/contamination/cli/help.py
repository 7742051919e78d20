"""Commands whose help has groups, which understand other programs' spellings.

They refuse to write over what they read.
"""

import re
from collections.abc import Sequence
from typing import Any

import typer.core

from contamination.audit.registry import described_tests
from contamination.cli.options import GROUPS, WHAT
from contamination.cli.written import check_written
from contamination.errors import InputError

# The type of what may be repeated, as typer shows it: <list[str]> or <list[Path]>.
LIST_TYPE = re.compile(r"<list\[(\w+)\]>")
# Spellings of lm-evaluation-harness, transformers and OpenAI, by our own.
SPELLINGS = {
    "--limit": "--max-records",
    "--dtype": "--precision",
    "--base-url": "--endpoint",
}
# Options of other programs that are none here, with what to do instead.
ADVICE = {
    "--batch-size": "batches are counted in tokens: give --batch-tokens",
    "--device": "all GPUs are used; to leave them out, set CUDA_VISIBLE_DEVICES to nothing",
}
WHOLE_SENTENCE = 200  # letters: no first sentence of a command is longer


class Group(typer.core.TyperGroup):
    """Commands under one name, of which a list tells the whole first sentence."""

    def get_short_help_str(self, limit: int = WHOLE_SENTENCE) -> str:
        """Return the first sentence of the help, which lists wrap and do not cut."""
        return super().get_short_help_str(max(limit, WHOLE_SENTENCE))


class Command(typer.core.TyperCommand):
    """A command with options in groups, which takes spellings of other programs."""

    def get_short_help_str(self, limit: int = WHOLE_SENTENCE) -> str:
        """Return the first sentence of the help, which lists wrap and do not cut."""
        return super().get_short_help_str(max(limit, WHOLE_SENTENCE))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, then the options of each group, then those of none."""
        arguments = list[tuple[str, str]]()
        groups: dict[str, list[tuple[str, str]]] = {}
        for name in (*GROUPS, "Options"):
            groups[name] = []
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            name, text = record
            row = (_with_type_of_one(name), text)
            if parameter.param_type_name == "argument":
                arguments.append(row)
            else:
                group = getattr(parameter, "rich_help_panel", None)
                groups[group or "Options"].append(row)
        for heading, records in {"Arguments": arguments, **groups}.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)
            if heading == WHAT and any(name.startswith("--test ") for name, _ in records):
                _write_tests(formatter)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse what was typed, in the spellings of this command."""
        return super().parse_args(ctx, self.respelled(args))

    def invoke(self, ctx: Any) -> Any:
        """Run the command, unless what it writes would replace what it reads."""
        check_written(ctx.params)
        return super().invoke(ctx)

    def respelled(self, typed: Sequence[str]) -> list[str]:
        """Return arguments in our spelling; `--model NAME` is the first argument MODEL.

        Only options that the command does not have under that name are changed.
        """
        own = set[str]()
        for parameter in self.params:
            own.update(parameter.opts)
        takes_model = any(parameter.name == "model" for parameter in self.params)
        words = list[str]()
        models = list[str]()
        rest = iter(typed)
        for word in rest:
            flag, equals, value = word.partition("=")
            if flag == "--model" and flag not in own and takes_model:
                models.append(value if equals else next(rest, ""))
            elif flag in ADVICE and flag not in own:
                raise InputError(f"{flag}: {ADVICE[flag]}")
            elif flag in SPELLINGS and flag not in own and SPELLINGS[flag] in own:
                words.append(f"{SPELLINGS[flag]}{equals}{value}")
            else:
                words.append(word)
        return models + words


def _with_type_of_one(name: str) -> str:
    """Return the name of a parameter with the type of one value: `--test <str>`.

    >>> _with_type_of_one("--output <list[Path]>")
    '--output <path>'
    """
    match = LIST_TYPE.search(name)
    if match is None:
        return name
    return name.replace(match[0], f"<{match[1].lower()}>")


def _write_tests(formatter: Any) -> None:
    """Write what `--test` can name, by kind."""
    for heading, tests in described_tests().items():
        with formatter.section(f"--test on {heading}"):
            formatter.write_dl(list(tests.items()))
