"""Tests beyond the paper: power per token, scores under the null, and orders that mislead.

*Power.* A statistic with a number of shards and permutations is a test, and its tokens are its
cost. Each is run on every canary set, from stores alone: fewer permutations are the first of those
scored, fewer shards a random subset of the shards.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from statsmodels.stats.proportion import proportion_confint
from tqdm import tqdm

from contamination.audit.registry import COMPARED, COUNTED, TESTS, TOKEN_SCORES, variant_name
from contamination.scoring.plan import StorePlan
from contamination.scoring.store import Store
from contamination.statistics import (
    centred_successors,
    sampled_successor_scores,
)
from contamination.tables import Layout, format_p, lay_out
from reproduction.run.experiment import Experiment

TOKENS = {name: b for name, b in COUNTED.items() if b is not None}  # tried in boundary, successor
SAMPLED_ORDERINGS = 2_000
Variant = tuple[str, str | None]  # a test, and how many first tokens count in it
# The name in the study of calibration of those that it takes.
POOLED: dict[Variant, str] = {
    ("sharded_exact", None): "sum",
    **{(name, TESTS[name].b): name for name in ("token_standardised", "boundary", "successor")},
}
ACCESSES = {"generated": "What it writes", "log-probabilities": "Log-probabilities"}
GENERATED = ["model", "dataset", "examples", "dup_count", "test", "access", "samples", "tokens"]
GENERATED += ["p", "log10_p"]
JOINED = 10  # records to one example, so that it exceeds a context of 256 tokens


def power_rows(
    experiment: Experiment,
    model: str,
    *,
    permutations: Sequence[int],
    successor_shards: Sequence[int],
    fractions: Sequence[float],
    replicates: int,
    rng: np.random.Generator,
) -> pd.DataFrame:
    """Run every test on every set, with all permutations and fractions of the shards.

    Columns are dataset, dup_count, test, shards (of the set), permutations (0 for successors, whose
    orderings cost nothing), fraction (of the shards that are used), replicate, tokens (that the
    model reads), passes (tokens over those of the set) and log10_p. `replicates` are draws of each
    fraction that is not all shards.
    """
    rows: list[dict[str, Any]] = []
    settings = permutations, successor_shards, SAMPLED_ORDERINGS, rng
    for spec in tqdm(experiment.profile.canaries, desc="power per token", unit="set"):
        passed = experiment.corpus_facts["canaries"][spec.name]["tokens"]
        for test, scores, cost, m in _scored(experiment, model, spec.name, *settings):
            label, count = variant_name(*test), len(scores)
            for fraction in fractions:
                size = max(2, round(fraction * count))
                for replicate in range(1 if size == count else replicates):
                    chosen = rng.permutation(count)[:size]
                    tokens = int(cost[chosen].sum())
                    row = {"dataset": spec.name, "dup_count": spec.dup_count, "test": label}
                    row |= {"shards": count, "permutations": m, "fraction": fraction}
                    row |= {"replicate": replicate, "tokens": tokens, "passes": tokens / passed}
                    result = TESTS[test[0]].statistic(scores[chosen], rng)
                    rows.append(row | {"log10_p": result.log10_p})
    return pd.DataFrame(rows)


def pools_of(
    experiment: Experiment,
    model: str,
    datasets: Sequence[str],
    *,
    permutations: Sequence[int],
    successor_shards: int,
    rng: np.random.Generator,
) -> dict[tuple[str, int], np.ndarray]:
    """Collect the scores of the shards of all sets, (shards, m + 1) by (statistic, permutations).

    Statistics are those of `POOLED`; "successor" has as many sampled orderings as the largest
    number of permutations.
    """
    rows: dict[tuple[str, int], list[np.ndarray]] = {}
    settings = permutations, [successor_shards], max(permutations), rng
    for name in tqdm(datasets, desc="scores under the null", unit="set"):
        for test, scores, *_ in _scored(experiment, model, name, *settings, only=POOLED):
            rows.setdefault((POOLED[test], scores.shape[1] - 1), []).append(scores)
    return {key: np.concatenate(values) for key, values in rows.items()}


def _scored(
    experiment: Experiment,
    model: str,
    name: str,
    permutations: Sequence[int],
    successor_shards: Sequence[int],
    orderings: int,
    rng: np.random.Generator,
    *,
    only: Collection[Variant] = (),
) -> Iterator[tuple[Variant, np.ndarray, np.ndarray, int]]:
    """Yield tests (all, or `only` some) with their scores of a set, what each shard cost, and m."""
    most, count = max(permutations), experiment.profile.scoring.shards
    store = experiment.scored(model, name, StorePlan("orderings", count), most)
    shards = [store.shard_tokens(shard, most) for shard in range(count)]
    lengths = np.array([len(tokens.position) for tokens in shards])
    for m in permutations:
        fewer = [tokens.first_orderings(m) for tokens in shards]
        for test, score in TOKEN_SCORES.items():
            if test[0] in COMPARED and (not only or test in only):
                yield test, np.stack([score(tokens) for tokens in fewer]), lengths * (m + 1), m
    for count in successor_shards:
        plan = StorePlan("successors", count, max(TOKENS.values()))
        store = experiment.scored(model, name, plan)
        for choice, b in TOKENS.items():
            if not only or ("successor", choice) in only:
                pairs = (store.successors(shard, b) for shard in range(count))
                centred = (centred_successors(s, resolution=store.resolution(b)) for s in pairs)
                sampled = [
                    sampled_successor_scores(s, resamples=orderings, rng=rng) for s in centred
                ]
                yield ("successor", choice), np.stack(sampled), successor_tokens(store, b), 0


def successor_tokens(store: Store, tokens_per_example: int) -> np.ndarray:
    """Count the tokens that each shard's matrix costs with so many tokens a pair, int64 (r,)."""
    header = replace(store.header, tokens_per_example=tokens_per_example)
    shards = range(header.shards)
    return np.array([sum(map(header.tokens_read, header.units(0, shard))) for shard in shards])


