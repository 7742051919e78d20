"""A seminar on the tests of Oren et al., with tiny models that are trained while the class watches.

`classroom` makes up test sets, trains a contaminated and a clean model, and computes and draws what
the sections show; `exercises` judges what a student answers. `notebooks/seminar.ipynb` calls them,
and `docs/seminar-guide.md` is the instructor's guide.
"""
