"""Notebook 05: tests beyond the paper, their power per token, calibration and failures.

`power` ranks statistics by what they find for the tokens they read, `calibration` counts rejections
under the null hypothesis, `failures` tries orders of records that mean something, `figures` draws.
Notebooks and benchmarks may import it, no other experiment.
"""
