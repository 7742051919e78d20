"""Score a test set under a model into its store, doing only what is missing.

Oren, Algorithm 1, up to the statistics: for every shard the log-probability of the
canonical order and of m shuffled ones; or of every example right after every other. Or
of every variant of a record: each is tokenised whole, as what a model has read was, the
tokens with which all begin are read once, and those after them are stored.

`score` chooses what is read, and `contamination.scoring.job` does the work.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from contamination.errors import InputError
from contamination.scoring.contract import Scorer
from contamination.scoring.job import ScoringJob
from contamination.scoring.plan import StorePlan
from contamination.scoring.readers import (
    OrderingReader,
    Reader,
    SuccessorReader,
    VariantReader,
    shuffled_places,
)
from contamination.scoring.store import Store, store_of
from contamination.scoring.store_format import Header
from contamination.scoring.stores.successors import SuccessorStore
from contamination.scoring.token_groups import token_groups
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.tokens import TokenisedSet, tokenize_set

if TYPE_CHECKING:
    from contamination.testsets.variants import VariantSet

__all__ = ["score", "scoring_job", "token_groups"]


def score(
    data: "ExampleSet | TokenisedSet | VariantSet",
    scorer: Scorer,
    directory: Path,
    plan: StorePlan | None = None,
    *,
    model: str,
    seed: int,
    permutations: int = 0,
    enough: Callable[[Store, int], bool] | None = None,
    replace: bool = False,
) -> Store:
    """Make sure that `directory` holds what a test of the set reads, and return the store.

    Under torchrun all processes call this with the same arguments, and each scores its
    share of the missing parts; none returns before all are stored. Raises InputError if
    a shard has fewer than two examples, an example or a variant has no token, what
    variants do not share is longer than the context, the plan keeps tokens of
    orderings, `directory` holds a store of something else, or one that a server filled
    under another name of the model, a log-probability is not finite, or the disk is
    full.

    Parameters
    ----------
    data
        A set (tokenised by this scorer's tokenizer, or not tokenised yet) or variants
        of its records. A row of `Store.variants` is a record with several distinct
        variants (`distinct` above 1), in canonical order; a record that does not move
        says nothing, and is not read.
    scorer
        The model that scores.
    directory
        Directory of the store; it need not exist.
    plan
        Plan of orderings 0..permutations of every shard, or of all ordered pairs of a
        shard; None is the whole set in one shard. Variants have none.
    model, seed
        Same as in `store_format.Header`; for variants, the seed determines only the
        order of work.
    permutations
        Number of shuffled orderings of each shard; other kinds of stores have none.
    enough
        Called after each shard with the store and the index of that shard; scoring ends
        when it returns True. The shards are then scored one after the other; None
        scores all at once. Under torchrun every process calls it, and all must get the
        same answer.
    replace
        Remove a store of something else from `directory` instead of raising an error.
    """
    job = scoring_job(
        data,
        scorer,
        directory,
        plan,
        model=model,
        seed=seed,
        permutations=permutations,
        replace=replace,
    )
    return job.run(enough)


def scoring_job(
    data: "ExampleSet | TokenisedSet | VariantSet",
    scorer: Scorer,
    directory: Path,
    plan: StorePlan | None = None,
    *,
    model: str,
    seed: int,
    permutations: int = 0,
    replace: bool = False,
) -> ScoringJob:
    """Return the job that `score` runs, by its arguments; nothing is read or written yet.

    Raises InputError for a plan that keeps tokens of orderings, and if a variant has no
    token.
    """
    if isinstance(data, ExampleSet):
        data = tokenize_set(scorer.tokenizer, data)
    if isinstance(data, TokenisedSet):
        return _order_job(
            data,
            scorer,
            directory,
            plan or StorePlan("orderings", 1),
            model,
            seed,
            permutations=permutations,
            replace=replace,
        )
    return _variant_job(data, scorer, directory, model, seed, replace=replace)


def _order_job(
    data: TokenisedSet,
    scorer: Scorer,
    directory: Path,
    plan: StorePlan,
    model: str,
    seed: int,
    *,
    permutations: int,
    replace: bool,
) -> ScoringJob:
    """Return the job of scoring orderings or successors.

    Raises InputError for a plan that keeps tokens of orderings.
    """
    if plan.kind == "orderings" and plan.tokens_per_example is not None:
        raise InputError(
            "tokens_per_example is of successors: orderings are scored as a whole",
        )
    header = Header(
        model=model,
        model_revision=scorer.revision,
        dataset=data.test_set.name,
        dataset_revision=data.test_set.revision,
        template=data.test_set.template,
        seed=seed,
        shards=plan.shards,
        example_tokens=data.lengths,
        kind=plan.kind,
        tokens_per_example=plan.tokens_per_example,
    )
    store = store_of(directory, header)
    reader: Reader
    if isinstance(store, SuccessorStore):
        reader = SuccessorReader(store, scorer, data)
    else:
        reader = OrderingReader(store, scorer, data)
    places = shuffled_places(store, permutations)
    return ScoringJob(store, scorer, reader, places, replace=replace)


def _variant_job(
    variants: "VariantSet",
    scorer: Scorer,
    directory: Path,
    model: str,
    seed: int,
    *,
    replace: bool,
) -> ScoringJob:
    """Return the job of scoring variants; raises InputError if one has no token."""
    groups = token_groups(scorer.tokenizer, variants)
    lengths: list[int] = []
    for group in groups:
        lengths += [len(group.rests[number]) for number in group.which]
    header = Header(
        model=model,
        model_revision=scorer.revision,
        dataset=variants.name,
        dataset_revision=variants.revision,
        template=variants.template,
        seed=seed,
        shards=len(groups),
        example_tokens=tuple(lengths),
        kind="alternatives",
    )
    store = store_of(directory, header)
    reader = VariantReader(store, scorer, groups)
    return ScoringJob(store, scorer, reader, store.places(), replace=replace)
