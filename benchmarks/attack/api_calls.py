"""Good calls of the Python API for `api.py`: statistics of p-values, and measures of membership."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from contamination import statistics as st
from contamination.membership import evaluate
from contamination.randomness import random_stream
from contamination.statistics.exchangeability import max_z, order_test

Rng = np.random.Generator
Arguments = dict[str, Any]
Kind = str  # of an argument: what spoils it depends on that


def _scores(rng: Rng) -> np.ndarray:
    """Draw scores of some shards, (r, m+1), of which no two are equal."""
    shards = int(rng.integers(2, 8))
    scores = rng.normal(size=(shards, int(rng.integers(6, 20))))
    scores[:, 0] += rng.uniform(0, 3)
    return scores


def _matrix(rng: Rng) -> np.ndarray:
    """Draw values of all pairs, (n, n), with nothing on the diagonal."""
    pairs = rng.normal(size=(6, 6))
    np.fill_diagonal(pairs, 0.0)
    return pairs


def _labels(rng: Rng) -> np.ndarray:
    return rng.permutation([1, 1, 1, 0, 0, 0, 1, 0])


def _of_shards(rng: Rng) -> Arguments:
    return {"log_probs": _scores(rng)}


def _of_one_shard(rng: Rng) -> Arguments:
    return {"log_probs": _scores(rng)[0]}


def _drawn(rng: Rng) -> Arguments:
    return {
        "log_probs": _scores(rng),
        "resamples": 49,
        "rng": random_stream(1, "attack on the API"),
    }


def _of_choices(rng: Rng) -> Arguments:
    scores = _scores(rng)
    return {"log_probs": scores, "canonical": np.zeros((2, len(scores)), dtype=int)}


def _of_effects(rng: Rng) -> Arguments:
    scores = _scores(rng)
    effects = np.ones((2, len(scores)))
    return {"log_probs": scores, "effects": effects, "rng": random_stream(1, "attack on the API")}


def _of_pairs(rng: Rng) -> Arguments:
    return {
        "successors": _matrix(rng),
        "resamples": 49,
        "rng": random_stream(1, "attack on the API"),
    }


def _of_p_values(rng: Rng) -> Arguments:
    return {"log10_p": -rng.exponential(size=5)}


def _of_labelled(rng: Rng) -> Arguments:
    return {"scores": rng.normal(size=8), "members": _labels(rng)}


def _of_tokens(rng: Rng) -> Arguments:
    return {
        "logprobs": rng.normal(size=(7, 12)),
        "leading": rng.integers(0, 2, size=(7, 12)).astype(bool),
    }


def _of_first_tokens(rng: Rng) -> Arguments:
    return _of_tokens(rng) | {"position": np.arange(12) % 4, "tokens_per_example": 2}


@dataclass(frozen=True)
class Call:
    """A function of the API, and what it takes.

    Attributes
    ----------
    make : draws good arguments.
    kinds : of the arguments that are spoilt, as named in `api.WAYS`: "numbers" (an array, finite),
        "whole" (an array of whole numbers), "count" (at least 1), "level" (between 0 and 1) ...
    without_unit : what the result keeps whatever the unit of the argument `scaled` is; None where
        the result has a unit itself.
    """

    make: Callable[[Rng], Arguments]
    function: Callable[..., Any]
    kinds: Mapping[str, Kind]
    scaled: str = "log_probs"
    without_unit: Callable[[Any], Any] | None = None


def _log10_p(result: Any) -> float:
    return float(result.log10_p)


def _itself(result: Any) -> Any:
    return result


def _anytime(log_probs: Any, alpha: float) -> Any:
    return st.anytime_test(log_probs, alpha=alpha)


def _pooled(log_probs: Any) -> Any:
    return st.pooled_exact_test([log_probs, log_probs])


def _min_p(log_probs: Any, resamples: int, rng: Rng) -> Any:
    return st.westfall_young_test([log_probs, log_probs], resamples=resamples, rng=rng)


def _order(log_probs: Any) -> Any:
    return order_test(log_probs, alternative="two-sided")


def _holm(log10_p: Any) -> Any:
    return st.adjust(log10_p, method="holm")


def _judged(scores: Any, members: Any, rng: Rng, resamples: int) -> Any:
    table = pd.DataFrame({"loss": scores})
    return evaluate.evaluate(table, members, rng=rng, resamples=resamples)


def _weighted(scores: Any, members: Any, weights: Any) -> Any:
    return evaluate.weighted_aucs(pd.DataFrame({"loss": scores}), members, weights)


NUMBERS = {"log_probs": "numbers"}
DRAWN = NUMBERS | {"resamples": "count", "rng": "generator"}
PAIRS = {"successors": "numbers", "resamples": "count", "rng": "generator"}
P_VALUES = {"log10_p": "numbers"}
CALLS: dict[str, Call] = {
    "permutation": Call(_of_one_shard, st.permutation_test, NUMBERS, without_unit=_log10_p),
    "sharded t": Call(
        lambda rng: _of_shards(rng) | {"ddof": 1},
        st.sharded_t_test,
        NUMBERS | {"ddof": "ddof"},
        without_unit=_log10_p,
    ),
    "sharded exact": Call(_of_shards, st.sharded_exact_test, NUMBERS, without_unit=_log10_p),
    "pooled": Call(_of_shards, _pooled, NUMBERS, without_unit=_log10_p),
    "Monte Carlo": Call(_drawn, st.sharded_exact_monte_carlo, DRAWN, without_unit=_log10_p),
    "min-p": Call(_drawn, _min_p, DRAWN, without_unit=_log10_p),
    "choices": Call(
        _of_choices,
        st.sharded_exact_p_values,
        NUMBERS | {"canonical": "whole"},
        without_unit=_itself,
    ),
    "anytime": Call(
        lambda rng: _of_shards(rng) | {"alpha": 0.05},
        _anytime,
        NUMBERS | {"alpha": "level"},
        without_unit=_log10_p,
    ),
    "e-values": Call(_of_one_shard, st.log_e_values, NUMBERS, without_unit=_itself),
    "order": Call(_of_one_shard, _order, NUMBERS, without_unit=_log10_p),
    "largest z": Call(
        lambda rng: {"values": _scores(rng)}, max_z, {"values": "numbers"}, "values", _itself
    ),
    "power": Call(
        _of_effects,
        st.simulated_p_values,
        NUMBERS | {"effects": "numbers", "rng": "generator"},
        without_unit=_itself,
    ),
    "contributions": Call(
        lambda rng: _of_shards(rng) | {"weights": "equal"}, st.contributions, NUMBERS
    ),
    "sampling error": Call(
        lambda rng: {"log_probs": rng.normal(size=(3, 40)), "blocks": 4},
        st.sampling_error,
        NUMBERS | {"blocks": "count"},
    ),
    "generated": Call(_of_pairs, st.generated_successor_test, PAIRS),
    "successors": Call(_of_pairs, st.sampled_successor_scores, PAIRS),
    "successor orders": Call(
        lambda rng: {"successors": _matrix(rng), "orderings": np.arange(6)[None]},
        st.successor_scores,
        {"successors": "numbers", "orderings": "whole"},
    ),
    "centred": Call(
        lambda rng: {"successors": _matrix(rng)}, st.centred_successors, {"successors": "numbers"}
    ),
    "tokens": Call(
        _of_tokens, st.token_standardised_scores, {"logprobs": "numbers", "leading": "whole"}
    ),
    "boundary": Call(
        _of_first_tokens,
        st.boundary_scores,
        {"logprobs": "numbers", "position": "whole", "tokens_per_example": "count"},
    ),
    "Fisher": Call(_of_p_values, st.fisher, P_VALUES),
    "Cauchy": Call(_of_p_values, st.cauchy, P_VALUES),
    "harmonic mean": Call(_of_p_values, st.harmonic_mean, P_VALUES),
    "Holm": Call(_of_p_values, _holm, P_VALUES),
    "quiz": Call(
        lambda rng: {
            "hits": rng.integers(0, 2, size=9),
            "choices": 4,
            "test": "quiz",
            "alpha": 0.05,
        },
        st.quiz_test,
        {"hits": "hits", "choices": "count", "alpha": "level"},
    ),
    "hits": Call(
        lambda rng: {"hits": 3, "chances": rng.uniform(0.1, 0.9, size=9)},
        st.hits_log10_p,
        {"hits": "count", "chances": "numbers"},
    ),
    "known": Call(
        lambda rng: {"hits": 3, "chances": rng.uniform(0.1, 0.9, size=9), "level": 0.05},
        st.known_at_least,
        {"hits": "count", "chances": "numbers", "level": "level"},
    ),
    "relabelled": Call(
        lambda rng: {"scores": _scores(rng)[:3], "canonical": np.zeros(2, dtype=int)},
        lambda scores, canonical: st.relabel_canonical(scores[:2], canonical),
        {"canonical": "whole"},
    ),
    "band": Call(
        lambda rng: {"n": 10, "level": 0.95}, st.dkw_band, {"n": "count", "level": "level"}
    ),
    "shares": Call(lambda rng: {"p_values": rng.uniform(size=6)}, st.ecdf, {"p_values": "numbers"}),
    "AUC": Call(
        _of_labelled,
        evaluate.auc,
        {"scores": "numbers", "members": "whole"},
        "scores",
        _itself,
    ),
    "judged": Call(
        lambda rng: (
            _of_labelled(rng) | {"resamples": 20, "rng": random_stream(1, "attack on the API")}
        ),
        _judged,
        {"members": "whole", "resamples": "count", "rng": "generator"},
        "scores",
        lambda table: table.drop(columns=["score", "reason"]).to_numpy(dtype=float),
    ),
    "weighted AUC": Call(
        lambda rng: _of_labelled(rng) | {"weights": np.ones((2, 8))},
        _weighted,
        {"members": "whole", "weights": "numbers"},
        "scores",
        _itself,
    ),
    "threshold": Call(
        lambda rng: {"non_members": rng.normal(size=8), "fpr": 0.1},
        evaluate.fit_threshold,
        {"non_members": "numbers", "fpr": "share"},
    ),
    "detected": Call(
        lambda rng: {"scores": rng.normal(size=8), "threshold": 0.1},
        evaluate.detected_share,
        {"threshold": "threshold"},
    ),
}
