"""This project's engine, with its defaults."""

from collections.abc import Sequence

from measure import arguments, report

from contamination.scoring.loading import ModelSource
from contamination.scoring.local import TransformersScorer
from contamination.testsets.tokens import tokenize

directory, dtype, _, strings = arguments()
scorer = TransformersScorer(ModelSource(str(directory), precision=dtype))


def score(texts: Sequence[str]) -> int:
    """Log-likelihood of every text; returns the number of tokens."""
    ids = tokenize(scorer.tokenizer, texts)
    return sum(len(values) for _, values in scorer.token_logprobs(ids))


report(score, strings)
