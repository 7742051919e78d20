"""Notebook 13: every cell that the papers print, beside what this run measured."""
