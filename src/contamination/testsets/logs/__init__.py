"""Logs of evaluations, a module for each format.

`logs.read.read_log` tells which one a file is.
"""
