"""pretraining."""
