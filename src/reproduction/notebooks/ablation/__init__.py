"""Notebook 02: numbers of shards and of permutations (Oren, Figure 3)."""
