"""A seminar on the tests of Oren et al., with tiny models that are trained while the class watches.

===================  ==============================================================================
module               idea
===================  ==============================================================================
`made_up_text`       the language of the models, and test sets in it
`classroom`          trains a contaminated and a clean model, and scores
`demonstrations`     what the sections show: gains, power, mistakes in scoring
`null_experiments`   what tests do where there is nothing to find
`spoiled`            test sets read wrongly, or in an order that carries information
`drawing`            the figures
`exercises`          each with its right answer (`answers`) and the usual wrong ones (`mistakes`)
`checks`             tells the student which it was
===================  ==============================================================================

The notebook is `notebooks/seminar.ipynb`, the instructor's guide `docs/seminar-guide.md`.
"""
