"""Notebook 12: the released checkpoints (Oren, Figures 2 and 3, Table 5)."""
