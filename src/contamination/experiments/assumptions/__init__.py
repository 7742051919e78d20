"""Detection assumptions (Fu, Tables 3 and 7-15): do scores find members, or do they find domains?

`detection` scores texts and judges the scores within a domain and across domains. Called by
notebook 08.
"""
