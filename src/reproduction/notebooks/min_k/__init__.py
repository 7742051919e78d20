"""Min-K% beside the provable tests on planted sets (Oren, Table 5).

`measure` scores the spans, `baseline` tunes thresholds, `tables` and `figures` show it in notebook
07.
"""
