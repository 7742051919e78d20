"""Controls that need no model: diagnoses of an order, and the zlib baseline."""
