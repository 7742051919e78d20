"""Notebook 03: many models on many test sets (Oren, Table 2).

`measure` opens the sets and scores them, `tables` tests what was scored, pools the sets, adds
controls and corrections and lays the rows out, `figures` draws. Notebooks may import it, no other
experiment.
"""
