"""The stages that `make` calls: a file per group of stages."""
