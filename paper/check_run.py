"""Quarto calls this before it renders: it needs the results of a run, and says how to get them."""

import sys
from pathlib import Path

if not Path("_variables.yml").is_file():
    sys.exit(
        "no results to report yet: run `make reproduce` in the folder above, then render again"
    )
