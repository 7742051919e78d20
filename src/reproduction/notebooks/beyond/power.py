"""Power per token: which statistic finds the lowest duplication counts for the fewest tokens.

A statistic with a number of shards and permutations is a test, and its tokens are its cost. Each is
run on every canary set, from stores alone: fewer permutations are the first of those scored, fewer
shards a random subset of the shards. Oren's detection challenge ranks methods by the mean log10 p
per duplication count; so does `summarise`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from statsmodels.stats.proportion import proportion_confint
from tqdm import tqdm

from contamination.audit.battery import (
    COMPARED,
    COUNTED,
    TESTS,
    Statistic,
    sampled_successors,
    variant_name,
    variants,
)
from contamination.scoring.store import Store
from reproduction.run.experiment import Experiment

TOKENS = {name: b for name, b in COUNTED.items() if b is not None}  # tried in boundary, successor
SAMPLED_ORDERINGS = 2_000
ROWS = (
    *("dataset", "dup_count", "test", "shards", "permutations", "fraction", "replicate"),
    *("tokens", "passes", "log10_p"),
)


@dataclass(frozen=True)
class PowerSettings:
    """The settings that every test is tried with."""

    shards: int  # of the orderings
    permutations: Sequence[int]  # numbers of orderings to try, the largest being scored
    successor_shards: Sequence[int] = ()  # of the successor matrices, one store each
    fractions: Sequence[float] = (1.0,)  # of the shards
    replicates: int = 1  # draws of each fraction that is not all shards
    datasets: Sequence[str] = ()  # all canary sets if none is named


def power_rows(
    experiment: Experiment, model: str, settings: PowerSettings, *, rng: np.random.Generator
) -> pd.DataFrame:
    """Run every test on every set, with all permutations and fractions of the shards.

    Columns are `ROWS`: `shards` of the set, `permutations` (0 for successors, whose orderings cost
    nothing), `fraction` of the shards that are used, `tokens` that the model reads, `passes`
    (tokens over those of the set).
    """
    rows: list[tuple[Any, ...]] = []
    names = settings.datasets or [spec.name for spec in experiment.profile.canaries]
    for name in tqdm(names, desc="power per token", unit="set"):
        spec = experiment.spec(name)
        passed = experiment.corpus_facts["canaries"][name]["tokens"]
        for test, statistic, scores, cost, m in _scored(experiment, model, name, settings, rng):
            count = len(scores)
            for fraction in settings.fractions:
                size = max(2, round(fraction * count))
                for replicate in range(1 if size == count else settings.replicates):
                    chosen = rng.permutation(count)[:size]
                    tokens = int(cost[chosen].sum())
                    log10_p = statistic(scores[chosen], rng).log10_p
                    setting = (test, count, m, fraction, replicate, tokens, tokens / passed)
                    rows.append((name, spec.dup_count, *setting, log10_p))
    return pd.DataFrame(rows, columns=list(ROWS))


def _scored(
    experiment: Experiment, model: str, name: str, settings: PowerSettings, rng: np.random.Generator
) -> Iterator[tuple[str, Statistic, np.ndarray, np.ndarray, int]]:
    """Yield tests with their scores of a set, the tokens that each shard cost, and permutations."""
    most = max(settings.permutations)
    store = experiment.scored(model, name, shards=settings.shards, permutations=most)
    shards = [store.shard_tokens(shard, most) for shard in range(settings.shards)]
    lengths = np.array([len(tokens.position) for tokens in shards])
    for m in settings.permutations:
        fewer = [tokens.first_orderings(m) for tokens in shards]
        for (test, choice), score in variants(COMPARED, TOKENS).items():
            scores = np.stack([score(tokens) for tokens in fewer])
            label = variant_name(test, choice)
            yield label, TESTS[test].statistic, scores, lengths * (m + 1), m
    for count in settings.successor_shards:
        store = experiment.scored(
            model, name, shards=count, kind="successors", tokens_per_example=max(TOKENS.values())
        )
        for choice, b in TOKENS.items():
            sampled = (
                sampled_successors(store, shard, b, orderings=SAMPLED_ORDERINGS, rng=rng)
                for shard in range(count)
            )
            scores = np.stack(list(sampled))
            label, statistic = variant_name("successor", choice), TESTS["successor"].statistic
            yield label, statistic, scores, successor_tokens(store, b), 0


def successor_tokens(store: Store, tokens_per_example: int) -> np.ndarray:
    """Count the tokens that each shard's matrix costs with so many tokens a pair, int64 (r,)."""
    header = replace(store.header, tokens_per_example=tokens_per_example)
    shards = range(header.shards)
    return np.array([sum(map(header.tokens_read, header.units(0, shard))) for shard in shards])


def summarise(rows: pd.DataFrame, alphas: Sequence[float]) -> pd.DataFrame:
    """Average log10 p and power of every test at every cost over sets, by duplication count.

    Intervals are over sets: replicates of one set share its data, so a set counts once, by its
    share of rejections. Power has Wilson's 95% interval (`power_<alpha>`, `low_<alpha>`
    and `high_<alpha>`), the mean log10 p its standard error (`se_log10_p`); tokens and passes are
    means over sets.
    """
    keys = ["dup_count", "test", "shards", "permutations", "fraction"]
    rows = rows.assign(**{f"power_{a:g}": rows["log10_p"] <= np.log10(a) for a in alphas})
    powers = [f"power_{a:g}" for a in alphas]
    numbers = ["tokens", "passes", "log10_p", *powers]
    sets = rows.groupby([*keys, "dataset"], as_index=False)[numbers].mean()
    grouped = sets.groupby(keys)
    table = grouped[["tokens", "passes", *powers]].mean()
    table["datasets"] = grouped.size()
    table["mean_log10_p"] = grouped["log10_p"].mean()
    table["se_log10_p"] = grouped["log10_p"].sem()
    count = table["datasets"]
    for alpha in alphas:
        interval = proportion_confint(table[f"power_{alpha:g}"] * count, count, method="wilson")
        table[f"low_{alpha:g}"], table[f"high_{alpha:g}"] = interval
    return table.reset_index()


def ranking(table: pd.DataFrame) -> pd.DataFrame:
    """Rank tests (rows) by their mean log10 p over the duplication counts (columns), best first.

    With all shards and the most permutations; `passes` is what that costs.
    """
    whole = table[table["fraction"] == 1.0]
    most = whole.groupby("test")["permutations"].transform("max")
    chosen = whole[whole["permutations"] == most]
    means = chosen.pivot_table(index=["test", "shards"], columns="dup_count", values="mean_log10_p")
    passes = chosen.groupby(["test", "shards"])["passes"].mean()
    order = means.mean(axis=1).sort_values().index
    ranked = means.loc[order].assign(passes=passes.loc[order])
    ranked.columns = [str(column) for column in ranked.columns]
    return ranked.reset_index()
