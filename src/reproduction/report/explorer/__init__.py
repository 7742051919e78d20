"""One page of single test sets: MMLU, published and measured, and all tests of a run's stores.

`scored` finds what was scored and runs every test on it. `mmlu` lays out the tables of
MMLU, which need no store. `page` makes of all this one HTML file, which the notebook
explore_mmlu shows as well. Its scripts: `page.js` has what all share, `fisher.js`
combines p-values, `mmlu.js` and `scored.js` show the two parts, `start.js` unpacks the
data.
"""
