"""One package for each notebook: what is computed, its tables, its figures.

Experiments call the subpackages below and never each other; notebooks, the report and
commands call them.
"""
