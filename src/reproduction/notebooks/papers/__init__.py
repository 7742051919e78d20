"""Notebook 13: every cell that the papers print, beside what this run measured.

`measure` lists the published cells, reads the tables of the other notebooks and puts them beside
each other; `tables` and `figures` show it. No model is asked.
"""
