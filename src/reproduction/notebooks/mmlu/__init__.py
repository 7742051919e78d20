"""Notebook 04: the subsets of MMLU, filtered and combined (Oren, Tables 2 and 4, Figure 4).

`measure` opens, cuts (by record and by line) and scores them, `tables` tests, filters, combines and
lays out, `figures` draws. Notebooks and the explorer may import it, no other experiment.
"""
