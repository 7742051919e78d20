"""Tests beyond the paper: power per token, the null, orders that mislead.

*Power.* A statistic with a number of shards and permutations is a test, and its tokens
are its cost. Each is run on every canary set, from stores alone: fewer permutations are
the first of those scored, fewer shards a random subset of the shards.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from statsmodels.stats.proportion import proportion_confint
from tqdm import tqdm

from contamination.audit.registry import COMPARED, TESTS, variant_name
from contamination.audit.shard_scores import COUNTED, TOKEN_SCORES
from contamination.scoring.plan import StorePlan
from contamination.scoring.store import Store, store_of
from contamination.statistics import (
    centred_successors,
    sampled_successor_scores,
)
from contamination.tables import Layout, format_p, lay_out
from reproduction.run.experiment import Experiment

# tried in boundary, successor
TOKENS = {name: b for name, b in COUNTED.items() if b is not None}
SAMPLED_ORDERINGS = 2_000
Variant = tuple[str, str | None]  # a test, and how many first tokens count in it
# The name in the study of calibration of those that it takes.
POOLED: dict[Variant, str] = {("sharded_exact", None): "sum"}
POOLED |= {(name, TESTS[name].b): name for name in ("token_standardised", "boundary", "successor")}
ACCESSES = {"generated": "What it writes", "log-probabilities": "Log-probabilities"}
GENERATED = [
    "model",
    "dataset",
    "examples",
    "dup_count",
    "test",
    "access",
    "samples",
    "tokens",
    "p",
    "log10_p",
]
POWER_COLUMNS = (
    "dataset",
    "dup_count",
    "test",
    "shards",
    "permutations",
    "fraction",
    "replicate",
    "tokens",
    "passes",
    "log10_p",
)
JOINED = 10  # records to one example, so that it exceeds a context of 256 tokens


class ShardScores(NamedTuple):
    """The scores of a set in one test, shard by shard.

    Attributes
    ----------
    test
        The test, and how many first tokens count in it.
    scores
        (r, orderings), the canonical one first.
    tokens
        (r,), that the model reads for each shard.
    permutations
        Shuffled orderings that the model has read; 0 for successors.
    """

    test: Variant
    scores: np.ndarray
    tokens: np.ndarray
    permutations: int


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

    Parameters
    ----------
    experiment
        The run.
    model
        Name of the model.
    permutations, successor_shards
        Permutations and numbers of shards of the stores, as in the settings of the
        notebook.
    fractions
        Shares of the shards to use, chosen at random.
    replicates
        Number of draws of each fraction that is not all shards.
    rng
        Draws the shards, and the orderings of successors.

    Returns
    -------
    Rows with `POWER_COLUMNS`: shards are those of the set, permutations is 0 for successors, whose
    orderings cost nothing, tokens are those that the model reads, and passes is their number over
    the number of tokens of the set.
    """
    rows: list[dict[str, Any]] = []
    for spec in tqdm(experiment.profile.canaries, desc="power per token", unit="set"):
        tokens_of_set = experiment.corpus_facts["canaries"][spec.name]["tokens"]
        scored_tests = _scored_tests(
            experiment,
            model,
            spec.name,
            permutations=permutations,
            successor_shards=successor_shards,
            sampled_orderings=SAMPLED_ORDERINGS,
            rng=rng,
        )
        for scored in scored_tests:
            about = {
                "dataset": spec.name,
                "dup_count": spec.dup_count,
                "test": variant_name(*scored.test),
                "shards": len(scored.scores),
                "permutations": scored.permutations,
            }
            for row in _test_fractions(scored, fractions, replicates, rng):
                passes = row["tokens"] / tokens_of_set
                rows.append(about | row | {"passes": passes})
    return pd.DataFrame(rows, columns=list(POWER_COLUMNS))


def _test_fractions(
    scored: ShardScores,
    fractions: Sequence[float],
    replicates: int,
    rng: np.random.Generator,
) -> Iterator[dict[str, Any]]:
    """Yield fraction, replicate, tokens and log10_p on random parts of the shards."""
    name, _ = scored.test
    count = len(scored.scores)
    for fraction in fractions:
        size = max(2, round(fraction * count))
        draws = 1 if size == count else replicates
        for replicate in range(draws):
            chosen = rng.permutation(count)[:size]
            result = TESTS[name].to_result(scored.scores[chosen], rng)
            yield {
                "fraction": fraction,
                "replicate": replicate,
                "tokens": int(scored.tokens[chosen].sum()),
                "log10_p": result.log10_p,
            }


