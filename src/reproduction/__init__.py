"""The reproduction: runs of a profile, one package per notebook, tables, figures, report.

It imports `contamination`, the library and the command, and never the reverse. `make`
calls its stages by `python -m reproduction STAGE`.
"""
