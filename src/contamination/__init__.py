"""Proving test-set contamination of language models from log-probabilities.

The method is that of Oren, Meister, Chatterji, Ladhak and Hashimoto, *Proving Test Set
Contamination in Black-Box Language Models*, ICLR 2024 (arXiv 2310.17623), cited below as Oren.
"""
