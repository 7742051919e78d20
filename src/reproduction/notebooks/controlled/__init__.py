"""Controlled contamination (Shi, section 6): a trained model reads injected examples.

`contaminants` chooses the texts, `runs` says what varies, `training` trains the models and scores
the texts, `aucs` measures how well scores tell members from non-members, `tables` and `figures`
show it in notebook 09. `measure` is its stage of the Makefile.
"""
