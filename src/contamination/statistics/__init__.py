"""Tests of contamination on log-probabilities: pure functions of arrays.

Orderings are on the last axis, the canonical one first; larger scores are more evidence.

================================  ===========================  ===================================
function                          input                        guarantee
================================  ===========================  ===================================
`permutation_test`                (m+1,) whole set             exact; p >= 1/(m+1)
`sharded_t_test`                  (r, m+1) shards              asymptotic in r; no floor
`sharded_exact_test`              (r, m+1) shards              exact; p >= (m+1)^-r
`pooled_exact_test`               sets of (r, m+1) shards      exact; one p of all sets
`sharded_exact_monte_carlo`       (r, m+1) shards              exact; p >= 1/(resamples+1)
`westfall_young_test`             (q, r, m+1) statistics       exact; tilted Monte Carlo
`anytime_test`, `EProcess`        (r, m+1), shard by shard     exact at every stopping time
`fisher`                          (n,) p-values                exact if independent
`cauchy`                          (n,) p-values                asymptotic as p -> 0, dependence
`harmonic_mean`                   (n,) p-values                any dependence
`adjust`                          (n,) p-values                Holm, BH or BY over an audit
`ecdf`, `dkw_band`                (n,) p-values                band valid for every n
`plan`                            (r, m+1) pilot shards        an estimate, with its interval
================================  ===========================  ===================================

Scores of the orderings of one shard, to be stacked to (r, m+1): `token_standardised_scores` and
`boundary_scores` from its tokens, `sampled_successor_scores` from its successor matrix.

`called_canonical` and `null_scores` make null experiments of scores at hand, and
`sharded_exact_p_values` tests a thousand of them at once. `fewer_permutations` is what fewer
shuffled orderings would have given.

`contributions` and `shard_z_scores` show what each shard adds to the statistic of the exact test on
shards. Any room may import from here; nothing here imports from another room but `errors`.
"""

# ruff: noqa: F403, F405
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from contamination.statistics.anytime import *
    from contamination.statistics.exchangeability import *
    from contamination.statistics.joint import *
    from contamination.statistics.multiple_testing import *
    from contamination.statistics.permutation import *
    from contamination.statistics.planning import *
    from contamination.statistics.resampling import *
    from contamination.statistics.results import *
    from contamination.statistics.sharded_exact import *
    from contamination.statistics.sharded_t import *
    from contamination.statistics.successor import *
    from contamination.statistics.token_scores import *


__all__ = [
    "AdjustedResult",
    "AnytimeResult",
    "CombinedResult",
    "Design",
    "EProcess",
    "MonteCarloResult",
    "PowerPlan",
    "ShardedExactResult",
    "ShardedTResult",
    "TestResult",
    "Weights",
    "WestfallYoungResult",
    "adjust",
    "anytime_test",
    "boundary_scores",
    "called_canonical",
    "cauchy",
    "centred_successors",
    "centred_tokens",
    "contributions",
    "dkw_band",
    "ecdf",
    "fewer_permutations",
    "fisher",
    "harmonic_mean",
    "null_scores",
    "permutation_test",
    "plan",
    "pooled_exact_test",
    "random_orderings",
    "sampled_successor_scores",
    "shard_size_for_budget",
    "shard_z_scores",
    "sharded_exact_monte_carlo",
    "sharded_exact_p_values",
    "sharded_exact_test",
    "sharded_t_test",
    "successor_cost",
    "successor_scores",
    "token_standardised_scores",
    "westfall_young_test",
]


def __getattr__(name: str) -> Any:
    """Import everything when the first name is asked for: `contamination --help` asks for none."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    for module in iter_modules(__path__):
        found = vars(import_module(f"{__name__}.{module.name}"))
        globals().update({each: found[each] for each in __all__ if each in found})
    return globals()[name]
