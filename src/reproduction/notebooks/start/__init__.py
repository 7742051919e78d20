"""Notebook 00: the whole argument on stored log-probabilities, without a model.

`shipped` writes and opens `data/stores/`. Commands may call `shipped.ship_stores`.
"""
