"""Notebook 14: the order of options beside the order of records, under sets planted in three ways.

`planting` makes the items and puts sets of them into a text, `tables` has both axes of a set.
"""