def pools_of(
    experiment: Experiment,
    model: str,
    datasets: Sequence[str],
    *,
    permutations: Sequence[int],
    successor_shards: int,
    rng: np.random.Generator,
) -> dict[tuple[str, int], np.ndarray]:
    """Collect the scores of the shards of all sets.

    Parameters
    ----------
    experiment
        The run.
    model
        Name of a model that has read none of the sets.
    datasets
        Names of the canary sets.
    permutations
        Numbers of shuffled orderings.
    successor_shards
        Numbers of shards of the stores of successors.
    rng
        Samples the orderings of successors, as many as the largest number of
        permutations.

    Returns
    -------
    Scores (shards, m + 1) by statistic, a name of `POOLED`, and m.
    """
    pools: dict[tuple[str, int], list[np.ndarray]] = {}
    for name in tqdm(datasets, desc="scores under the null", unit="set"):
        scored_tests = _scored_tests(
            experiment,
            model,
            name,
            permutations=permutations,
            successor_shards=[successor_shards],
            sampled_orderings=max(permutations),
            rng=rng,
            only=POOLED,
        )
        for scored in scored_tests:
            key = (POOLED[scored.test], scored.scores.shape[1] - 1)
            pools.setdefault(key, []).append(scored.scores)
    return {key: np.concatenate(scores) for key, scores in pools.items()}


def _scored_tests(
    experiment: Experiment,
    model: str,
    dataset: str,
    *,
    permutations: Sequence[int],
    successor_shards: Sequence[int],
    sampled_orderings: int,
    rng: np.random.Generator,
    only: Collection[Variant] = (),
) -> Iterator[ShardScores]:
    """Yield the scores of a set in all tests, or in `only` some, orderings first."""
    most = max(permutations)
    shards = experiment.profile.scoring.shards
    store = experiment.scored(model, dataset, StorePlan("orderings", shards), most)
    statistics = [store.shard_tokens(shard, most) for shard in range(shards)]
    lengths = np.array([len(tokens.position) for tokens in statistics])
    for m in permutations:
        fewer = [tokens.first_orderings(m) for tokens in statistics]
        for test, score in TOKEN_SCORES.items():
            name, _ = test
            if name in COMPARED and (not only or test in only):
                scores = np.stack([score(tokens) for tokens in fewer])
                yield ShardScores(test, scores, tokens=lengths * (m + 1), permutations=m)
    for count in successor_shards:
        plan = StorePlan("successors", count, max(TOKENS.values()))
        store = experiment.scored(model, dataset, plan)
        for choice, b in TOKENS.items():
            test = ("successor", choice)
            if not only or test in only:
                scores = _sampled_scores(store, b, sampled_orderings, rng)
                tokens_read = successor_tokens(store, b)
                yield ShardScores(test, scores, tokens=tokens_read, permutations=0)


