"""A seminar on the tests of Oren et al., with models that are trained in class.

`made_up_sets` draws test sets, `classroom` trains the models, `tables` and `figures`
show what the sections need, `exercises` judges answers; `docs/seminar-guide.md` is the
instructor's guide.
"""
