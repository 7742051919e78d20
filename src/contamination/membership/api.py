"""All membership scores of a list of texts under a model, as one table.

from contamination.membership.api import membership_scores

table = membership_scores("gpt2", ["a text", "another text"])
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from contamination.errors import InputError
from contamination.membership import scores
from contamination.membership.columns import DEFAULT_COLUMNS, Columns
from contamination.membership.conditional import conditional_log_probs
from contamination.membership.neighbours import Perturbation, word_neighbours
from contamination.membership.reference import against_reference
from contamination.membership.signals import Signals, log_prob_signals, token_signals
from contamination.scoring.contract import Scorer
from contamination.scoring.loading import ModelSource
from contamination.scoring.local import TransformersScorer
from contamination.testsets.tokens import tokenize

Model = Scorer | ModelSource | Path | str


def membership_scores(
    model: Model,
    texts: Sequence[str],
    *,
    reference: Model | None = None,
    reference_per: Literal["byte", "token"] = "byte",
    neighbours: int = 0,
    perturbation: Perturbation = word_neighbours,
    prefix: str | None = None,
    columns: Columns = DEFAULT_COLUMNS,
    seed: int = 0,
) -> pd.DataFrame:
    """Score texts by how likely they are to be members of a model's training data.

    Every column has the same direction: the larger, the more likely a member. A text without a
    score (PPL_200 of a short one) has NaN there. Texts are read once, and once more in lower case
    and for each neighbour and prefix; see `contamination.membership.scores` for what columns mean.

    Parameters
    ----------
    model : a scorer, or what `TransformersScorer` takes: hub id, directory, GGUF file. Behind an
        endpoint, scores of the whole distribution (Min-K%++, Mem k, Entropy) are left out.
    texts : of at least two tokens each.
    reference : a second model, with a tokenizer of its own, for `reference_*`.
    reference_per : "byte" compares the two by the log-probability of the whole text by its bytes,
        whatever their tokenizers; "token" by the mean over tokens, which must then be the same.
    neighbours : of each text, for `neighbour`; 0 leaves it out.
    perturbation : makes them.
    prefix : text that the model has not seen, for `recall`.
    columns : which k the scores have.
    seed : of the neighbours.

    Returns
    -------
    DataFrame
        A row per text in the order given (index `text`, from 0), a column per score.

    Raises
    ------
    InputError
        No text; one of fewer than two tokens, told by its number; a reference that does not know a
        character, or, per token, one with other tokens; what loading and scoring complain of.
    """
    if not texts:
        raise InputError("there is no text to score; give one or more")
    if neighbours < 0:
        raise InputError(f"{neighbours} neighbours: give 0, for none, or more")
    if reference_per not in ("byte", "token"):
        raise InputError(f"reference_per is {reference_per!r}: give byte or token")
    scorer = _open(model)
    ids = tokenize(scorer.tokenizer, texts)
    for number, one in enumerate(ids):
        if len(one) < 2:
            raise InputError(
                f"text {number} has {len(one)} token(s), and a score needs 2: leave out "
                f"{texts[number][:40]!r}"
            )
    signals = token_signals(scorer, ids)
    wanted = columns.of_log_probs()
    if signals[0].distribution is not None:
        wanted |= columns.of_distribution()
    table = {name: [score(one) for one in signals] for name, score in wanted.items()}
    table["zlib"] = [scores.zlib(*pair) for pair in zip(signals, texts, strict=True)]
    lower = log_prob_signals(scorer, tokenize(scorer.tokenizer, [text.lower() for text in texts]))
    table["lowercase"] = [scores.lowercase(*pair) for pair in zip(signals, lower, strict=True)]
    if reference is not None:
        pairs = against_reference(scorer, _open(reference), texts, signals, per=reference_per)
        table["reference_difference"] = [scores.reference_difference(*pair) for pair in pairs]
        table["reference_ratio"] = [scores.reference_ratio(*pair) for pair in pairs]
    if neighbours:
        around = _around(scorer, texts, neighbours, perturbation, seed)
        table["neighbour"] = [scores.neighbour(*pair) for pair in zip(signals, around, strict=True)]
    if prefix is not None:
        (before,) = tokenize(scorer.tokenizer, [prefix])
        after = conditional_log_probs(scorer, before, ids)
        table["recall"] = [scores.recall(*pair) for pair in zip(signals, after, strict=True)]
    return pd.DataFrame(table, index=pd.RangeIndex(len(texts), name="text"))


def _open(model: Model) -> Scorer:
    if isinstance(model, str | Path | ModelSource):
        return TransformersScorer(model)
    return model


def _around(
    scorer: Scorer, texts: Sequence[str], count: int, perturbation: Perturbation, seed: int
) -> Iterator[list[Signals]]:
    """Yield the signals of the neighbours of each text, which do not depend on other texts."""
    made: list[str] = []
    for number, text in enumerate(texts):
        try:
            made += perturbation(text, count, rng=np.random.default_rng([seed, number]))
        except InputError as error:
            raise InputError(f"text {number}: {error}") from None
    ids = tokenize(scorer.tokenizer, made)
    if short := [index for index, one in enumerate(ids) if len(one) < 2]:
        raise InputError(
            f"text {short[0] // count} is so short that a neighbour has one token; leave it out"
        )
    signals = log_prob_signals(scorer, ids)
    for start in range(0, len(signals), count):
        yield signals[start : start + count]