def summarise(rows: pd.DataFrame, alphas: Sequence[float]) -> pd.DataFrame:
    """Average log10 p and power of every test at every cost over sets, by duplication count.

    Replicates of one set share its data, so a set counts once, by its share of rejections. Power
    has Wilson's 95% interval over sets (`power_<alpha>`, `low_<alpha>` and `high_<alpha>`), the
    mean log10 p its standard error (`se_log10_p`).
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
    whole, keys = table[table["fraction"] == 1.0], ["test", "shards"]
    most = whole.groupby("test")["permutations"].transform("max")
    chosen = whole[whole["permutations"] == most]
    means = chosen.pivot_table(index=keys, columns="dup_count", values="mean_log10_p")
    ranked = means.rename(columns=str).assign(passes=chosen.groupby(keys)["passes"].mean())
    order = means.mean(axis=1).sort_values().index
    return ranked.loc[order].reset_index().rename_axis(columns=None)


def generated_layout(table: pd.DataFrame) -> Layout:
    """Lay out p of the tests on texts and on log-probabilities: a row for each set and model.

    `table` holds rows of `reproduction.notebooks.beyond.measure.score_texts`. The clean model has
    read no set, so its duplication count is 0.
    """
    rows = table.assign(dup_count=table["dup_count"].where(table["model"] != "clean", 0))
    return lay_out(
        rows,
        {"model": "Model", "dataset": "Set", "dup_count": "Duplication count"},
        lambda row: {ACCESSES[row["access"]]: format_p(row["p"], row["log10_p"])},
    )


AS_PUBLISHED = "as published (shuffled)"
SHORT = "very short (three words)"
LONG = "joined in tens (longer than the context)"
ORDERS: dict[str, Callable[[Sequence[str]], list[str]]] = {
    AS_PUBLISHED: list,
    "sorted by text": sorted,
    "sorted by length": lambda examples: sorted(examples, key=len),
    "near-duplicates in pairs": lambda examples: [
        text
        for record in examples[: len(examples) // 2]
        for text in (record, record.replace("the ", "a "))
    ],
    "numbered": lambda examples: [f"{i}. {text}" for i, text in enumerate(examples, start=1)],
    SHORT: lambda examples: [" ".join(text.split()[:3]) + "\n" for text in examples],
    LONG: lambda examples: [
        "".join(examples[stop - JOINED : stop]) for stop in range(JOINED, len(examples) + 1, JOINED)
    ],
}
