"""How a table or a figure is written, and the numbers that the papers print.

`tables` formats and lays out p-values and estimates and writes CSV and Markdown, `figures` has the
one style of all figures, `published` reads `data/published/`. Every room above may call it.
"""
