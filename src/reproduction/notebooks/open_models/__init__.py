"""Notebook 03: many models on many test sets (Oren, Table 2)."""
