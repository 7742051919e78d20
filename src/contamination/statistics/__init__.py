"""Tests of contamination on log-probabilities: pure functions of arrays.

Orderings are on the last axis, the canonical one first; larger scores are more
evidence.

=============================  ========================  ==============================
function                       input                     guarantee
=============================  ========================  ==============================
`permutation_test`             (m+1,) whole set          exact; p >= 1/(m+1)
`sharded_t_test`               (r, m+1) shards           asymptotic in r; no floor
`sharded_exact_test`           (r, m+1) shards           exact; p >= (m+1)^-r
`pooled_exact_test`            sets of (r, m+1) shards   exact; one p of all sets
`sharded_exact_monte_carlo`    (r, m+1) shards           exact; p >= 1/(resamples+1)
`sharded_exact_p_values`       (r, m+1), (b, r) choices  exact; no far tail
`sharded_t_p_values`           (r, m+1), (b, r) choices  asymptotic in r; no floor
`sampling_error`               (r, m+1) shards           an estimate, of log10 p
`generated_successor_test`     (n, n) pairs of a set     exact; p >= 1/(resamples+1)
`quiz_test`                    (n,) hits                 exact, and a bound on how many
`held_out_test`                (q, n) of two sides       exact; p >= 1/(resamples+1)
`sides_test`                   (q, n) of two sides       exact; p >= 1/(resamples+1)
`conformal_p_values`           (n,) of two sides         exact for each; dependent
`read_at_least`                (n,) of two sides         exact lower bound
`westfall_young_test`          (q, r, m+1) statistics    exact; tilted Monte Carlo
`anytime_test`                 (r, m+1), one by one      exact at every stopping time
`fisher`                       (n,) p-values             exact if independent
`cauchy`                       (n,) p-values             asymptotic; dependence
`harmonic_mean`                (n,) p-values             any dependence
`hits_log10_p`                 hits, (n,) chances        exact if draws are independent
`known_at_least`               hits, (n,) chances        exact lower bound
`adjust`                       (n,) p-values             Holm or BH over an audit
`ecdf`, `dkw_band`             (n,) p-values             band valid for every n
`simulated_p_values`           (r, m+1), (b, r) effects  an estimate, of power
=============================  ========================  ==============================

Scores of the orderings of one shard, to be stacked to (r, m+1):
`token_standardised_scores` and `boundary_scores` from its tokens,
`sampled_successor_scores` from its successor matrix. Any subpackage may import from
here; nothing here imports from another one but `errors`.

Every function refuses what is not a plain array of finite numbers by an `InputError`
(`contamination.statistics.inputs`), and p-values do not depend on the unit of the
scores. `token_standardised_scores` alone needs nats, since it adds 0.3 nats to every
spread; so do the thresholds named `resolution`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from contamination.statistics.anytime import *  # noqa: F403
    from contamination.statistics.conformal import *  # noqa: F403
    from contamination.statistics.exchangeability import *  # noqa: F403
    from contamination.statistics.held_out import *  # noqa: F403
    from contamination.statistics.min_p import *  # noqa: F403
    from contamination.statistics.multiple_testing import *  # noqa: F403
    from contamination.statistics.permutation import *  # noqa: F403
    from contamination.statistics.poisson_binomial import *  # noqa: F403
    from contamination.statistics.results import *  # noqa: F403
    from contamination.statistics.sharded_exact import *  # noqa: F403
    from contamination.statistics.simulation import *  # noqa: F403
    from contamination.statistics.successor import *  # noqa: F403
    from contamination.statistics.t_test import *  # noqa: F403
    from contamination.statistics.token_scores import *  # noqa: F403

_MODULES = {
    "anytime": "AnytimeResult anytime_test log_e_values",
    "conformal": "conformal_p_values read_at_least",
    "exchangeability": "random_orderings",
    "held_out": "HeldOutResult held_out_test sides_test",
    "min_p": "westfall_young_test",
    "multiple_testing": "adjust cauchy dkw_band ecdf fisher harmonic_mean",
    "permutation": "permutation_test",
    "poisson_binomial": "KnownResult hits_log10_p known_at_least quiz_test",
    "results": "PValue TestResult",
    "sharded_exact": "contributions pooled_exact_test sampling_error sharded_exact_monte_carlo "
    "sharded_exact_p_values sharded_exact_test",
    "simulation": "relabel_canonical simulated_p_values",
    "successor": "centred_successors generated_successor_test generated_successors "
    "sampled_successor_scores successor_scores",
    "t_test": "sharded_t_p_values sharded_t_test",
    "token_scores": "boundary_scores centred_tokens token_standardised_scores",
}
HOMES: dict[str, str] = {}
for _module, _names in _MODULES.items():
    HOMES.update(dict.fromkeys(_names.split(), _module))
__all__ = sorted(HOMES)


def __getattr__(name: str) -> Any:
    """Import a function when it is first used: the help of the command uses none."""
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
