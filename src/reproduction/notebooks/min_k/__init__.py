"""Notebook 07: Min-K% beside the provable tests on planted sets (Oren, Table 5)."""
