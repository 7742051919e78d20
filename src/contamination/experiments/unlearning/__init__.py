"""unlearning."""
