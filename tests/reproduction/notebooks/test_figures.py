"""Every figure draws the numbers of its table, in lines, bars, intervals, cells or texts."""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain, product

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgba
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from contamination.audit.registry import COMPARED, TESTS, variant_name
from contamination.statistics import dkw_band
from contamination.tables import read_csv
from fakes.data_fixtures import ROOT
from fakes.made_up_runs import STRONG, made_up
from reproduction.notebooks.assumptions.figures import plot_cross, plot_density
from reproduction.notebooks.beyond.figures import plot_calibration as plot_levels
from reproduction.notebooks.beyond.figures import plot_power_per_token
from reproduction.notebooks.canaries.tables import with_floors
from reproduction.notebooks.controlled.figures import plot_controlled
from reproduction.notebooks.controlled.tables import MEAN, RATE, auc_table
from reproduction.notebooks.min_k.figures import plot_min_k
from reproduction.notebooks.mmlu.figures import plot_ecdf, plot_segmentations
from reproduction.notebooks.open_models.figures import plot_open_models
from reproduction.notebooks.options.figures import plot_axes
from reproduction.notebooks.papers.figures import plot_papers
from reproduction.notebooks.seminar.figures import plot_differences
from reproduction.notebooks.start.figures import plot_gains, plot_orderings, plot_sets
from reproduction.notebooks.wikimia.figures import plot_wikimia
from reproduction.notebooks.wikimia.texts import CONTROL, READ_HERE
from reproduction.output.figures import (
    MODEL_COLOURS,
    READ,
    UNREAD,
    WIDEST,
    mean_log10_p,
    plot_power,
    plot_settings,
)
from reproduction.output.line_labels import GAP, label_ends

RNG = np.random.default_rng(0)
MODELS = ("contaminated", "clean")
INTERVAL = ["auc", "auc_low", "auc_high"]
LABELS = {"loss": "PPL", "min_k_20": "Min-20%"}

reference = partial(read_csv, ROOT / "results" / "reference")

Case = tuple[Figure, Iterable[object]]


def numbers(*shape: int) -> np.ndarray:
    return RNG.uniform(-9, -1, shape)


def table(**columns: Iterable[object]) -> pd.DataFrame:
    """A row for each combination of the values."""
    return pd.MultiIndex.from_product(columns.values(), names=list(columns)).to_frame(index=False)


def with_numbers(rows: pd.DataFrame, *names: str) -> pd.DataFrame:
    return rows.assign(**{name: numbers(len(rows)) for name in names})


def canaries() -> Case:
    rows = reference("canaries").query("model == 'contaminated'")
    figure = plot_power({"all": with_floors(rows)}, TESTS.values())
    counts = set(chain.from_iterable(line.get_xdata() for line in figure.axes[0].lines[1:]))
    assert counts - {0.0, 1.0} <= set(rows["dup_count"])  # no mean beside its count
    means = rows.groupby(["dup_count", "test"])["log10_p"].mean()
    texts = ["all", "single sets", "at the least p of its test", "Successor"]
    return figure, [*-rows["log10_p"], *-means, *texts]


def ablation() -> Case:
    rows = with_numbers(table(dataset=("a", "b"), shards=(5, 10), test=COMPARED), "log10_p")
    means = mean_log10_p(rows, "shards")
    drawn = [*-rows["log10_p"], *-means["mean_log10_p"], "Shards"]
    return plot_settings({"": rows}, "shards", "Shards"), drawn


def start_orderings() -> Case:
    scores = dict(zip(MODELS, numbers(2, 5), strict=True))
    gains = [values - values[1:].mean() for values in scores.values()]
    return plot_orderings({"a": scores}), [*np.concatenate(gains), "4 shuffled orders"]


def start_sets() -> Case:
    rows = reference("start")
    figure = plot_sets(rows)
    assert figure.axes[0].yaxis_inverted()  # more copies further down, as in the tables
    return figure, [*-rows["log10_p"], "signature-64 (64 ×)", "Clean model"]


def start_gains() -> Case:
    gains = numbers(2, 3)
    return plot_gains({"a": dict(zip(MODELS, gains, strict=True))}), [*gains.ravel(), 3, "a"]


