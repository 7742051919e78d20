"""Notebook 04: the subsets of MMLU, filtered and combined (Oren, Tables 2 and 4, Figure 4).

`subsets` opens them and cuts them by record and by line, `measure` scores them, `tables` tests,
filters, combines and lays out, `figures` draws. Notebooks and the explorer may import it, no other
experiment.
"""
