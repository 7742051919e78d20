"""Min-K% beside the provable tests on planted sets (Oren, Table 5).

`baseline` scores the spans and tunes thresholds, `tables` and `figures` show it in notebook 07.
"""
