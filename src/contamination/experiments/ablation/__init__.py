"""ablation."""
