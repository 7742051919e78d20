"""Notebook 14: order of options and order of records, for sets planted in three ways."""
