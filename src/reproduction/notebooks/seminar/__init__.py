"""A seminar on the tests of Oren et al., with tiny models that are trained while the class watches.

`classroom` makes up test sets, trains a contaminated and a clean model and scores; `tables`
computes what the sections show and `figures` draws it; `exercises` has the answers, the usual
mistakes and their hints, by which it judges what a student gives. `notebooks/seminar.ipynb` calls
them, and `docs/seminar-guide.md` is the instructor's guide.
"""
