"""From what was scored to p-values, and from these to the tables and the figure of the study."""

import itertools
import math
from collections.abc import Iterable, Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from candidates import added_sizes, pair_scores, triple_scores
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from scored import FIRST, PAIRS, SHARD, kept, opened, pairs

from contamination.errors import InputError
from contamination.randomness import random_stream
from contamination.scoring.store import Store
from contamination.statistics import (
    adjust,
    fisher,
    pooled_exact_test,
    sharded_exact_p_values,
    sharded_exact_test,
)
from contamination.tables import SIGNIFICANT
from reproduction.output.figures import EVIDENCE, mark_level
from reproduction.run.experiment import Experiment

DEFAULT = "plain, b = 32, k = 10"
PLAIN = {f"plain, b = {b}, k = {k}": (b, k) for k in (SHARD, PAIRS) for b in (32, FIRST)}
WHITE_BOX = ("orderings", "gradient_norm", "after_step")
PASSES = {"orderings": 1, "gradient_norm": 3, "after_step": 4}  # a backward pass counts as two
CANDIDATES = (*PLAIN, "context_alone", "context", "sizes", *WHITE_BOX, "triples")
PARTS = {"frontier": "choosing", "frontier-2": "confirming"}
SMALL = 64  # width of the model that `sizes` adds
STRICT = 0.001
COUNTS = (1, 2, 4)  # copies
DECIDING = (2, 4)
REDRAWS, DRAWS = 1_000, 10_000
COLOURS = ("#CC79A7", "#0072B2", "#D55E00", "#009E73", "#E69F00", "#56B4E9", "#000000", "#999999")
# As docs/power.md calls them.
LABELS = {
    "context_alone": "context alone",
    "gradient_norm": "gradient norm",
    "after_step": "after a step",
}
FILLS = {"choosing": "none", "confirming": "full"}
KEYS = ["part", "width", "dup_count", "candidate"]


def _stream(experiment: Experiment, name: str, size: int, shard: int) -> np.random.Generator:
    """Return the stream that samples orderings of a shard, one for all candidates of this size."""
    revision = experiment.test_set(name).revision
    return random_stream(experiment.profile.seed, "frontier", revision, size, shard)


def _matrices(store: Store, b: int, size: int) -> list[np.ndarray]:
    """S (size, size) of every shard of a size that divides the shards of the store."""
    found = []
    for shard in range(store.header.shards):
        whole = store.successors(shard, b)
        found += [whole[i : i + size, i : i + size] for i in range(0, len(whole), size)]
    return found


def _stacked(
    experiment: Experiment, name: str, matrices: Iterable[np.ndarray], resolution: float
) -> np.ndarray:
    rows = [
        pair_scores(
            matrix,
            resolution=resolution,
            rng=_stream(experiment, name, len(matrix), shard),
        )
        for shard, matrix in enumerate(matrices)
    ]
    return np.stack(rows)


def _plain_tokens(store: Store, b: int, size: int) -> int:
    """Tokens read for shards of a size: every record once, and b tokens of each successor."""
    lengths = np.asarray(store.header.example_tokens)
    return int(lengths.sum() + (size - 1) * lengths.clip(max=b).sum())


def _scores(experiment: Experiment, name: str, small: Experiment) -> dict[str, tuple[Any, float]]:
    """Scores (r, n + 1) and tokens read of every candidate that was scored."""
    found: dict[str, tuple[Any, float]] = {}
    try:
        store = pairs(experiment, name, score=False)
    except InputError:
        return found
    for candidate, (b, size) in PLAIN.items():
        matrices = _matrices(store, b, size)
        rows = _stacked(experiment, name, matrices, store.resolution(b))
        found[candidate] = rows, _plain_tokens(store, b, size)
    if (context := kept(experiment, name, "context")) is not None:
        read = float(context["tokens"])
        plain = _matrices(store, FIRST, SHARD)
        noise = store.resolution(FIRST)
        alone = _stacked(experiment, name, context["sums"], noise)
        both = [s + other for s, other in zip(plain, context["sums"], strict=True)]
        found["context_alone"] = alone, read
        total = read + _plain_tokens(store, FIRST, SHARD)
        found["context"] = _stacked(experiment, name, both, noise), total
    if small is not experiment:
        try:
            other = pairs(small, name, score=False)
        except InputError:
            pass
        else:
            each = [_matrices(s, 32, SHARD) for s in (other, store)]
            noises = [s.resolution(32) for s in (other, store)]
            summed = [added_sizes(both, noises) for both in zip(*each, strict=True)]
            # Already in units of its spread: nothing is left to call a tie.
            total = 2 * _plain_tokens(store, 32, SHARD)
            found["sizes"] = _stacked(experiment, name, summed, 0.0), total
    if (white := kept(experiment, name, "white_box")) is not None:
        for candidate, rows in zip(WHITE_BOX, white["scores"], strict=True):
            found[candidate] = rows, PASSES[candidate] * float(white["tokens"])
    if (triples := kept(experiment, name, "triples")) is not None:
        rows = np.stack([triple_scores(t) for t in triples["sums"]])
        found["triples"] = rows, float(triples["tokens"])
    return found


