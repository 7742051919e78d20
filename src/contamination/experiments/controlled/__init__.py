"""controlled."""
