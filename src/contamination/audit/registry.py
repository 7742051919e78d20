"""The registry of tests.

A test turns every shard into scores, the canonical ordering first (`shard_scores`), and
the scores of all shards into a p-value. All but `sharded_t` and `permutation` share the
exact test on shards, since any scores that treat the orderings alike keep it exact.
`min_p` tries several such scores of the same orderings, and gives the p-value of the
best of them under their joint law.

Tests of variants read all arrangements of each item's options instead, and a shard is
an item.

The help of the command line, the explorer, the studies and the legends of the figures
are made from `TESTS`. The help of the command reads it, so functions import numpy when
they compute.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from contamination import statistics
from contamination.audit.shard_scores import (
    COUNTED,
    SAMPLED_ORDERINGS,
    TOKEN_SCORES,
    StoreScores,
    min_p_orderings,
    min_p_successors,
    ordering_log_probs,
    store_stream,
    successors,
)
from contamination.scoring.plan import SUCCESSOR_TOKENS, StoreNeed

if TYPE_CHECKING:
    import numpy as np

    from contamination.scoring.store import Store
    from contamination.statistics import TestResult

MIN_P_DRAWS = 20_000  # from the joint law of several statistics

ToResult = Callable[["np.ndarray", "np.random.Generator"], "TestResult"]


# --- from the scores of all shards to a result ----------------------------------------


def _exact(scores: "np.ndarray", rng: "np.random.Generator") -> "TestResult":
    return statistics.sharded_exact_test(scores)


def _exact_on_options(scores: "np.ndarray", rng: "np.random.Generator") -> "TestResult":
    """Weigh items alike: one whose arrangements differ much for a model tells more.

    The weights were chosen in docs/power.md.
    """
    return statistics.sharded_exact_test(scores, weights="equal")


def _permutation(scores: "np.ndarray", rng: "np.random.Generator") -> "TestResult":
    return statistics.permutation_test(scores[0])


def _sharded_t(scores: "np.ndarray", rng: "np.random.Generator") -> "TestResult":
    return statistics.sharded_t_test(scores)


def _best_successors(scores: "np.ndarray", rng: "np.random.Generator") -> "TestResult":
    names = [variant_name("successor", b) for b in COUNTED]
    return statistics.westfall_young_test(
        scores,
        names=names,
        resamples=MIN_P_DRAWS,
        rng=rng,
    )


# --- the tests ------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Test(StoreNeed):
    """A test: the store that it needs, its scores, its p-value, and how it is shown.

    Attributes
    ----------
    name
        Name of the test on the command line and in tables.
    label, colour, marker, line
        Appearance of the test in figures and in the explorer.
    to_result
        Function that returns the result from the scores of all shards and a random
        stream.
    b
        The choice among `TOKEN_SCORES`, or of `COUNTED` for pairs, that was made in
        advance.
    from_store
        Scores a shard, (n+1,), or (q, n+1) by q statistics on the same orderings, for
        tests that take no entry of `TOKEN_SCORES`.
    """

    __test__ = False  # not a pytest class

    name: str
    label: str
    colour: str
    marker: str
    help: str
    to_result: ToResult = _exact
    b: str | None = None
    from_store: StoreScores | None = None
    line: str = "-"

    @property
    def stops(self) -> bool:
        """Whether shards can be judged one after the other, as in the exact test."""
        return self.to_result is _exact

    @property
    def is_t_test(self) -> bool:
        """Whether the test is the sharded t-test."""
        return self.to_result is _sharded_t

    @property
    def needs_sums_only(self) -> bool:
        """Whether the test needs no more of an ordering than its log-probability."""
        return TOKEN_SCORES.get((self.name, self.b)) is ordering_log_probs

    def shard_scores(
        self,
        store: "Store",
        shard: int,
        permutations: int,
    ) -> "np.ndarray":
        """Return the scores of one shard, (n+1,) or (q, n+1), canonical first.

        Of the shuffled orderings that are stored, `permutations` count.
        """
        if self.from_store is not None:
            return self.from_store(store, shard, permutations)
        token_scores = TOKEN_SCORES[self.name, self.b]
        return token_scores(store.shard_tokens(shard, permutations))

    def scores(self, store: "Store", permutations: int) -> "np.ndarray":
        """Return the scores of all shards, (r, n+1) or (q, r, n+1), canonical first.

        Of variants all count that were scored.
        """
        import numpy as np

        if self.kind == "alternatives":
            return store.variants()
        if self.needs_sums_only:
            # part by part, whatever shard a part belongs to
            return store.log_probs(permutations)
        of_shards = []
        with store.shards_in_turn():
            for shard in range(store.header.shards):
                of_shards.append(self.shard_scores(store, shard, permutations))
        return np.stack(of_shards, axis=-2)

    def orderings(self, shards: int, permutations: int) -> int:
        """Return how many shuffled orderings of each shard the result will count.

        `permutations` are the whole orderings that are scored; pairs of examples give
        any ordering.
        """
        if self.kind != "successors":
            return permutations
        if self.from_store is min_p_successors:
            return min_p_orderings(shards)
        return SAMPLED_ORDERINGS

    def result(self, store: "Store", permutations: int) -> "TestResult":
        """Return the result of the test on a store that holds what the test needs."""
        return self.result_from_scores(store, self.scores(store, permutations))

    def result_from_scores(self, store: "Store", scores: "np.ndarray") -> "TestResult":
        """Return the result of the test for the `scores` of its store."""
        result = self.to_result(scores, store_stream(store, "joint law"))
        return replace(result, test=self.name)


# --- the registry ---------------------------------------------------------------------

# Okabe and Ito's colour-blind safe palette; a marker each, so that print in grey still
# tells them.
_REGISTRY = (
    Test(
        name="permutation",
        label="Permutation",
        colour="#E69F00",
        marker="s",
        help="the whole set in one sequence",
        to_result=_permutation,
        shard_size=None,
    ),
    Test(
        name="sharded_t",
        label="Sharded t",
        colour="#0072B2",
        marker="o",
        help="the paper's own t-test over shards",
        to_result=_sharded_t,
        fewest_shards=2,
    ),
    Test(
        name="sharded_exact",
        label="Sharded exact",
        colour="#D55E00",
        marker="D",
        help="the exact test on shards",
    ),
    Test(
        name="token_standardised",
        label="Token-standardised",
        colour="#56B4E9",
        marker="P",
        help="every token divided by its spread",
    ),
    Test(
        name="boundary",
        label="Boundary",
        colour="#009E73",
        marker="X",
        line="-.",  # its green and the pink of successor look alike to some readers
        help="the first 16 tokens of every example",
        b="16",
    ),
    Test(
        name="successor",
        label="Successor",
        colour="#CC79A7",
        marker="v",
        help=f"the first {SUCCESSOR_TOKENS} tokens of one example after another",
        b=str(SUCCESSOR_TOKENS),
        from_store=successors,
        kind="successors",
        tokens_per_example=SUCCESSOR_TOKENS,
        shard_size=10,
    ),
    Test(
        name="min_p",
        label="Best of successors",
        colour="#000000",
        marker="*",
        help=f"the best of successor with {', '.join(COUNTED)} tokens, corrected for the choice",
        to_result=_best_successors,
        from_store=min_p_successors,
        kind="successors",
        # whole examples, for the statistic that counts all tokens
        tokens_per_example=None,
        shard_size=10,
    ),
    Test(
        name="options",
        label="Order of options",
        colour="#882255",
        marker="h",
        help="the published order of the options of every item",
        kind="alternatives",
        to_result=_exact_on_options,
        shard_size=None,
    ),
)
TESTS = {test.name: test for test in _REGISTRY}
DEFAULT_TESTS = ("successor",)  # chosen and confirmed in docs/power.md
OPTION_TEST = "options"  # of the other axis
ITEM_TESTS = (OPTION_TEST, "arrangement_quiz")  # whose shards are items
COMPARED = ("sharded_t", "sharded_exact", "token_standardised", "boundary", "successor")
"""Tests that the study of power and the explorer compare, by choices of b."""


def variant_name(name: str, b: str | None) -> str:
    """Return the name in tables of a test with its choice of b.

    >>> variant_name("boundary", "16")
    'boundary_16'
    >>> variant_name("sharded_t", None)
    'sharded_t'
    """
    if b is None:
        return name
    return f"{name}_{b}"


def described_tests() -> dict[str, dict[str, str]]:
    """Return the help of each test by its name, for each kind of test, tests on pairs first."""
    headings = {
        "successors": "pairs of examples",
        "orderings": "whole orderings",
        "alternatives": "orders of options",
    }
    described: dict[str, dict[str, str]] = {heading: {} for heading in headings.values()}
    for test in TESTS.values():
        default = " (default)" if test.name in DEFAULT_TESTS else ""
        described[headings[test.kind]][f"{test.name}{default}"] = test.help
    return described