def _sampled_scores(
    store: Store,
    tokens_per_example: int,
    orderings: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return successor scores of sampled orderings, (r, orderings + 1)."""
    rows = []
    with store.shards_in_turn():
        for shard in range(store.header.shards):
            successors = store.successors(shard, tokens_per_example)
            centred = centred_successors(
                successors,
                resolution=store.resolution(tokens_per_example),
            )
            scores = sampled_successor_scores(centred, resamples=orderings, rng=rng)
            rows.append(scores)
    return np.stack(rows)


def successor_tokens(store: Store, tokens_per_example: int) -> np.ndarray:
    """Count the tokens that each shard's matrix costs, int64 (r,)."""
    header = replace(store.header, tokens_per_example=tokens_per_example)
    shorter = store_of(store.directory, header)
    tokens = []
    for shard in range(header.shards):
        places = shorter.places(shard=shard)
        tokens.append(sum(map(shorter.tokens_read_of, places)))
    return np.array(tokens)


def summarise(rows: pd.DataFrame, alphas: Sequence[float]) -> pd.DataFrame:
    """Return mean log10 p and power of every test at every cost, by duplication count.

    Replicates of one set share its data, so a set counts once, by its share of
    rejections. Power has Wilson's 95% interval over sets (`power_<alpha>`,
    `low_<alpha>` and `high_<alpha>`), the mean log10 p its standard error
    (`se_log10_p`).
    """
    keys = ["dup_count", "test", "shards", "permutations", "fraction"]
    rows = rows.copy()
    powers = []
    for alpha in alphas:
        name = f"power_{alpha:g}"
        rows[name] = rows["log10_p"] <= np.log10(alpha)
        powers.append(name)
    numbers = ["tokens", "passes", "log10_p", *powers]
    sets = rows.groupby([*keys, "dataset"], as_index=False)[numbers].mean()
    grouped = sets.groupby(keys)
    table = grouped[["tokens", "passes", *powers]].mean()
    table["datasets"] = grouped.size()
    table["mean_log10_p"] = grouped["log10_p"].mean()
    table["se_log10_p"] = grouped["log10_p"].sem()
    count = table["datasets"]
    for alpha in alphas:
        rejected = table[f"power_{alpha:g}"] * count
        low, high = proportion_confint(rejected, count, method="wilson")
        table[f"low_{alpha:g}"] = low
        table[f"high_{alpha:g}"] = high
    return table.reset_index()


def ranking(table: pd.DataFrame) -> pd.DataFrame:
    """Return the tests by their mean log10 p over the duplication counts, best first.

    With all shards and the most permutations; `passes` is what that costs.
    """
    keys = ["test", "shards"]
    whole = table[table["fraction"] == 1.0]
    most = whole.groupby("test")["permutations"].transform("max")
    chosen = whole[whole["permutations"] == most]
    means = chosen.pivot_table(index=keys, columns="dup_count", values="mean_log10_p")
    ranked = means.rename(columns=str).assign(
        passes=chosen.groupby(keys)["passes"].mean(),
    )
    order = means.mean(axis=1).sort_values().index
    return ranked.loc[order].reset_index().rename_axis(columns=None)


def ranking_layout(ranked: pd.DataFrame) -> pd.DataFrame:
    """Lay out a ranking for readers: labels of tests with their b, means with two decimals."""
    shown = ranked.assign(test=[_label_of(name) for name in ranked["test"]])
    for column in shown.select_dtypes("float"):
        shown[column] = shown[column].map("{:.2f}".format)
    return shown


def _label_of(variant: str) -> str:
    family, _, b = variant.rpartition("_")
    return f"{TESTS[family].label} {b}" if b.isdigit() else TESTS[variant].label


def generated_layout(table: pd.DataFrame) -> Layout:
    """Lay out p of the tests on texts and on log-probabilities, by set and model.

    `table` holds rows of `reproduction.notebooks.beyond.measure.score_texts`. The clean
    model has read no set, so its duplication count is 0.
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


def _sorted_by_length(examples: Sequence[str]) -> list[str]:
    return sorted(examples, key=len)


def _paired(examples: Sequence[str]) -> list[str]:
    """Return the first half of the examples, each followed by a near-duplicate."""
    texts = []
    for example in examples[: len(examples) // 2]:
        texts += [example, example.replace("the ", "a ")]
    return texts


def _numbered(examples: Sequence[str]) -> list[str]:
    return [f"{number}. {text}" for number, text in enumerate(examples, start=1)]


def _shortened(examples: Sequence[str]) -> list[str]:
    return [" ".join(text.split()[:3]) + "\n" for text in examples]


def _joined(examples: Sequence[str]) -> list[str]:
    """Return the examples joined in tens; a rest of fewer is left out."""
    stops = range(JOINED, len(examples) + 1, JOINED)
    return ["".join(examples[stop - JOINED : stop]) for stop in stops]


ORDERS: dict[str, Callable[[Sequence[str]], list[str]]] = {
    AS_PUBLISHED: list,
    "sorted by text": sorted,
    "sorted by length": _sorted_by_length,
    "near-duplicates in pairs": _paired,
    "numbered": _numbered,
    SHORT: _shortened,
    LONG: _joined,
}
