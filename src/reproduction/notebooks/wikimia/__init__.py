"""WikiMIA (Shi et al., Table 1 and Figure 2): membership scores on texts before and after a date.

`benchmark` loads the texts, public ones and ones whose membership is known; `measure` scores them,
`tables` judges the scores and lays them out, `figures` draws them. Called by notebook 06 and its
stage.
"""
