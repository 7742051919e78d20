"""Notebook 10: which of several books a model has read (Shi, section 5)."""
