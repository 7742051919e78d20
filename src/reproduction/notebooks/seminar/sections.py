"""What the sections of the seminar show, scored live: figures, power, and common mistakes.

Also experiments in which there is nothing to find: under H0 any ordering may be called canonical.
So the scores of a model that has not read a set are a supply of true null experiments: draw the
canonical one at random, again and again (Oren, section 3.1, turned round).
"""

import io
import itertools
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from contamination.audit import Request, audit
from contamination.audit.battery import TESTS
from contamination.scoring.plan import plan_store
from contamination.statistics import (
    called_canonical,
    dkw_band,
    ecdf,
    null_scores,
    sharded_exact_monte_carlo,
    sharded_t_test,
    westfall_young_test,
)
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.orderings import ordering, shard_bounds
from contamination.testsets.tokens import tokenize
from reproduction.notebooks.seminar.classroom import MODELS, Classroom
from reproduction.output.figures import READ, UNREAD

COLOURS = {"clean": UNREAD, "contaminated": READ}
POWER_TESTS = ("permutation", "sharded_t", "sharded_exact", "successor")
RESAMPLES = 999  # of each null experiment


def power_table(
    classroom: Classroom,
    *,
    shards: int,
    successor_shards: int,
    permutations: int,
    whole_set_permutations: int,
) -> pd.DataFrame:
    """Every test on every planted set under both models.

    Columns are model, dataset, dup_count (how often the contaminated model has read the set), test,
    p and log10_p.
    """
    rows = []
    for model, name, test in itertools.product(MODELS, classroom.sets, POWER_TESTS):
        needs, test_set = TESTS[test], classroom.sets[name]
        wanted = successor_shards if needs.kind == "successors" else shards
        m = whole_set_permutations if needs.shard_size is None else permutations
        count = plan_store(needs, len(test_set.examples), wanted).shards
        store = classroom.store(model, test_set, shards=count, permutations=m, kind=needs.kind)
        result = needs.result(store, m)
        rows.append((model, name, classroom.dup_counts[name], test, result.p, result.log10_p))
    return pd.DataFrame(rows, columns=["model", "dataset", "dup_count", "test", "p", "log10_p"])


def verdict_table(
    classroom: Classroom,
    model: str,
    sets: Sequence[ExampleSet],
    *,
    test: str,
    shards: int,
    permutations: int,
) -> pd.DataFrame:
    """One test on several sets, beside what their order gives away without a model.

    Columns are dataset, examples, p (under the model), compressor_p (the control) and diagnostics
    (their verdict).
    """
    request = Request(
        (test,),
        shards=shards,
        permutations=permutations,
        seed=classroom.seed,
        directory=classroom.directory / "audits",
        name=model,
    )
    with redirect_stderr(io.StringIO()):  # progress bars would fill the page
        audits = [audit(classroom.scorers[model], test_set, request) for test_set in sets]
    return pd.DataFrame(
        {
            "dataset": [each.name for each in sets],
            "examples": [len(each.examples) for each in sets],
            "p": [found.results[0].p for found in audits],
            "compressor_p": [found.as_dict()["control"][0]["p"] for found in audits],
            "diagnostics": [found.as_dict()["diagnosis"][0]["verdict"] for found in audits],
        }
    )


def with_bos_between(
    classroom: Classroom, model: str, test_set: ExampleSet, *, shards: int, permutations: int
) -> np.ndarray:
    """L[i, j] (nats) with a start token before *every* example.

    So the public script of Oren et al. has it where the tokenizer adds one. The same orderings as
    `Classroom.log_probs`; the extra start tokens are not counted.
    """
    scorer = classroom.scorers[model]
    ids = tokenize(scorer.tokenizer, test_set.examples)
    orders = [
        ordering(bounds, j, seed=classroom.seed, dataset=test_set.revision, shard=shard)
        for shard, bounds in enumerate(shard_bounds(len(ids), shards))
        for j in range(permutations + 1)
    ]
    started = [np.append(example, scorer.start) for example in ids]
    sequences = [np.concatenate([started[i] for i in order]) for order in orders]
    sums = np.zeros(len(sequences))
    for index, values in scorer.token_logprobs(sequences):
        sums[index] = values[sequences[index] != scorer.start].sum(dtype=np.float64)
    return sums.reshape(shards, permutations + 1)


# --- where there is nothing to find ---------------------------------------------------------------


