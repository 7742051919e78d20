"""Notebook 14: order of options beside order of records, under sets planted in three ways."""