def beyond_power() -> Case:
    rows = reference("power_per_token")
    tests = [variant_name(n, TESTS[n].b) for n in COMPARED]
    figure = plot_power_per_token(rows)
    assert len({axes.get_ylim() for axes in figure.axes}) == 1
    whole = rows[(rows["fraction"] == 1) & rows["test"].isin(tests)].fillna({"se_log10_p": 0.0})
    means, errors = -whole["mean_log10_p"], whole["se_log10_p"]
    return figure, [*means, *(means - errors), "Copies read: 16"]


def beyond_levels() -> Case:
    """Extreme numbers of shards, and of each extreme numbers of permutations."""
    rows = reference("calibration").query("alpha == 0.05")
    fewest = rows.groupby(["scores", "test"])["shards"].transform("min")
    ends = rows[rows["shards"] == fewest]
    permutations = ends.groupby(["scores", "test"])["permutations"]
    ends = ends[ends["permutations"] == permutations.transform("max")]
    drawn = ends[["rate", "low", "high"]].to_numpy().ravel()
    figure = plot_levels(reference("calibration"), 0.05)
    points = [bar for bar in figure.axes[0].containers if isinstance(bar, ErrorbarContainer)]
    assert len(points) <= 4 * rows.groupby(["scores", "test"]).ngroups
    return figure, [*drawn, "shards: 5", "permutations: 50", "Anytime-valid: all tokens"]


def controlled() -> Case:
    rows = auc_table(made_up(STRONG, half=20), rng=np.random.default_rng(0), resamples=20)
    shown = (rows["dataset"] == MEAN) | (rows["contaminant"] == "in-distribution")
    drawn = rows.loc[shown & (rows["experiment"] != RATE), "auc"]
    return plot_controlled(rows, LABELS), [*drawn, *LABELS.values(), "before training", "chance"]


def min_k() -> Case:
    sets = table(model=MODELS, dataset=("a", "b"))
    sets["dup_count"] = sets["dataset"].map({"a": 1, "b": 8})
    shares = with_numbers(sets.merge(pd.DataFrame({"score": list(LABELS)}), how="cross"), "x")
    shares = shares.rename(columns={"x": "share_detected"})
    tests = sets.merge(pd.DataFrame({"test": COMPARED[:2]}), how="cross")
    tests["holm_p"] = np.where(tests["dup_count"] * (tests["model"] != "clean") == 8, 0.01, 0.2)
    twins = sets.assign(holm_p=np.where(sets["model"] == "clean", 0.2, 0.01))
    elsewhere = twins.assign(dataset="in no table of notebook 01")
    figure = plot_min_k(
        shares,
        tests,
        LABELS,
        held_out=pd.concat([twins, elsewhere]),
        tests=COMPARED[:2],
        fpr=0.03,
        alpha=0.05,
    )
    drawn = [*100 * shares["share_detected"], 3, "0/2", "0/1", "1/1", "0 (clean)"]
    return figure, [*drawn, "Held-out twins"]


def seminar_differences() -> Case:
    scores = numbers(2, 3)
    s = scores[:, 0] - scores[:, 1:].mean(axis=1)
    return plot_differences({"clean": scores}), [*s, s.mean()]


def open_models() -> Case:
    rows = reference("open_models")
    rows.loc[0, "published_p"] = 1e-12
    return plot_open_models(rows, 0.05), [*-rows["log10_p"], 12, "contaminated", "published"]


def mmlu_ecdf() -> Case:
    few = np.linspace(0.1, 0.9, 5)
    many = np.linspace(0.01, 1, 50)
    figure = plot_ecdf({"Published": {"A": many, "D": []}, "Measured": {"B": few}, "None": {}})
    assert [axes.get_title() for axes in figure.axes] == ["Published", "Measured"]
    band = figure.axes[1].collections[0].get_paths()[0].vertices[:, 1]
    assert band.max() == pytest.approx(1 + dkw_band(5, 0.95))
    return figure, [*few, *many, 0.2, 0.4, 0.6, 0.8, "95% band of uniform p", "A"]


def mmlu_lines() -> Case:
    subsets = {"nutrition": (2.0, False), "anatomy": (1.0, False), "us_law": (1.0, True)}
    rows = table(subset=list(subsets), segmentation=("record", "line"), test=("sharded_t",))
    rows[["lines_per_record", "excluded_in_paper"]] = [subsets[name] for name in rows["subset"]]
    rows = with_numbers(rows.assign(model="clean"), "log10_p", "compressor_log10_p")
    shown = rows[rows["subset"] != "anatomy"]  # one line each, and not excluded
    figure = plot_segmentations(rows.astype({"excluded_in_paper": "boolean"}))
    weights = {text.get_text(): text.get_fontweight() for text in figure.axes[0].get_yticklabels()}
    assert weights == {"US Law (1.0)": "bold", "Nutrition (2.0)": "normal"}
    return figure, [*-shown["log10_p"], *-shown["compressor_log10_p"], "clean, sharded t"]


