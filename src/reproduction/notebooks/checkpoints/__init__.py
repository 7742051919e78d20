"""Notebook 12: the checkpoints that Oren et al. released (Tables 1 and 5, Figures 2 and 3).

`measure` names what is scored and scores it, `tables` tests the stores, counts the spans that
Min-K% detects and lays both out, `figures` draws. Notebooks may import it, no other experiment.
"""
