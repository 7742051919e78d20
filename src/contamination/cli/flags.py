"""Messages of the library name parameters; here they get the flags of a command."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import typer

from contamination.errors import InputError

# Names in the library that differ from those of the parameter of a command.
RENAMED = {"answers_of": "answers", "level": "alpha"}
# Flags that are not the name of their parameter.
FLAGS = {
    "tests": "--test",
    "scores": "--score",
    "beacon_round": "--round",
    "order_drawn": "--order",
}


def flag_of(parameter: str) -> str:
    """Return the flag of a parameter of a command.

    >>> flag_of("max_records"), flag_of("tests")
    ('--max-records', '--test')
    """
    if parameter in FLAGS:
        return FLAGS[parameter]
    words = parameter.replace("_", "-")
    return f"--{words}"


def in_flags(error: InputError, app: typer.Typer, typed: Sequence[str]) -> str:
    """Return the message of an error with the flags of the command that was typed.

    Where the message says ``axis='both'`` it becomes ``--axis 'both'``; else the flag
    of the parameter that the error names stands at its end, in parentheses. `app` is
    the command line, and `typed` the words after its name.
    """
    message = str(error)
    flags = _flags_of(typer.main.get_command(app), typed)
    missing = list[str]()
    for parameter in _parameters(error):
        flag = flags.get(RENAMED.get(parameter, parameter))
        if flag is None:
            continue
        assignment = re.compile(rf"\b{parameter}=")
        if assignment.search(message):
            message = assignment.sub(f"{flag} ", message)
        elif flag not in message:
            missing.append(flag)
    if missing:
        message += f" ({', '.join(missing)})"
    return message


@contextmanager
def revision_of_data() -> Iterator[None]:
    """Make errors of a `revision` name that of the data set: --revision is the model's."""
    try:
        yield
    except InputError as error:
        if error.parameter != "revision":
            raise
        message = str(error).replace("revision=", "data_revision=")
        raise InputError(message, parameter="data_revision") from None


def _parameters(error: BaseException | None) -> list[str]:
    """Return the parameters that an error and those behind it name, each once."""
    parameters = list[str]()
    seen = set[int]()
    # it may be its own cause
    while isinstance(error, InputError) and id(error) not in seen:
        seen.add(id(error))
        if error.parameter is not None and error.parameter not in parameters:
            parameters.append(error.parameter)
        error = error.__cause__
    return parameters


def _flags_of(command: Any, typed: Sequence[str]) -> Mapping[str, str]:
    """Return the flag of each option of the command that was typed, by parameter."""
    for word in typed:
        below = getattr(command, "commands", {})
        if word not in below:
            break
        command = below[word]
    flags = {}
    for parameter in command.params:
        if parameter.param_type_name == "option":
            flags[parameter.name] = parameter.opts[0]
    return flags
