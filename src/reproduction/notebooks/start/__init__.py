"""Notebook 00: the whole argument on stored log-probabilities, without a model."""
