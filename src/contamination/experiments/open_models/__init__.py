"""open_models."""
