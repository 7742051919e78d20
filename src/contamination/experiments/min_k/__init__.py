"""min_k."""
