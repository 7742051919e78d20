"""The documents of a run: manifest, executed notebooks, report, slides, explorer.

`manifest` writes what a run was and, with `readings`, every number that the prose
quotes; `notebooks` executes a notebook with the parameters of a profile; `render` makes
the report and the slides; `explorer` makes the page of single test sets. Only `stages`
and the notebook explore_mmlu call this subpackage.
"""
