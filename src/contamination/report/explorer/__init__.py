"""Single test sets: every test, every choice of shards and b, read from stores alone.

`scored` finds what was scored and runs every test on it, `outcomes` does so for one store, `page`
writes all of it as one HTML file, which the notebook explore_mmlu shows as well.
"""
