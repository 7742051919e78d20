"""Notebook 12: the checkpoints that Oren et al. released (Tables 1 and 5, Figures 2 and 3)."""