def papers() -> Case:
    rows = table(paper=("Oren et al.",), table=("Table 1", "Table 2"), unit=("log10 p", "AUC"))
    rows = with_numbers(rows, "ours", "published").assign(status="ok")
    figure = plot_papers(pd.concat([rows, rows.assign(status="failed: gone", ours=np.nan)]))
    sign = np.where(rows["unit"] == "log10 p", -1, 1)
    drawn = [*sign * rows["ours"], *sign * rows["published"]]
    return figure, [*drawn, "−log10 p", "AUC", "Oren, Table 2", "equal"]


def options() -> Case:
    rows = reference("options")
    drawn = [*-rows["log10_p"], *-rows["control_log10_p"]]
    return plot_axes(rows), [*drawn, "Whole", "Single records", "Both, by Fisher", "clean model"]


def wikimia() -> Case:
    """Models that have read neither side may tell dates apart: the control is the benchmark's."""
    rows = reference("wikimia").query("source == 'read here' or source == 'control'")
    other = rows.replace({"source": {READ_HERE: "other", CONTROL: f"{CONTROL} (other)"}})
    other[INTERVAL] += 0.01
    figure = plot_wikimia(pd.concat([rows, other]), source="other", length=64)
    assert [axes.get_title() for axes in figure.axes] == [
        "Texts of 64 words",
        "Largest model (clean)",
    ]
    drawn, control = (other[other["source"].str.startswith(one)] for one in ("other", CONTROL))
    unread = control[control["model"] == "clean"].groupby("length")["auc"].agg(["min", "max"])
    bands = [bar.get_bbox().intervaly for bar in figure.axes[1].patches]
    np.testing.assert_allclose(bands, unread)
    panels = (drawn[drawn["length"] == 64], drawn[drawn["model"] == "clean"])
    for axes, shown in zip(figure.axes, panels, strict=True):
        bars = [one for one in axes.containers if isinstance(one, ErrorbarContainer)]
        points = np.concatenate([one.lines[0].get_ydata() for one in bars])
        assert sorted(points) == sorted(shown["auc"])
    return figure, [
        *panels[0][INTERVAL].to_numpy().ravel(),
        *panels[1][INTERVAL].to_numpy().ravel(),
    ]


CROSS = {"seen_domain": ("b", "a"), "unseen_domain": ("b", "a", "c"), "metric": ("loss", "mem_25")}


def assumptions_cross() -> Case:
    rows = table(phase=("fine-tuning",), **CROSS).assign(auc_percent=np.arange(40.0, 52))
    figure = plot_cross(rows, CROSS["metric"], "fine-tuning")
    for axes, metric in zip(figure.axes, CROSS["metric"], strict=False):
        cells = rows.loc[rows["metric"] == metric, "auc_percent"].tolist()
        assert [float(text.get_text()) for text in axes.texts] == cells
        assert axes.collections[0].get_clim() == (0, 100)
        frames = [patch.get_xy() for patch in axes.patches if isinstance(patch, Rectangle)]
        assert sorted(frames) == [(0, 0), (1, 1)]
    return figure, ["PPL", "Mem 25", *"abc"]


def assumptions_density() -> Case:
    """All domains with both sides, and the pair furthest apart: here a against c."""
    levels, phases = {"b": 0, "a": 5, "c": 10}, ("pre-training", "fine-tuning")
    cross = table(phase=phases, **CROSS)
    cross["auc_percent"] = 50.0 + 10 * cross["unseen_domain"].map(levels) + cross.index / 100
    cross["auc_percent"] += cross["seen_domain"] == "a"
    scored = table(phase=phases, domain=levels, member=(True, False), text=range(30))
    scored = scored[(scored["domain"] != "c") | ~scored["member"]]
    scored = scored.assign(loss=scored["domain"].map(levels) + RNG.normal(size=len(scored)))
    figure = plot_density(scored, cross, "loss")
    for axes in figure.axes[1::2]:
        densities = [collection.get_paths()[0].vertices for collection in axes.collections]
        peaks = [points[points[:, 1].argmax(), 0] for points in densities]
        assert peaks == pytest.approx([10, 5], abs=1)  # non-members, members
    pairs = ("within domains", "a against c")
    return figure, [", ".join(panel) for panel in product(phases, pairs)]


