"""Notebook 07: Min-K% and the provable tests on planted sets (Oren, Table 5)."""
