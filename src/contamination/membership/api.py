"""Scores of texts or of token sequences under a model, as one table.

::

    from contamination.membership.api import membership_scores

    table = membership_scores("gpt2", ["a text", "another text"])
"""

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa

from contamination.errors import InputError
from contamination.files import replacing, sha256_of
from contamination.membership import scores
from contamination.membership.signals import text_log_probs, token_signals
from contamination.randomness import random_stream
from contamination.scoring.contract import Scorer
from contamination.scoring.loading import ModelSource
from contamination.scoring.local import TransformersScorer
from contamination.scoring.processes import deal, processes
from contamination.scoring.score import cut_into_parts
from contamination.testsets.tokens import tokenize

Model = Scorer | ModelSource | Path | str
Text = str | np.ndarray  # or its tokens

SHARE = 0.1  # of the words that a neighbour changes
ARGUMENTS = ("reference", "neighbours")  # parts that have one of their own
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

    The table has a row per text in the order given (index `text`, from 0) and a column per score:
    `contamination.membership.scores` says what they mean. Every column has the same direction: the
    larger, the more likely a member. A text without a score (PPL_200 of a short one) has NaN there.

    Scores of what cannot be had, or is not asked for, are left out. Raises InputError if there is
    no text, or one of fewer than two tokens (named by its number); for a reference that does not
    know a character or, per token, cuts a text into other tokens; for a score that does not exist;
    and for whatever loading and scoring refuse.

    Parameters
    ----------
    model : a scorer, or what `TransformersScorer` takes: hub id, directory, GGUF file. Behind an
        endpoint there are no scores of the whole distribution (Min-K%++, Mem k, Entropy).
    texts : of at least two tokens each; or their tokens, which are decoded where a score reads
        text.
    reference : a second model, with a tokenizer of its own, for `reference_*`.
    reference_per : "byte" compares the two by the log-probability of the whole text by its bytes,
        whatever their tokenizers; "token" by the mean over tokens, which must then be the same.
    neighbours : how many `word_neighbours` of each text, for `neighbour`; all lie in memory.
    columns : of `contamination.membership.scores.SCORES`; those of an argument come with it.
    seed : of the neighbours.
    numbers : of the texts in messages and in the streams of their neighbours, where they are a part
        of more texts; from 0 by default.
    """
    numbers = range(len(texts)) if numbers is None else numbers
    if not len(texts):
        raise InputError("there is no text to score; give one or more")
    wanted = {name: scores.score_named(name) for name in columns}
    wanted |= {name: score for name, score in scores.SCORES.items() if score.reads in ARGUMENTS}
    scorer = _open(model)
    shown = [one if isinstance(one, str) else scorer.tokenizer.decode(one) for one in texts]
    ids = [one for one in texts if not isinstance(one, str)] or tokenize(scorer.tokenizer, shown)
    for number, one, text in zip(numbers, ids, shown, strict=True):
        if len(one) < 2:
            raise InputError(
                f"text {number} has {len(one)} token(s), and a score needs 2: leave out "
                f"{text[:40]!r}"
            )
    readings = token_signals(scorer, ids)
    parts: dict[str, Iterable[Any]] = {"text": shown}
    if any(score.reads == "lower" for score in wanted.values()):
        lower = tokenize(scorer.tokenizer, [text.lower() for text in shown])
        parts["lower"] = text_log_probs(scorer, lower)
    if reference is not None:
        log_probs = [read.log_probs for read in readings]
        parts["reference"] = _beside_reference(
            scorer, _open(reference), shown, log_probs, numbers, per=reference_per
        )
    if neighbours:  # those of a text do not depend on other texts
        streams = (random_stream(seed, "neighbours", number) for number in numbers)
        pairs = zip(shown, streams, strict=True)
        made = [word_neighbours(text, neighbours, rng=rng) for text, rng in pairs]
        read = iter(text_log_probs(scorer, tokenize(scorer.tokenizer, [*chain(*made)])))
        parts["neighbours"] = [[*islice(read, len(each))] for each in made]
    for part, values in parts.items():
        readings = [replace(r, **{part: v}) for r, v in zip(readings, values, strict=True)]
    table = {
        name: [*map(score.compute, readings)]
        for name, score in wanted.items()
        if getattr(readings[0], score.reads) is not None
    }
    index = pd.RangeIndex(len(readings), name="text")
    return pd.DataFrame(table, index=index, dtype=np.float64)


def stored_scores(
    directory: Path,
    scorer: Scorer,
    texts: Sequence[Text],
    *,
    columns: Sequence[str] = DEFAULT_COLUMNS,
    reference: Scorer | None = None,
    **options: Any,
) -> pd.DataFrame:
    """Return the table of `membership_scores`, kept in `directory`: every text is scored once.

    The texts are cut into parts by their tokens alone, in a random order, and each part is the work
    of one process, so that any number of processes and interruptions give the same numbers. The
    name of a part holds a checksum of all that its numbers depend on: the next run adds the parts
    that are missing and removes those of other texts, another model or other scores.

    Every process calls this with the same arguments and gets the whole table; a scorer that is
    spread over all devices lets one process do all. `options` are those of `membership_scores` that
    are numbers or text; what fails in one process is raised by all. The directory is for nothing
    else.
    """
    options |= {"columns": columns}
    scorers = [scorer, reference] if reference else [scorer]
    written = [one for one in texts if isinstance(one, str)]
    work = [*map(len, tokenize(scorer.tokenizer, written) if written else texts)]
    if not work:
        raise InputError(f"{directory}: there is no text to score; give one or more")
    order = random_stream(0, "parts of texts").permutation(len(work))
    smallest = min(one.batch_tokens for one in scorers)
    cut = cut_into_parts([work[i] for i in order], smallest, batches=1)
    parts = [sorted(int(order[i]) for i in part) for part in cut]
    contents = (one if isinstance(one, str) else repr(one.tolist()) for one in texts)
    key = sha256_of(*(one.revision for one in scorers), repr(sorted(options.items())), *contents)
    name = sha256_of(key, repr(parts))[:16]
    paths = [directory / f"{name}-{number:03d}.parquet" for number in range(len(parts))]
    if processes().is_main_process:
        for other in set(directory.glob("*.parquet")) - set(paths):
            other.unlink()

    def scored(number: int) -> pd.DataFrame:
        with suppress(OSError, pa.ArrowException):  # there is none, or it is damaged
            return pd.read_parquet(paths[number])
        rows = parts[number]
        chosen = [texts[i] for i in rows]
        table = membership_scores(scorer, chosen, numbers=rows, reference=reference, **options)
        with replacing(paths[number]) as temporary:
            table.set_axis(rows).to_parquet(temporary)
        return pd.read_parquet(paths[number])

    spread = any(getattr(one, "spread", False) for one in scorers)
    tables = deal(directory.name, [partial(scored, i) for i in range(len(paths))], alone=spread)
    return pd.concat(tables).sort_index().rename_axis("text")


def _open(model: Model) -> Scorer:
    if isinstance(model, str | Path | ModelSource):
        return TransformersScorer(model)
    return model


def _beside_reference(
    scorer: Scorer,
    reference: Scorer,
    texts: Sequence[str],
    log_probs: Sequence[scores.Array],
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
    found = zip(log_probs, text_log_probs(reference, theirs), texts, strict=True)
    if per == "token":
        return [(scores.mean_log_prob(a), scores.mean_log_prob(b)) for a, b, _ in found]
    value = scores.log_prob_per_byte
    return [(value(a, text), value(b, text)) for a, b, text in found]


def word_neighbours(text: str, count: int, *, rng: np.random.Generator) -> list[str]:
    """Swap or leave out words: a tenth of them, one at least, with a fair coin for each.

    Mattern et al. (2023) compare the loss of a text with that of neighbours which BERT makes; these
    need no second model. A swap is with the next word. Spaces and line ends stay where they are.
    A text of one word, which can neither be swapped nor left out, has none.
    """
    parts = re.split(r"(\s+)", text)
    places = [i for i in range(0, len(parts), 2) if parts[i]]
    changes = min(max(1, round(SHARE * len(places))), len(places) - 1)
    made = []
    for _ in range(count if changes > 0 else 0):
        new = list(parts)
        for k in sorted(rng.choice(len(places) - 1, size=changes, replace=False)):
            here, following = places[k], places[k + 1]
            if rng.random() < 0.5:
                new[here], new[following] = new[following], new[here]
            else:
                new[here] = new[here + 1] = ""
        made.append("".join(new))
    return made


def cut_spans(scorer: Scorer, texts: Sequence[str], length: int) -> list[np.ndarray]:
    """Spans of `length` tokens, one after the other, without the rest (Oren, appendix E)."""
    # A file whose records are all planted leaves no text, and no span.
    stream = np.concatenate([np.empty(0, dtype=np.int32), *tokenize(scorer.tokenizer, texts)])
    return [stream[i : i + length] for i in range(0, len(stream) - length + 1, length)]
