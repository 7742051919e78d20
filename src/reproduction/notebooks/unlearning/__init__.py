"""Notebook 11: what a model still knows of a text that it was made to forget (Shi, section 7)."""
