"""Notebook 03: many models on many test sets (Oren, Table 2).

`measure` opens the sets and scores them, `tables` tests what was scored, adds controls and
corrections and lays the rows out, `pooled` has the last row of an audit, `figures` draws. Notebooks
may import it, no other experiment.
"""
