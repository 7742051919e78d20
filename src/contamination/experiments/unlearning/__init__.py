"""An audit of unlearning (Shi, section 7): what does a model still know that it was made to forget?

`audit` compares the scores of the model before and after, and asks it; `forgetting` makes the texts
that a model forgets by. Called by notebook 11 and `contamination unlearned`.
"""