def null_p_values(
    pool: np.ndarray, *, shards: int, trials: int, rng: np.random.Generator
) -> pd.DataFrame:
    """p-values of the sharded tests on experiments in which H0 holds, a row for each trial.

    Columns are "sharded_t", "sharded_t, ddof=0" and "sharded_exact". `pool` (shards or more, m+1)
    holds the scores of shards under a model that has not read them; each trial draws from there.
    """
    rows = []
    for _ in range(trials):
        scores = null_scores(pool, shards, rng=rng)
        exact = sharded_exact_monte_carlo(scores, resamples=RESAMPLES, rng=rng)
        rows.append((sharded_t_test(scores).p, sharded_t_test(scores, ddof=0).p, exact.p))
    return pd.DataFrame(rows, columns=["sharded_t", "sharded_t, ddof=0", "sharded_exact"])


def chosen_afterwards(scores: np.ndarray, *, trials: int, rng: np.random.Generator) -> pd.DataFrame:
    """The smallest p-value of several statistics where H0 holds, taken as it is and paid for.

    A row for each trial; "fixed in advance" (the first statistic alone), "best, as it is", "best,
    times q" and "min_p". `scores` (q, r, m+1) are of a model that has not read the set; an ordering
    has the same place in all statistics.
    """
    count, shards, orderings = scores.shape
    rows = []
    for _ in range(trials):
        swapped = called_canonical(scores, rng.integers(orderings, size=shards))
        joint = westfall_young_test(swapped, resamples=RESAMPLES, rng=rng)
        single = [each.p for each in joint.marginals]
        rows.append((single[0], min(single), min(1.0, count * min(single)), joint.p))
    names = ["fixed in advance", "best, as it is", "best, times q", "min_p"]
    return pd.DataFrame(rows, columns=names)


# --- figures --------------------------------------------------------------------------------------


def plot_differences(log_probs: Mapping[str, np.ndarray]) -> Figure:
    """Draw s_i of every shard, with the mean over shards; `log_probs` (r, m+1) by model."""
    figure, panels = _panels(log_probs)
    for axes, (model, values) in zip(panels, log_probs.items(), strict=True):
        s = values[:, 0] - values[:, 1:].mean(axis=1)
        axes.bar(np.arange(1, len(s) + 1), s, color=COLOURS[model], alpha=0.75)
        axes.axhline(s.mean(), color="black", lw=1.2, ls="--", label="mean")
        axes.set(xlabel="Shard", ylabel="$s_i$ (nats)")
        axes.legend(fontsize="small")
    return figure


def plot_successors(matrices: Mapping[str, np.ndarray]) -> Figure:
    """Draw centred successor scores of one shard; canonical successors are framed.

    `matrices` (k, k) in nats, NaN on the diagonal, by model.
    """
    figure, panels = _panels(matrices)
    largest = np.nanmax(np.abs(list(matrices.values())))
    for axes, matrix in zip(panels, matrices.values(), strict=True):
        image = axes.imshow(matrix, cmap="PuOr", vmin=-largest, vmax=largest)
        first = np.arange(len(matrix) - 1)
        axes.plot(first + 1, first, "s", ms=9, mfc="none", mec="black", mew=1.2)
        axes.set(xlabel="Example b", ylabel="Example a")
        axes.grid(False)
    figure.colorbar(image, ax=panels, label="log p(b after a), centred (nats)", shrink=0.8)
    return figure


def _panels(models: Mapping[str, np.ndarray]) -> tuple[Figure, list[Axes]]:
    size = (3.6 * len(models), 3.2)
    figure, panels = plt.subplots(1, len(models), figsize=size, sharey=True, squeeze=False)
    for axes, model in zip(panels[0], models, strict=True):
        axes.set_title(f"{model} model")
    return figure, list(panels[0])


def plot_calibration(p_values: pd.DataFrame, level: float = 0.95) -> Figure:
    """Draw the empirical law of p-values under H0, a column each test, and the band of uniform."""
    figure, axes = plt.subplots()
    band, grid = dkw_band(len(p_values), level), np.linspace(0, 1, 101)
    low, high = (np.clip(grid + side, 0, 1) for side in (-band, band))
    axes.fill_between(grid, low, high, color="0.85", label=f"uniform, {level:.0%} band")
    for name in p_values:
        x, y = ecdf(p_values[name])
        (line,) = axes.step([0, *x], [0, *y], where="post", lw=1.4)
        line.set(label=TESTS[name].label, color=TESTS[name].colour)
    axes.set(xlabel="p", ylabel="Share of p-values at or below", xlim=(0, 1), ylim=(0, 1))
    axes.legend(loc="lower right")
    return figure
