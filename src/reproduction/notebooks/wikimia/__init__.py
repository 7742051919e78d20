"""WikiMIA (Shi et al., Table 1 and Figure 2): membership scores on texts before and after a date.

`benchmark` loads the texts, public ones and ones whose membership is known; `measure` scores them,
`evaluation` judges the scores; `dated_pages` builds a set like it from pages of one's own. Called
by notebook 06, its stage of the Makefile and `contamination wikimia`.
"""
