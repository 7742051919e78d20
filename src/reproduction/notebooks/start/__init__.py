"""Notebook 00: the whole argument on stored log-probabilities, without a model.

Commands may call `shipped.ship_stores`, which writes `data/stores/`.
"""
