"""Scores of texts or of token sequences under a model, as one table.

::

    from contamination.membership.api import membership_scores

    table = membership_scores("gpt2", ["a text", "another text"])
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeGuard

import numpy as np
import pandas as pd

from contamination.errors import InputError
from contamination.membership import scores
from contamination.membership.signals import text_log_probs, token_signals
from contamination.randomness import random_stream
from contamination.scoring.contract import Scorer, require_scorer
from contamination.scoring.loading import ModelSource
from contamination.scoring.local import TransformersScorer
from contamination.testsets.tokens import tokenize

Model = Scorer | ModelSource | Path | str
Text = str | np.ndarray  # or its tokens

SHARE = 0.1  # of the words that a neighbour changes
_FIRST_TOKENS = (50, 100, 200)  # of PPL
_PERCENT = (5, 10, 15, 20, 25, 30, 40, 50)  # of Min-K% and Min-K%++
_RANKS = (5, 15, 25)  # k of Mem k and Entropy k


def _columns(family: str, numbers: Sequence[int]) -> list[str]:
    return [f"{family}_{number}" for number in numbers]


DEFAULT_COLUMNS = (
    "loss",
    *_columns("ppl", _FIRST_TOKENS),
    *_columns("min_k", _PERCENT),
    *_columns("min_k_pp", _PERCENT),
    *_columns("mem", _RANKS),
    *_columns("mem_off_by_one", _RANKS),
    *_columns("entropy", _RANKS),
    "entropy",
    "zlib",
    "lowercase",
)


def membership_scores(
    model: Model,
    texts: Sequence[Text],
    *,
    reference: Model | None = None,
    reference_per: Literal["byte", "token"] = "byte",
    neighbours: int = 0,
    columns: Sequence[str] = DEFAULT_COLUMNS,
    seed: int = 0,
    numbers: Sequence[int] | None = None,
) -> pd.DataFrame:
    """Score texts by how likely they are to be members of a model's training data.

    Parameters
    ----------
    model
        A scorer, or what `TransformersScorer` takes: hub id, directory, GGUF file.
        Behind an endpoint there are no scores of the whole distribution (Min-K%++, Mem
        k, Entropy).
    texts
        Texts of at least two tokens each; or the tokens of all of them, which are
        decoded where a score reads text.
    reference
        A second model, with a tokenizer of its own, for `reference_*`.
    reference_per
        "byte" compares the two by the log-probability of the whole text by its bytes,
        whatever their tokenizers; "token" by the mean over tokens, which must then be
        the same.
    neighbours
        Number of `word_neighbours` of each text, for `neighbour`; all lie in memory.
    columns
        Names from `contamination.membership.scores.SCORES`; the scores that an argument
        enables are added.
    seed
        Seed of the neighbours.
    numbers
        Numbers of the texts in messages and in the streams of their neighbours, where
        they are a part of more texts; from 0 by default.

    Returns
    -------
    A row per text in the order of `texts` (index `text`, from 0) and a column per
    score: `contamination.membership.scores` says what they mean. Every column has the
    same direction: the larger, the more likely a member. A text without a score
    (PPL_200 of a short one) has NaN there, and
    `contamination.membership.evaluate.missing_scores` says why. Scores of what the
    model does not give, or of an argument that is missing, are left out.

    Raises
    ------
    InputError
        If there is no text, one of fewer than two tokens (named by its number), or
        tokens of some texts alone; for a reference that does not know a character or,
        per token, cuts a text into other tokens; for a score that does not exist; and
        for whatever loading and scoring refuse.
    """
    numbers = range(len(texts)) if numbers is None else numbers
    if not len(texts):
        raise InputError("there is no text to score; give one or more")
    definitions = {name: scores.score_named(name) for name in columns}
    for name, score in scores.SCORES.items():
        if score.needs in scores.ARGUMENTS:
            definitions[name] = score
    scorer = _open(model)
    shown, ids = _texts_and_tokens(scorer, texts, numbers)
    needed = {score.needs for score in definitions.values()}
    statistics = token_signals(scorer, ids, ranked="rank" in needed)
    log_probs = [text_statistics.log_probs for text_statistics in statistics]
    statistics = _with_part(statistics, "text", shown)
    if "lower" in needed:
        lower = tokenize(scorer.tokenizer, [text.lower() for text in shown])
        statistics = _with_part(statistics, "lower", text_log_probs(scorer, lower))
    if reference is not None:
        pairs = _compare_with_reference(
            scorer, _open(reference), shown, ids, log_probs, numbers, per=reference_per
        )
        statistics = _with_part(statistics, "reference", pairs)
    if neighbours:
        changed = _neighbour_log_probs(scorer, shown, neighbours, seed, numbers)
        statistics = _with_part(statistics, "neighbours", changed)
    return _table(definitions, statistics)


def _with_part(
    statistics: Sequence[scores.TokenStatistics], part: str, values: Sequence[Any]
) -> list[scores.TokenStatistics]:
    """Return the statistics of texts with a value for each in the field `part`."""
    filled = []
    for of_text, value in zip(statistics, values, strict=True):
        field = {part: value}
        filled.append(replace(of_text, **field))  # plain: any field
    return filled


def _table(
    definitions: Mapping[str, scores.Score], statistics: Sequence[scores.TokenStatistics]
) -> pd.DataFrame:
    """Return a column for each score whose part of the statistics is there, a row for each text."""
    table = {}
    for name, score in definitions.items():
        if getattr(statistics[0], score.needs) is not None:
            table[name] = list(map(score.compute, statistics))
    index = pd.RangeIndex(len(statistics), name="text")
    return pd.DataFrame(table, index=index, dtype=np.float64)


def are_tokens(texts: Sequence[Text]) -> TypeGuard[Sequence[np.ndarray]]:
    """Return whether the texts are given as tokens; raise InputError if only some are."""
    number = sum(not isinstance(text, str) for text in texts)
    if number not in (0, len(texts)):
        raise InputError(
            f"{number} of {len(texts)} texts are given as tokens, the others as text: give "
            "all of them alike"
        )
    return number > 0


def _texts_and_tokens(
    scorer: Scorer, texts: Sequence[Text], numbers: Sequence[int]
) -> tuple[list[str], list[np.ndarray]]:
    """Return every text as text and as tokens; tokens of a caller stay as they are."""
    if are_tokens(texts):
        ids = list(texts)
        shown = [scorer.tokenizer.decode(tokens) for tokens in ids]
    else:
        shown = [text for text in texts if isinstance(text, str)]
        ids = tokenize(scorer.tokenizer, shown)
    for number, tokens, text in zip(numbers, ids, shown, strict=True):
        if len(tokens) < 2:
            raise InputError(
                f"text {number} has {len(tokens)} token(s), and a score needs 2: leave "
                f"out {text[:40]!r}"
            )
    return shown, ids


def _neighbour_log_probs(
    scorer: Scorer, texts: Sequence[str], count: int, seed: int, numbers: Sequence[int]
) -> list[list[np.ndarray]]:
    """Score the neighbours of each text; they do not depend on other texts."""
    neighbours: list[str] = []
    counts: list[int] = []
    for text, number in zip(texts, numbers, strict=True):
        rng = random_stream(seed, "neighbours", number)
        of_text = word_neighbours(text, count, rng=rng)
        neighbours += of_text
        counts.append(len(of_text))
    ids = tokenize(scorer.tokenizer, neighbours)
    log_probs = iter(text_log_probs(scorer, ids))
    return [list(islice(log_probs, of_text)) for of_text in counts]


def _open(model: Model) -> Scorer:
    if isinstance(model, str | Path | ModelSource):
        return TransformersScorer(model)
    require_scorer(model)
    return model


def _compare_with_reference(
    scorer: Scorer,
    reference: Scorer,
    texts: Sequence[str],
    ids: Sequence[np.ndarray],
    log_probs: Sequence[scores.Array],
    numbers: Sequence[int],
    *,
    per: Literal["byte", "token"],
) -> list[tuple[float, float]]:
    """Return the log-probability of each text under both models, in nats per unit.

    Per byte, any two models compare, each with its own tokenizer: both score all bytes
    of a text. Per token, they must cut it alike; a mean over other tokens would compare
    nothing. `ids` are the tokens that `scorer` has read, with their `log_probs`.
    """
    theirs = tokenize(reference.tokenizer, texts)
    for number, our_ids, their_ids in zip(numbers, ids, theirs, strict=True):
        if per == "token" and not np.array_equal(our_ids, their_ids):
            raise InputError(
                f"text {number} has other tokens under the reference model, so that "
                "means over tokens do not compare; compare per byte"
            )
        unknown = _has_unknown(scorer, our_ids) or _has_unknown(reference, their_ids)
        if per == "byte" and unknown:
            raise InputError(
                f"text {number} has characters that a tokenizer of the two models does "
                "not know, and their bytes would cost nothing; leave it out, or give "
                "another reference"
            )
    pairs: list[tuple[float, float]] = []
    reference_log_probs = text_log_probs(reference, theirs)
    for text, *both in zip(texts, log_probs, reference_log_probs, strict=True):
        if per == "token":
            mine, other = map(scores.mean_log_prob, both)
        else:
            mine, other = (scores.log_prob_per_byte(nats, text) for nats in both)
        pairs.append((mine, other))
    return pairs


def _has_unknown(scorer: Scorer, ids: np.ndarray) -> bool:
    """Return whether some tokens stand for characters that the tokenizer does not know."""
    unknown = scorer.tokenizer.unk_token_id
    return unknown is not None and unknown in ids


def word_neighbours(text: str, count: int, *, rng: np.random.Generator) -> list[str]:
    """Swap or leave out words: a tenth of them, one at least, with a fair coin for each.

    Mattern et al. (2023) compare the loss of a text with that of neighbours which BERT
    makes; these need no second model. A swap is with the next word. Spaces and line
    ends stay where they are. A text of one word, which can neither be swapped nor left
    out, has none.

    Parameters
    ----------
    text
        A text of any number of words.
    count
        Number of neighbours.
    rng
        Draws which words are changed, and how.

    Examples
    --------
    >>> word_neighbours("a red stone", 1, rng=np.random.default_rng(0))
    ['a stone red']
    """
    parts = re.split(r"(\s+)", text)
    places = [i for i in range(0, len(parts), 2) if parts[i]]
    changes = min(max(1, round(SHARE * len(places))), len(places) - 1)
    if changes <= 0:
        return []
    neighbours: list[str] = []
    for _ in range(count):
        new = list(parts)
        for k in sorted(rng.choice(len(places) - 1, size=changes, replace=False)):
            here = places[k]
            following = places[k + 1]
            if rng.random() < 0.5:
                new[here], new[following] = new[following], new[here]
            else:
                new[here] = new[here + 1] = ""
        neighbours.append("".join(new))
    return neighbours


def cut_spans(scorer: Scorer, texts: Sequence[str], length: int) -> list[np.ndarray]:
    """Cut texts into spans of tokens, without the rest (Oren, appendix E).

    Parameters
    ----------
    scorer
        A model, whose tokenizer cuts.
    texts
        Texts, which are joined; there may be none.
    length
        Number of tokens of a span.

    Returns
    -------
    list of arrays
        int32 (length,) each.
    """
    # A file whose records are all planted leaves no text, and no span.
    no_tokens = np.empty(0, dtype=np.int32)
    stream = np.concatenate([no_tokens, *tokenize(scorer.tokenizer, texts)])
    starts = range(0, len(stream) - length + 1, length)
    return [stream[start : start + length] for start in starts]
