"""One page of single test sets: MMLU, published and measured, and all tests of a run's stores.

`scored` finds what was scored and runs every test on it. `page` reads the tables of MMLU, which
need no store, and makes of all this one HTML file, which the notebook explore_mmlu shows as well.
"""
