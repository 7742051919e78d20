"""wikimia."""
