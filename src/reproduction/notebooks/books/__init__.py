"""Notebook 10: which of several books has a model read (`contamination.membership.books`)?"""
