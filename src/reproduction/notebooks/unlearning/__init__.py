"""Notebook 11: what a model knows of a text that it unlearned (Shi, section 7)."""
