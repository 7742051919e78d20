"""Detection assumptions (Fu, Tables 3 and 7-15): do scores find members, or do they find domains?

`measure` loads texts by domain, fine-tunes and scores; `tables` judges the scores within a domain
and across domains; `figures` draws them. Called by notebook 08 and its stage.
"""
