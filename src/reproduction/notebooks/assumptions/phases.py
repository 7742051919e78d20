"""Phases of notebook 08, and what tells apart its texts."""

# Control: texts that fine-tuning will read, before it does.
PHASES = ("control", "pre-training", "fine-tuning")
KEYS = ["phase", "domain", "member"]  # of a scored text
