"""Notebook 06: scores of texts before and after a date (Shi, Table 1, Figure 2)."""
