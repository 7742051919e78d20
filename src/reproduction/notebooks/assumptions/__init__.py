"""Detection assumptions (Fu, Tables 3 and 7-15): do scores find members, or do they find domains?

`measure` fine-tunes and scores, `detection` judges the scores within a domain and across domains.
Called by notebook 08 and its stage of the Makefile.
"""
