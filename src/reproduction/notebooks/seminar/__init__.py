"""A seminar on the tests of Oren et al., with tiny models that are trained while the class watches.

`classroom` makes test sets and models and shows what the sections need, `exercises` judges answers;
`docs/seminar-guide.md` is the instructor's guide.
"""