CASES = (canaries, ablation, start_orderings, start_sets, start_gains, beyond_power, beyond_levels)
CASES += (controlled, min_k, seminar_differences)
CASES += (open_models, mmlu_ecdf, mmlu_lines, papers, options, wikimia)
CASES += (assumptions_cross, assumptions_density)


def drawn_in(figure: Figure) -> tuple[np.ndarray, set[str]]:
    """All numbers that marks, lines, bars, intervals and cells stand at, and all texts."""
    figure.draw_without_rendering()
    found = [np.empty(0)]
    for axes in figure.axes:
        for line in axes.lines:
            found += [np.asarray(data, float) for data in line.get_data()]
        found += [bar.get_bbox().extents for bar in axes.patches]
        for collection in axes.collections:
            found += [path.vertices for path in collection.get_paths()]
            found.append(np.ma.filled(collection.get_offsets().astype(float), np.nan))
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


def test_points_that_have_reached_the_least_p_are_hollow() -> None:
    rows = pd.DataFrame({"dup_count": [1, 2], "dataset": ["a", "b"], "log10_p": [-1.0, -2.0]})
    rows = rows.assign(test="permutation", floor_log10_p=-2.0)
    points, _ = plot_power({"": rows}, TESTS.values()).axes[0].collections  # and a label's mark
    white = [tuple(face[:3]) == (1.0, 1.0, 1.0) for face in points.get_facecolors()]
    assert white == [False, True]


def test_labels_of_lines_that_end_at_one_place_do_not_hide_each_other() -> None:
    figure, axes = plt.subplots()
    lines = [axes.plot([0, 1], [0, 1], label=name)[0] for name in ("one", "other")]
    label_ends(axes, lines)
    heights = sorted(text.get_position()[1] for text in axes.texts)
    marks = [mark.get_edgecolor()[0] for mark in axes.collections]
    assert np.allclose(marks, [to_rgba(line.get_color()) for line in lines])
    assert heights[1] - heights[0] == pytest.approx(GAP)
    plt.close(figure)


def test_a_curve_has_its_own_colour_in_all_panels_and_stands_once_in_the_key() -> None:
    p_values = np.linspace(0.1, 0.9, 5)
    panels = {"one": {"A": p_values}, "other": {"B": p_values, "A": p_values}}
    figure = plot_ecdf(panels)
    drawn = [line for axes in figure.axes for line in axes.lines]
    colours = {(line.get_label(), line.get_color()) for line in drawn}
    assert len(colours) == len({colour for _, colour in colours}) == len(("A", "B", "uniform"))
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert sorted(names) == ["95% band of uniform p", "A", "B", "uniform"]


def test_a_test_has_its_own_colour_in_every_figure_and_no_model_has_it() -> None:
    p_values = np.linspace(0.1, 0.9, 5)
    curves = {"Sharded exact, Monte Carlo": p_values, "a model": p_values, "Sharded t": p_values}
    lines = {line.get_label(): line.get_color() for line in plot_ecdf({"": curves}).axes[0].lines}
    assert lines["Sharded exact, Monte Carlo"] == TESTS["sharded_exact"].colour
    assert lines["Sharded t"] == TESTS["sharded_t"].colour
    of_tests = {test.colour for test in TESTS.values()}
    assert of_tests.isdisjoint({*MODEL_COLOURS, READ, UNREAD})


def test_a_key_is_no_wider_than_its_figure() -> None:
    rows = reference("open_models")
    rows["model"] = rows["model"] + " trained on twelve languages"
    figure = plot_open_models(rows, 0.05)
    figure.set_figwidth(WIDEST)
    figure.draw_without_rendering()
    key = figure.legends[0].get_window_extent()
    assert key.x0 >= 0 and key.x1 <= figure.bbox.width


def test_small_probabilities_have_a_logarithmic_axis() -> None:
    values = 10.0 ** RNG.normal(-8, 1, 60)
    scored = table(phase=("pre-training",), domain=("a",), member=(True, False), text=range(30))
    scored = scored.assign(min_prob_25=values)
    cross = table(phase=("pre-training",), seen_domain=("a",), unseen_domain=("a",))
    cross = cross.assign(metric="min_prob_25", auc_percent=50.0)
    assert plot_density(scored, cross, "min_prob_25").axes[0].get_xscale() == "log"
