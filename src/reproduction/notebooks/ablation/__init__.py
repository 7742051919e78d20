"""Notebook 02: numbers of shards and of permutations (Oren, Figure 3).

`settings` tests under each setting and averages, `figures` draws the means. Notebooks may import
it, no other experiment.
"""
