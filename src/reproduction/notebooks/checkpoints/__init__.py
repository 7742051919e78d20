"""Notebook 12: the checkpoints that Oren et al. released (Tables 1 and 5, Figures 2 and 3).

`cells` names what is scored, `measure` scores it, `evaluation` tests the stores, `min_k` counts the
spans that Min-K% detects, `tables` and `figures` show it. Notebooks may import it, no other
experiment.
"""
