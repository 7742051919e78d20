"""Write the manual pages of `contamination` from its help: python scripts/man.py DIRECTORY."""

import sys
from importlib.metadata import version
from pathlib import Path

import typer.main
from click_man.core import write_man_pages

from contamination.cli.main import application

target = Path(sys.argv[1])
target.mkdir(parents=True, exist_ok=True)
command = typer.main.get_command(application())
write_man_pages("contamination", command, version=version("contamination"), target_dir=target)
