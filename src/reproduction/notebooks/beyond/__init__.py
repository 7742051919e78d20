"""Notebook 05: tests beyond the paper, their power, calibration and failures."""
