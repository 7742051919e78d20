"""Notebook 09: a model reads on in text with injected examples (Shi, section 6)."""
