"""Notebook 04: the subsets of MMLU, filtered and combined (Oren, Tables 2 and 4)."""
