"""A seminar on the tests of Oren et al., with tiny models that are trained while the class watches.

`made_up_sets` is the language of the models, with test sets in it and ways to spoil them;
`classroom` trains a contaminated and a clean model and scores; `demonstrations` computes what the
sections show and `figures` draws it; `exercises` has the answers, the usual mistakes and their
hints, by which `checks` judges what a student gives. `notebooks/seminar.ipynb` calls them, and
`docs/seminar-guide.md` is the instructor's guide.
"""
