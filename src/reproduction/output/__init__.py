"""Figures as files, the numbers that the papers print, and the comparison of two runs.

`figures` has the one style of all figures, `published` reads `data/published/`,
`compare` holds a run against the reference and renews it. Every subpackage above may
call it; tables are laid out by `contamination.tables`.
"""
