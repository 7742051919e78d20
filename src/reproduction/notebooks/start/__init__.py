"""Notebook 00: the whole argument on stored log-probabilities, without a model.

`shipped` writes and opens `data/stores/`, `evaluation` computes what the notebook shows of it, and
of MMLU, `figures` draws it. Commands may call `shipped.ship_stores`, no other experiment may.
"""
