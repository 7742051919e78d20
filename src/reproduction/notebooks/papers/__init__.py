"""Notebook 13: every cell that the papers print, beside what this run measured.

`cells` lists the published cells, `measured` reads the tables of the other notebooks, `comparison`
puts them beside each other, `tables` and `figures` show it. Nothing is measured here.
"""
