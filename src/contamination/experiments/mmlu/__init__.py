"""mmlu."""
