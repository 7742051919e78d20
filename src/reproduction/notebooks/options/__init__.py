"""Notebook 14: the order of options beside the order of records, under sets planted in three ways.

`items` makes multiple-choice records whose options and order a seed has drawn, `planting` puts sets
of them into a text that the clean model reads, `evaluation` runs both axes on a set, `tables` and
`figures` show them. `measure` is its stage of the Makefile.
"""
