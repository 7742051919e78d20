"""Every figure draws the numbers of its table, in lines, bars, intervals, cells or texts."""

from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from contamination.audit.battery import COMPARED, TESTS, variant_name
from contamination.membership.books import SCORES
from fakes.made_up_runs import STRONG, made_up
from reproduction.notebooks.ablation.figures import plot_ablation
from reproduction.notebooks.beyond.figures import plot_calibration as plot_levels
from reproduction.notebooks.beyond.figures import plot_power_per_token
from reproduction.notebooks.books.figures import plot_books
from reproduction.notebooks.books.tables import AGAIN, UNREAD, VALIDATIONS
from reproduction.notebooks.controlled.figures import plot_controlled
from reproduction.notebooks.controlled.tables import MEAN, RATE, auc_table
from reproduction.notebooks.min_k.figures import plot_min_k
from reproduction.notebooks.seminar import figures as seminar
from reproduction.notebooks.start.figures import plot_gains, plot_orderings, plot_sets
from reproduction.notebooks.unlearning.figures import plot_unlearning
from reproduction.output.evidence import mean_log10_p, plot_power

RNG = np.random.default_rng(0)
MODELS = ("contaminated", "clean")
INTERVAL = ["auc", "auc_low", "auc_high"]
LABELS = {"loss": "PPL", "min_k_20": "Min-20%"}

Case = tuple[Figure, Iterable[object]]


def numbers(*shape: int) -> np.ndarray:
    return RNG.uniform(-9, -1, shape)


def table(**columns: Iterable[object]) -> pd.DataFrame:
    """A row for each combination of the values."""
    return pd.MultiIndex.from_product(columns.values(), names=list(columns)).to_frame(index=False)


def with_numbers(rows: pd.DataFrame, *names: str) -> pd.DataFrame:
    return rows.assign(**{name: numbers(len(rows)) for name in names})


def canaries() -> Case:
    rows = with_numbers(table(dup_count=(1, 7, 64), test=COMPARED, set=(1, 2)), "log10_p")
    means = rows.groupby(["dup_count", "test"])["log10_p"].mean()
    return plot_power({"all": rows}, TESTS.values()), [*rows["log10_p"], *means, "all"]


def ablation() -> Case:
    rows = with_numbers(table(dataset=("a", "b"), shards=(5, 10), test=COMPARED), "log10_p")
    means = mean_log10_p(rows, "shards")
    drawn = [*rows["log10_p"], *means["mean_log10_p"], "Shards"]
    return plot_ablation(means, rows, "shards", "Shards"), drawn


def start_orderings() -> Case:
    scores = dict(zip(MODELS, numbers(2, 5), strict=True))
    gains = [values - values[1:].mean() for values in scores.values()]
    return plot_orderings({"a": scores}), [*np.concatenate(gains), "4 shuffled orders"]


def start_sets() -> Case:
    rows = table(model=MODELS, dataset=("few", "many"), test=("sharded_t", "successor"))
    rows = with_numbers(rows, "log10_p").assign(dup_count=rows["dataset"].map(len))
    return plot_sets(rows), [*rows["log10_p"], "few (3 ×)", "many (4 ×)"]


def start_gains() -> Case:
    gains = numbers(2, 3)
    return plot_gains({"a": dict(zip(MODELS, gains, strict=True))}), [*gains.ravel(), 3, "a"]


def beyond_power() -> Case:
    tests = [variant_name(name, TESTS[name].b) for name in COMPARED]
    rows = table(dup_count=(1, 8), test=tests, fraction=(0.5, 1.0), passes=(2, 10))
    rows = with_numbers(rows, "mean_log10_p").assign(se_log10_p=0.5)
    whole = rows.loc[rows["fraction"] == 1, "mean_log10_p"]
    return plot_power_per_token(rows), [*whole, *(whole - 0.5), "Duplication count 8"]


def beyond_levels() -> Case:
    kinds = {"scores": ("sum", "successor"), "test": ("sharded_t", "anytime")}
    rows = table(**kinds, shards=(5, 9), alpha=(0.05, 0.01))
    rows = with_numbers(rows, "rate").assign(low=rows.index * 1.0 - 99, high=rows.index + 99.0)
    chosen = rows[rows["alpha"] == 0.05]
    drawn = chosen[["rate", "low", "high"]].to_numpy().ravel()
    return plot_levels(rows, 0.05), [*drawn, "5 shards", "Anytime-valid: successor"]


