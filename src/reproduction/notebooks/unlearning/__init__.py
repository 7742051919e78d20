"""Notebook 11: what a model knows after unlearning (`contamination.membership.unlearning`)."""