def p_values(experiment: Experiment, profile: str, width: int) -> pd.DataFrame:
    """A row for each set and candidate that was scored: log10_p and passes."""
    small = experiment if width == SMALL else opened(profile, SMALL)
    rows = []
    for spec in experiment.profile.canaries:
        scores = _scores(experiment, spec.name, small)
        size = sum(pairs(experiment, spec.name, score=False).header.example_tokens) if scores else 1
        for candidate, (values, tokens) in scores.items():
            rows.append(
                {
                    "part": PARTS[profile],
                    "width": width,
                    "candidate": candidate,
                    "dataset": spec.name,
                    "dup_count": spec.dup_count,
                    "passes": tokens / size,
                    "log10_p": sharded_exact_test(values).log10_p,
                }
            )
    return pd.DataFrame(rows, columns=[*KEYS, "dataset", "passes", "log10_p"])


def measured(rows: pd.DataFrame, runs: Iterable[tuple[str, int]]) -> pd.DataFrame:
    """Means over sets by part, width, copies and candidate, and what was not run."""
    table = []
    for profile, width in runs:
        for candidate in CANDIDATES:
            if candidate == "sizes" and width == SMALL:
                continue
            for count in COUNTS:
                key = [PARTS[profile], width, count, candidate]
                row: dict[str, Any] = dict(zip(KEYS, key, strict=True))
                chosen = rows[(rows[KEYS] == key).all(axis=1)]
                if len(chosen) == 0:
                    table.append(row | {"status": "not run here"})
                    continue
                values = chosen["log10_p"]
                table.append(
                    row
                    | {
                        "sets": len(values),
                        "passes": chosen["passes"].mean(),
                        "mean_log10_p": values.mean(),
                        "se_log10_p": values.sem(),
                        "rejected_05": (values <= math.log10(SIGNIFICANT)).mean(),
                        "rejected_001": (values <= math.log10(STRICT)).mean(),
                        "status": "ok",
                    }
                )
    return pd.DataFrame(table).astype({"sets": "Int64"})


def beside(before: pd.DataFrame, table: pd.DataFrame, run: str) -> pd.DataFrame:
    """Rows of a run after those of other runs; "not run here" is left where no run has the row."""
    table = table.assign(run=run)
    together = pd.concat([before[before["run"] != run], table], ignore_index=True)
    if "status" in together:
        done = together["status"] == "ok"
        keys = pd.MultiIndex.from_frame(together[KEYS])
        never = ~keys.isin(keys[done]) & ~together.duplicated(KEYS)
        together = together[done | never]
    return together[["run", *(name for name in together if name != "run")]]


def baseline_of(candidate: str) -> str:
    """Return the statistic with which a candidate is compared first."""
    return "orderings" if candidate in WHITE_BOX else DEFAULT


def equal_cost(passes: Mapping[str, float], candidate: str) -> str | None:
    """The plain variant that reads most without reading more than the candidate, or None."""
    room = passes[candidate] * (1 + 1e-9)
    able = [name for name in PLAIN if name != candidate and passes.get(name, math.inf) <= room]
    return max(able, key=passes.__getitem__, default=None)


def decisions(rows: pd.DataFrame) -> pd.DataFrame:
    """Differences in log10 p on the same sets with 2 and 4 copies, and by count.

    `copies` is "2 and 4" where the protocol decides. The interval is of 10,000 bootstrap draws of
    sets.
    """
    rng = random_stream(0, "bootstrap")
    table = []
    for (part, width), group in rows.groupby(["part", "width"]):
        wide = group.pivot(index=["dup_count", "dataset"], columns="candidate", values="log10_p")
        passes = group.groupby("candidate")["passes"].mean().to_dict()
        for candidate in [name for name in CANDIDATES if name in wide]:
            against = {
                "baseline": baseline_of(candidate),
                "equal cost": equal_cost(passes, candidate),
            }
            for what, other in against.items():
                if other in (None, candidate) or other not in wide:
                    continue
                less = wide[candidate] - wide[other]
                copies = less.index.get_level_values("dup_count")
                cuts = {"2 and 4": less[copies.isin(DECIDING)]}
                cuts |= {str(count): less[copies == count] for count in sorted(set(copies))}
                for name, values in cuts.items():
                    draws = rng.choice(values.to_numpy(), (DRAWS, len(values))).mean(axis=1)
                    low, high = np.percentile(draws, [2.5, 97.5])
                    table.append(
                        {
                            "part": part,
                            "width": width,
                            "candidate": candidate,
                            "comparison": what,
                            "against": other,
                            "copies": name,
                            "sets": len(values),
                            "difference": values.mean(),
                            "se": values.sem(),
                            "low": low,
                            "high": high,
                        }
                    )
    return pd.DataFrame(table)