def books() -> Case:
    aucs = with_numbers(table(validation=VALIDATIONS.values(), score=list(SCORES)), *INTERVAL)
    aucs[INTERVAL] = np.sort(aucs[INTERVAL])[:, [1, 0, 2]]
    rates = table(validation=VALIDATIONS.values(), truth=(AGAIN, UNREAD), book=range(3))
    rates = with_numbers(rates, "rate").assign(validation_fpr=0.125)
    means = rates.groupby(["validation", "truth"])["rate"].mean()
    drawn = [*aucs[INTERVAL].to_numpy().ravel(), *100 * rates["rate"], *100 * means, 50, 12.5]
    return plot_books(aucs, rates, accused=0.5), [*drawn, *SCORES.values()]


def controlled() -> Case:
    rows = auc_table(made_up(STRONG, half=20), rng=np.random.default_rng(0), resamples=20)
    shown = (rows["dataset"] == MEAN) | (rows["contaminant"] == "in-distribution")
    drawn = rows.loc[shown & (rows["experiment"] != RATE), "auc"]
    return plot_controlled(rows, LABELS), [*drawn, *LABELS.values(), "before training"]


def min_k() -> Case:
    sets = table(model=MODELS, dataset=("a", "b"))
    sets["dup_count"] = sets["dataset"].map({"a": 1, "b": 8})
    shares = with_numbers(sets.merge(pd.DataFrame({"score": list(LABELS)}), how="cross"), "x")
    shares = shares.rename(columns={"x": "share_detected"})
    tests = sets.merge(pd.DataFrame({"test": COMPARED[:2]}), how="cross")
    tests["holm_p"] = np.where(tests["dup_count"] * (tests["model"] != "clean") == 8, 0.01, 0.2)
    figure = plot_min_k(shares, tests, LABELS, tests=COMPARED[:2], fpr=0.03, alpha=0.05)
    return figure, [*100 * shares["share_detected"], 3, "0/2", "0/1", "1/1", "0 (clean)"]


def unlearning() -> Case:
    rows = pd.DataFrame({"treated": [True, False, False, True], "suspicious": [False, True] * 2})
    rows = with_numbers(rows, "completion_original", "completion_clean", "answers_original")
    rows = rows.assign(ratio=[3.0, 1.0, 0.9, 2.0], answers_clean=np.nan)
    means = rows.groupby("suspicious")[["completion_original", "completion_clean"]].mean()
    return plot_unlearning(rows, window=1.15), [*rows["ratio"], *means.to_numpy().ravel(), 1.15]


def seminar_differences() -> Case:
    scores = numbers(2, 3)
    s = scores[:, 0] - scores[:, 1:].mean(axis=1)
    return seminar.plot_differences({"clean": scores}), [*s, s.mean()]


def seminar_successors() -> Case:
    matrix = np.where(np.eye(4, dtype=bool), np.nan, numbers(4, 4))
    return seminar.plot_successors({"clean": matrix}), matrix[~np.isnan(matrix)]


def seminar_calibration() -> Case:
    p = pd.DataFrame({"one": RNG.random(9), "successor": RNG.random(9)})
    return seminar.plot_calibration(p), [*p.to_numpy().ravel(), 1 / 9, "one", "Successor"]


CASES = (canaries, ablation, start_orderings, start_sets, start_gains, beyond_power, beyond_levels)
CASES += (books, controlled, min_k, unlearning, seminar_differences, seminar_successors)
CASES += (seminar_calibration,)


def drawn_in(figure: Figure) -> tuple[np.ndarray, set[str]]:
    """All numbers that marks, lines, bars, intervals and cells stand at, and all texts."""
    figure.canvas.draw()
    found = [np.empty(0)]
    for axes in figure.axes:
        found += [np.asarray(data, float) for line in axes.lines for data in line.get_data()]
        found += [bar.get_bbox().extents for bar in axes.patches]
        found += [np.ma.filled(image.get_array(), np.nan) for image in axes.images]
        for collection in axes.collections:
            if isinstance(collection, LineCollection):
                found += collection.get_segments()
    texts = {text.get_text() for text in figure.findobj(lambda one: hasattr(one, "get_text"))}
    return np.concatenate([np.ravel(one) for one in found]), texts


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_a_figure_draws_the_numbers_of_its_table(case: Callable[[], Case]) -> None:
    figure, wanted = case()
    values, texts = drawn_in(figure)
    for one in wanted:
        if isinstance(one, str):
            assert one in texts
        else:
            assert np.isclose(values, one, rtol=1e-9).any(), one


def test_a_test_keeps_its_colour_whatever_stands_beside_it() -> None:
    rows = with_numbers(table(dataset=("a",), shards=(5, 10), test=COMPARED), "log10_p")
    for shown in (rows, rows[rows["test"] != COMPARED[0]].iloc[::-1]):
        figure = plot_ablation(mean_log10_p(shown, "shards"), shown, "shards", "Shards")
        lines = {line.get_label(): line for line in figure.axes[0].lines}
        for name in set(shown["test"]):
            assert to_hex(lines[TESTS[name].label].get_color()) == TESTS[name].colour.lower()
