"""An audit of unlearning (Shi, section 7): what does a model still know that it was made to forget?

`forgetting` makes the texts that a model forgets by, `probes` asks a model, `audit` compares the
answers of several. Called by notebook 11, its stage `measure` and `contamination unlearned`.
"""
