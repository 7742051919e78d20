"""Notebook 11: what a model knows of a text that it was made to forget (Shi, section 7)."""
