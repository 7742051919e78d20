"""Notebook 01: every test on every canary set (Oren, Table 1).

`evaluation` computes the p-values, `tables` lays them out, `figures` draws them. Notebooks,
commands and reports may import it, no other experiment.
"""
