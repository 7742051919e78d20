"""The stages that `make` calls, `python -m reproduction STAGE`: a file per group of stages."""
