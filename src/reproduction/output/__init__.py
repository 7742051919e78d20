"""How a table or a figure is written, and the numbers that the papers print.

`figures` has the one style of all figures, `evidence` draws evidence against what it depends on,
`published` reads `data/published/`, `compare` holds a run against the reference. Every room above
may call it; tables are laid out by `contamination.tables`.
"""
