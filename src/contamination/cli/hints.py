"""Hints for a person who types a command for the first time."""

import os
import sys
from pathlib import Path

from contamination.errors import InputError, printable
from contamination.testsets.layouts import LAYOUTS
from contamination.testsets.records import FORMATS
from contamination.testsets.templates import parse


def say_template(dataset: str, template: str) -> None:
    """Print the template that the layout of the records chose, if it is unusual."""
    # the first process speaks
    if template == LAYOUTS[0] or os.environ.get("RANK", "0") != "0":
        return
    chosen = parse(template)
    fields = dict.fromkeys(field.name.partition("[")[0] for field in chosen.listed)
    print(
        f"{printable(dataset)}: template {template}, {chosen.pattern!r}, since the "
        f"records have {', '.join(fields)}; --template gives another",
        file=sys.stderr,
    )


def refuse_swapped(model: str, dataset: str) -> None:
    """Raise InputError if set and model stand in each other's place."""
    advice = f"name MODEL first, then DATASET: {dataset} {model}"
    if Path(model).suffix in FORMATS and Path(model).is_file():
        raise InputError(f"{model} is a test set; {advice}")
    if Path(dataset).suffix == ".gguf" or (Path(dataset) / "config.json").is_file():
        raise InputError(f"{dataset} is a model; {advice}")
