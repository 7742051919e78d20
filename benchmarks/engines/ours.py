"""This project's engine, with its defaults."""

from collections.abc import Sequence

from measure import arguments, report

from contamination.scoring.loading import ModelSource
from contamination.scoring.local import TransformersScorer
from contamination.testsets.tokens import tokenize

directory, dtype, _, strings = arguments()
scorer = TransformersScorer(ModelSource(str(directory), precision=dtype))


def score(texts: Sequence[str]) -> list[tuple[int, float]]:
    """Return the number of tokens and the log-likelihood of every text."""
    found = dict(scorer.token_logprobs(tokenize(scorer.tokenizer, texts)))
    return [(len(found[i]), float(found[i].sum())) for i in range(len(texts))]


report(score, strings)
