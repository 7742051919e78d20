"""Notebook 01: every test on every canary set (Oren, Table 1)."""
