"""Notebook 05: tests beyond the paper, their power per token, calibration and failures."""
