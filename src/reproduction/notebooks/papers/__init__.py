"""Notebook 13: every cell that the papers print, and the number of this run."""
