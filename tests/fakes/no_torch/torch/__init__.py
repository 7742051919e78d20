"""In the place of torch on PYTHONPATH: shows that a notebook reads stores and runs no model."""

raise ImportError("a notebook has imported torch: its passes over models belong into `measure`")
