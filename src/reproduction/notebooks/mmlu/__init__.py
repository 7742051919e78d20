"""Notebook 04: the subsets of MMLU, filtered and combined (Oren, Tables 2 and 4, Figure 4).

Notebooks and the explorer may import it, no other experiment.
"""
