"""Score the alternatives of records into a store, each record's common beginning once.

Every alternative is tokenised whole, as what a model has read was, and the tokens with which all
alternatives of a record begin are a prefix that is read once. What is stored of an alternative is
its tokens after that. The alternatives of a record are scored in a random order, so that where a
number was computed says nothing about which one was published.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain, takewhile
from pathlib import Path

import numpy as np
from transformers import PreTrainedTokenizerBase

from contamination.errors import InputError
from contamination.scoring.contract import Scorer
from contamination.scoring.cost import Workload
from contamination.scoring.prefix import continuation_logprobs
from contamination.scoring.score import ScoredUnit, fill, order_of_work
from contamination.scoring.store import Store
from contamination.scoring.store_format import Header, Unit
from contamination.testsets.alternatives import AlternativeSet
from contamination.testsets.tokens import tokenize


@dataclass(frozen=True, eq=False)
class Group:
    """One record whose alternatives differ: token ids of the beginning and of what follows it.

    Attributes
    ----------
    record : index in the set. prefix : what all alternatives begin with, less than any of them.
    rests : the distinct continuations, at least one token each. which : of the N alternatives, the
        published one first, the index of its continuation.
    """

    record: int
    prefix: np.ndarray
    rests: tuple[np.ndarray, ...]
    which: tuple[int, ...]


@lru_cache(maxsize=1)  # planned and scored one after the other
def token_groups(
    tokenizer: PreTrainedTokenizerBase, alternatives: AlternativeSet
) -> tuple[Group, ...]:
    """Tokenise the records that have any alternative, in canonical order.

    Raises InputError if an alternative has no token.
    """
    moving = [i for i, count in enumerate(alternatives.distinct) if count > 1]
    rows = [dict.fromkeys(alternatives.texts[i]) for i in moving]
    found = iter(tokenize(tokenizer, list(chain.from_iterable(rows))))
    groups = []
    for record, row in zip(moving, rows, strict=True):
        ids = {text: next(found) for text in row}
        if not all(map(len, ids.values())):
            raise InputError(
                f"{alternatives.name}, record {record + 1}: an alternative has no token; end the "
                "template with a separator"
            )
        columns = zip(*(each[:-1].tolist() for each in ids.values()), strict=False)
        common = sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, columns))
        rests = {each[common:].tobytes(): each[common:] for each in ids.values()}
        numbers = {rest: number for number, rest in enumerate(rests)}
        groups.append(
            Group(
                record,
                next(iter(ids.values()))[:common],
                tuple(rests.values()),
                tuple(numbers[ids[t][common:].tobytes()] for t in alternatives.texts[record]),
            )
        )
    return tuple(groups)


def alternative_workload(groups: Sequence[Group]) -> Workload:
    """Count what scoring them takes: each prefix once, and each distinct continuation.

    A server without a cache reads the prefix again with each of them, in a request for each.
    """
    before = np.array([1 + len(group.prefix) for group in groups], dtype=np.int64)
    rests = [np.array([len(rest) for rest in group.rests], dtype=np.int64) for group in groups]
    scored = sum(int(lengths.sum()) for lengths in rests)
    return Workload(
        sequences=sum(map(len, rests)),
        scored=scored,
        read=int((before - 1).sum()) + scored,
        windows=sum(map(len, rests)),
        attended=int((before * (before + 1) // 2).sum())
        + sum(
            int((lengths * (lengths + 1) // 2 + lengths * prefix).sum())
            for prefix, lengths in zip(before, rests, strict=True)
        ),
    )


def score_alternatives(
    alternatives: AlternativeSet,
    scorer: Scorer,
    directory: Path,
    *,
    model: str,
    seed: int,
    replace: bool = False,
) -> Store:
    """Make sure that `directory` holds the log-probabilities of all alternatives; return the store.

    A row of `Store.alternatives` is a record that has alternatives (`AlternativeSet.distinct` above
    1), in canonical order: one that does not move says nothing, and is not read. As
    `contamination.scoring.score.score`, it resumes what was interrupted, writes the same bytes, and
    shares the work under torchrun. Raises InputError as that does, and for an alternative whose
    part after the common beginning is longer than the context.

    Parameters
    ----------
    model, seed : see `contamination.scoring.store_format.Header`; the seed is that of the order of
        work alone.
    replace : remove a store of something else from `directory` instead of raising an error.
    """
    groups = token_groups(scorer.tokenizer, alternatives)
    header = Header(
        model=model,
        model_revision=scorer.revision,
        dataset=alternatives.name,
        dataset_revision=alternatives.revision,
        template=alternatives.template,
        seed=seed,
        shards=len(groups),
        example_tokens=tuple(len(g.rests[number]) for g in groups for number in g.which),
        kind="alternatives",
    )
    read = partial(_scored, header=header, groups=groups, scorer=scorer)
    return fill(directory, header, header.units(0), scorer, read, replace=replace)


def _scored(
    part: Sequence[Unit], *, header: Header, groups: Sequence[Group], scorer: Scorer
) -> Iterator[ScoredUnit]:
    """Yield (unit, its alternatives in order, log-probabilities to store), as they come."""
    chosen = [groups[record] for record, _ in part]
    orders = [
        order_of_work(header, len(group.rests), *unit)
        for unit, group in zip(part, chosen, strict=True)
    ]
    asked = [
        (group.prefix, [group.rests[number] for number in order])
        for group, order in zip(chosen, orders, strict=True)
    ]
    for i, values in continuation_logprobs(scorer, asked):
        places = np.argsort(orders[i])
        rows = [values[places[number]] for number in chosen[i].which]
        yield part[i], header.examples(part[i]), np.concatenate(rows)
