"""Notebook 09: a model is trained further on text that holds injected examples (Shi, section 6)."""
