"""One page of single test sets: MMLU, published and measured, and all tests of a run's stores.

`mmlu` reads the tables, which need no store; `scored` finds what was scored and runs every test on
it, `outcomes` does so for one store. `page` makes of all this one HTML file, which the notebook
explore_mmlu shows as well.
"""
