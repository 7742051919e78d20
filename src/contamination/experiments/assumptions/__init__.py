"""assumptions."""
