"""testsets."""
