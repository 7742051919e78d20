"""Scores of texts or of token sequences under a model, as one table.

::

    from contamination.membership.api import membership_scores

    table = membership_scores("gpt2", ["a text", "another text"])
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from contamination.errors import InputError
from contamination.membership import scores
from contamination.membership.neighbours import MOST_NEIGHBOURS, Perturbation, word_neighbours
from contamination.membership.scores import Reading, Signals
from contamination.membership.signals import (
    conditional_log_probs,
    log_prob_signals,
    token_signals,
)
from contamination.randomness import random_stream
from contamination.scoring.contract import Scorer
from contamination.scoring.loading import ModelSource
from contamination.scoring.local import TransformersScorer
from contamination.testsets.tokens import tokenize

Model = Scorer | ModelSource | Path | str

OF_TEXT = ("zlib", "lowercase")  # columns that read the text beside its tokens
_PERCENT = (5, 10, 15, 20, 25, 30, 40, 50)  # of Min-K% and Min-K%++
_RANKS = (5, 15, 25)  # k of Mem k and Entropy k
DEFAULT_COLUMNS = (
    "loss",
    *(f"ppl_{k}" for k in (50, 100, 200)),
    *(f"{family}_{k}" for family in ("min_k", "min_k_pp") for k in _PERCENT),
    *(f"{family}_{k}" for family in ("mem", "mem_off_by_one", "entropy") for k in _RANKS),
    *("entropy", "zlib", "lowercase"),
)


def membership_scores(
    model: Model,
    texts: Sequence[str],
    *,
    reference: Model | None = None,
    reference_per: Literal["byte", "token"] = "byte",
    neighbours: int = 0,
    perturbation: Perturbation = word_neighbours,
    prefix: str | None = None,
    columns: Sequence[str] = DEFAULT_COLUMNS,
    seed: int = 0,
    numbers: Sequence[int] | None = None,
) -> pd.DataFrame:
    """Score texts by how likely they are to be members of a model's training data.

    The table has a row per text in the order given (index `text`, from 0) and a column per score:
    `contamination.membership.scores` says what they mean. Every column has the same direction: the
    larger, the more likely a member. A text without a score (PPL_200 of a short one) has NaN there.
    Texts are read once, and once more in lower case and for each neighbour and prefix.

    Raises InputError if there is no text, or one of fewer than two tokens (named by its number);
    for a reference that does not know a character or, per token, cuts a text into other tokens; for
    a score that does not exist; and for whatever loading and scoring refuse.

    Parameters
    ----------
    model : a scorer, or what `TransformersScorer` takes: hub id, directory, GGUF file. Behind an
        endpoint, scores of the whole distribution (Min-K%++, Mem k, Entropy) are left out.
    texts : of at least two tokens each.
    reference : a second model, with a tokenizer of its own, for `reference_*`.
    reference_per : "byte" compares the two by the log-probability of the whole text by its bytes,
        whatever their tokenizers; "token" by the mean over tokens, which must then be the same.
    neighbours : how many `perturbation` makes of each text, for `neighbour`; 0 leaves it out.
    prefix : text that the model has not seen, for `recall`.
    columns : as in `score_tokens`. A row depends on its own text alone, but for `frequent_k`.
    seed : of the neighbours.
    numbers : of the texts in messages and in the streams of their neighbours, where they are a part
        of more texts; from 0 by default.
    """
    numbers = range(len(texts)) if numbers is None else numbers
    if not texts:
        raise InputError("there is no text to score; give one or more")
    if not 0 <= neighbours <= MOST_NEIGHBOURS:
        raise InputError(
            f"{neighbours} neighbours: give 0, for none, or up to {MOST_NEIGHBOURS:,} of each text"
        )
    if reference_per not in ("byte", "token"):
        raise InputError(f"reference_per is {reference_per!r}: give byte or token")
    scorer = _open(model)
    ids = tokenize(scorer.tokenizer, texts)
    for number, one, text in zip(numbers, ids, texts, strict=True):
        if len(one) < 2:
            raise InputError(
                f"text {number} has {len(one)} token(s), and a score needs 2: leave out "
                f"{text[:40]!r}"
            )
    readings = _read(scorer, ids, columns, texts)
    signals, more = [read.signals for read in readings], []
    if reference is not None:
        other = _open(reference)
        pairs = _beside_reference(scorer, other, texts, signals, numbers, per=reference_per)
        readings = [replace(r, reference=pair) for r, pair in zip(readings, pairs, strict=True)]
        more += ["reference_difference", "reference_ratio"]
    if neighbours:
        made = _of_neighbours(scorer, texts, neighbours, perturbation, seed, numbers)
        readings = [replace(r, neighbours=n) for r, n in zip(readings, made, strict=True)]
        more.append("neighbour")
    if prefix is not None:
        (before,) = tokenize(scorer.tokenizer, [prefix])
        after = conditional_log_probs(scorer, before, ids)
        readings = [replace(r, conditional=c) for r, c in zip(readings, after, strict=True)]
        more.append("recall")
    return _table(readings, [*columns, *more])


def score_tokens(
    scorer: Scorer, sequences: Sequence[np.ndarray], columns: Sequence[str] = DEFAULT_COLUMNS
) -> pd.DataFrame:
    """Score token sequences, of two tokens or more each, in one pass of the model.

    The table has a row per sequence (index `text`, from 0) and a column per score, larger for
    members. `columns` are, in the order wanted, what `scores.score_named` knows, `zlib` (of the
    decoded tokens) and `lowercase` (one more pass). Those that need the whole distribution are left
    out where the scorer gives log-probabilities alone. Raises InputError for a score that does not
    exist, a sequence of fewer than two tokens, and whatever scoring refuses.
    """
    texts = []
    if set(OF_TEXT) & set(columns):
        texts = [scorer.tokenizer.decode(ids) for ids in sequences]
    return _table(_read(scorer, sequences, columns, texts), columns)


def _read(
    scorer: Scorer, sequences: Sequence[np.ndarray], columns: Sequence[str], texts: Sequence[str]
) -> list[Reading]:
    """Read texts once, and in lower case where a column asks for it."""
    for name in columns:
        scores.score_named(name)
        if scores.registered(name)[0].reads not in ("tokens", "distribution", "text", "lower"):
            raise InputError(f"{name}: it has an argument of its own, and is no column to name")
    if not sequences:
        return []
    readings = [Reading(one) for one in token_signals(scorer, sequences)]
    if texts:
        readings = [replace(r, text=text) for r, text in zip(readings, texts, strict=True)]
    if "lowercase" in columns:
        ids = tokenize(scorer.tokenizer, [text.lower() for text in texts])
        lower = log_prob_signals(scorer, ids)
        readings = [replace(r, lower=one) for r, one in zip(readings, lower, strict=True)]
    return readings


def _table(readings: Sequence[Reading], columns: Sequence[str]) -> pd.DataFrame:
    """Compute a column for each score, less those that need what the model does not give."""
    whole = all(read.signals.distribution is not None for read in readings)
    table = {
        name: [*map(scores.score_named(name), readings)]
        for name in columns
        if whole or scores.registered(name)[0].reads != "distribution"
    }
    index = pd.RangeIndex(len(readings), name="text")
    return pd.DataFrame(table, index=index, dtype=np.float64)


def _open(model: Model) -> Scorer:
    if isinstance(model, str | Path | ModelSource):
        return TransformersScorer(model)
    return model


def _beside_reference(
    scorer: Scorer,
    reference: Scorer,
    texts: Sequence[str],
    signals: Sequence[Signals],
    numbers: Sequence[int],
    *,
    per: Literal["byte", "token"],
) -> list[tuple[float, float]]:
    """Log-probability of each text under the model and under the reference, nats per unit.

    Per byte, any two models compare, each with its own tokenizer: both score all bytes of a text.
    Per token, they must cut it alike; a mean over other tokens would compare nothing.
    """
    ours, theirs = (tokenize(side.tokenizer, texts) for side in (scorer, reference))
    unknown = [side.tokenizer.unk_token_id for side in (scorer, reference)]
    for number, *pair in zip(numbers, ours, theirs, strict=True):
        missing = (one in ids for one, ids in zip(unknown, pair, strict=True) if one is not None)
        if per == "token" and not np.array_equal(pair[0], pair[1]):
            raise InputError(
                f"text {number} has other tokens under the reference model, so that means over "
                "tokens do not compare; compare per byte"
            )
        if per == "byte" and any(missing):
            raise InputError(
                f"text {number} has characters that a tokenizer of the two models does not know, "
                "and their bytes would cost nothing; leave it out, or give another reference"
            )
    others = zip(signals, log_prob_signals(reference, theirs), texts, strict=True)
    if per == "token":
        return [(scores.mean_log_prob(a), scores.mean_log_prob(b)) for a, b, _ in others]
    value = scores.log_prob_per_byte
    return [(value(a, text), value(b, text)) for a, b, text in others]


def _of_neighbours(
    scorer: Scorer,
    texts: Sequence[str],
    count: int,
    perturbation: Perturbation,
    seed: int,
    numbers: Sequence[int],
) -> Iterator[list[Signals]]:
    """Yield the signals of the neighbours of each text, which do not depend on other texts."""
    made: list[str] = []
    for number, text in zip(numbers, texts, strict=True):
        try:
            made += perturbation(text, count, rng=random_stream(seed, "neighbours", number))
        except InputError as error:
            raise InputError(f"text {number}: {error}") from None
    ids = tokenize(scorer.tokenizer, made)
    if short := [index for index, one in enumerate(ids) if len(one) < 2]:
        raise InputError(
            f"text {numbers[short[0] // count]} is so short that a neighbour has one token; leave "
            "it out"
        )
    signals = log_prob_signals(scorer, ids)
    for start in range(0, len(signals), count):
        yield signals[start : start + count]


def cut_spans(scorer: Scorer, texts: Sequence[str], length: int) -> list[np.ndarray]:
    """Spans of `length` tokens of the texts, one after the other; a shorter rest is left out.

    So Min-K% reads a test set (Oren, appendix E).
    """
    stream = _joined_tokens(scorer, texts)
    return [stream[i : i + length] for i in range(0, len(stream) - length + 1, length)]


def sample_spans(
    scorer: Scorer, texts: Sequence[str], length: int, count: int, *, rng: np.random.Generator
) -> list[np.ndarray]:
    """Draw spans of `length` tokens that begin anywhere in the texts, no two at one place.

    They are in the order of the texts and may overlap; fewer than `count` where there are no more
    places, none where the texts are shorter than a span.
    """
    stream = _joined_tokens(scorer, texts)
    places = len(stream) - length + 1
    if places < 1:
        return []
    starts = np.sort(rng.choice(places, size=min(count, places), replace=False))
    return [stream[i : i + length] for i in starts]


def _joined_tokens(scorer: Scorer, texts: Sequence[str]) -> np.ndarray:
    """All tokens of the texts in a row; none of no text, such as a file of planted records."""
    return np.concatenate([np.empty(0, dtype=np.int32), *tokenize(scorer.tokenizer, texts)])
