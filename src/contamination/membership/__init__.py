"""Membership inference: was this text in the training data? Scores, and how well they do.

Unlike the tests of `contamination.statistics` none of these comes with a guarantee: a
score says how familiar a text looks, and what it is worth is found out on texts of
which the truth is known. Start with `api`, a table with a column per score; `scores` is
their registry, and `evaluate` says how well they do. Experiments and the command line
call this subpackage; it calls scoring and test sets.
"""
