"""Notebook 10: which of several books has a model read (Shi, section 5)?

The audit itself is `contamination.membership.books`.
"""
