"""Tests of contamination on log-probabilities: pure functions of arrays.

Orderings are on the last axis, the canonical one first; larger scores are more evidence.

================================  ===========================  ===================================
function                          input                        guarantee
================================  ===========================  ===================================
`permutation_test`                (m+1,) whole set             exact; p >= 1/(m+1)
`sharded_t_test`                  (r, m+1) shards              asymptotic in r; no floor
`recombination_test`              (r, m+1) shards              exact; p >= (m+1)^-r
`recombination_monte_carlo`       (r, m+1) shards              exact; p >= 1/(resamples+1)
`fisher`                          (n,) p-values                exact if independent
`holm`                            (n,) p-values                family-wise, any dependence
`ecdf`, `dkw_band`                (n,) p-values                band valid for every n
================================  ===========================  ===================================

`contributions` and `shard_z_scores` show what each shard adds to the recombination statistic.
"""

from contamination.statistics.combination import FisherResult, fisher, holm
from contamination.statistics.permutation import permutation_test
from contamination.statistics.recombination import (
    Weights,
    contributions,
    recombination_monte_carlo,
    recombination_test,
    shard_z_scores,
)
from contamination.statistics.results import (
    MonteCarloResult,
    PermutationResult,
    RecombinationResult,
    ShardedTResult,
    TestResult,
)
from contamination.statistics.sharded_t import sharded_t_test
from contamination.statistics.uniformity import dkw_band, ecdf

__all__ = [
    "FisherResult",
    "MonteCarloResult",
    "PermutationResult",
    "RecombinationResult",
    "ShardedTResult",
    "TestResult",
    "Weights",
    "contributions",
    "dkw_band",
    "ecdf",
    "fisher",
    "holm",
    "permutation_test",
    "recombination_monte_carlo",
    "recombination_test",
    "shard_z_scores",
    "sharded_t_test",
]
