"""Notebook 03: many models on many test sets (Oren, Table 2).

`sets` opens the sets, `audits` scores and tests, `tables` adds controls and corrections and lays
the rows out, `figures` draws them. Notebooks may import it, no other experiment.
"""