def size_differences(rows: pd.DataFrame) -> pd.DataFrame:
    """Differences in the default's log10 p between a size and the next, on the same sets.

    Negative where the larger model shows more. `part` is one seed, or "both" seeds' sets together.
    """
    default = rows[rows["candidate"] == DEFAULT].assign(seed=rows["part"])
    both = pd.concat([default, default.assign(part="both")])
    keys = ["part", "dup_count", "seed", "dataset"]  # sets of both seeds have the same names
    wide = both.pivot(index=keys, columns="width", values="log10_p")
    table = []
    for small, large in itertools.pairwise(sorted(wide)):
        for (part, count), values in (wide[large] - wide[small]).groupby(["part", "dup_count"]):
            found = values.dropna()
            row = {"part": part, "smaller": small, "larger": large, "dup_count": count}
            row |= {"sets": len(found), "difference": found.mean(), "se": found.sem()}
            table.append(row)
    return pd.DataFrame(table)


def pooled(runs: Mapping[tuple[str, int], Experiment]) -> pd.DataFrame:
    """All sets of a count in one p-value, beside Fisher's and Holm's of the same sets.

    `calibration` is the share of 1,000 redraws of the published orderings with p <= 0.05.
    """
    table = []
    for (profile, width), experiment in runs.items():
        for count, sets in _by_count(experiment).items():
            alone = [sharded_exact_test(scores).log10_p for scores in sets]
            rows = np.concatenate(sets)
            rng = random_stream(experiment.profile.seed, "frontier redraws", count)
            canonical = rng.integers(rows.shape[1], size=(REDRAWS, len(rows)))
            redrawn = sharded_exact_p_values(rows, canonical)
            found = {
                "part": PARTS[profile],
                "width": width,
                "dup_count": count,
                "sets": len(sets),
                "shards": len(rows),
                "pooled_log10_p": pooled_exact_test(sets).log10_p,
                "fisher_log10_p": fisher(log10_p=alone).log10_p,
                "holm_log10_p": float(adjust(log10_p=alone, method="holm").log10_p.min()),
                "mean_log10_p": float(np.mean(alone)),
                "calibration": float((redrawn <= SIGNIFICANT).mean()),
            }
            table.append(found)
    return pd.DataFrame(table)


def _by_count(experiment: Experiment) -> dict[int, list[np.ndarray]]:
    """Scores of the default on every set that was scored, by copies; counts with several sets."""
    found: dict[int, list[np.ndarray]] = {}
    for spec in experiment.profile.canaries:
        try:
            store = pairs(experiment, spec.name, score=False)
        except InputError:
            continue
        rows = _stacked(experiment, spec.name, _matrices(store, 32, SHARD), store.resolution(32))
        found.setdefault(spec.dup_count, []).append(rows)
    return {count: sets for count, sets in found.items() if len(sets) > 1}


def label(candidate: str) -> str:
    """Return what docs/power.md calls a candidate."""
    words = LABELS.get(candidate, candidate).replace("k = ", "shards of ")
    return f"{words} (default)" if candidate == DEFAULT else words


def power_figure(table: pd.DataFrame) -> Figure:
    """Mean -log10 p against passes at 4.3 million parameters, a panel for each number of copies.

    Full markers confirm, hollow ones are of the choosing seed.
    """
    shown = table[(table["status"] == "ok") & (table["width"] == 256)]
    figure, axes = plt.subplots(1, len(COUNTS), figsize=(2.6 * len(COUNTS) + 0.8, 3.9), sharey=True)
    handles: dict[str, Any] = {}
    for panel, count in zip(axes, COUNTS, strict=True):
        for row in shown[shown["dup_count"] == count].to_dict("records"):
            index = CANDIDATES.index(row["candidate"])
            marker = "oD"[index // len(COLOURS)]
            colour = COLOURS[index % len(COLOURS)]
            panel.errorbar(
                row["passes"],
                -row["mean_log10_p"],
                yerr=row["se_log10_p"],
                ls="",
                marker=marker,
                color=colour,
                fillstyle=FILLS[row["part"]],
                ms=6,
                elinewidth=0.8,
            )
            key = Line2D([], [], ls="", marker=marker, color=colour, ms=6)
            handles.setdefault(label(row["candidate"]), key)
        level = mark_level(panel)
        panel.set_xscale("log")
        panel.set_xticks([5, 10, 20, 40], ["5", "10", "20", "40"])
        panel.minorticks_off()
        panel.set_title("1 copy" if count == 1 else f"{count} copies", fontsize="medium")
    for part, fill in FILLS.items():
        key = Line2D([], [], ls="", marker="o", color="0.4", fillstyle=fill, ms=6)
        handles[f"{part} seed"] = key
    handles[f"p = {SIGNIFICANT}"] = level
    figure.supxlabel("Tokens read (passes over the set)", fontsize="medium")
    figure.supylabel(f"Mean {EVIDENCE}", fontsize="medium")
    figure.legend(
        handles.values(), handles.keys(), loc="outside upper center", ncols=3, fontsize="small"
    )
    return figure
