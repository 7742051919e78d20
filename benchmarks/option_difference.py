"""Is a difference against a control, in the same arrangements of options, a test with a level?

    .venv/bin/python benchmarks/option_difference.py simulated
    CONTAMINATION_DATA=DIRECTORY .venv/bin/python benchmarks/option_difference.py models \
        --suspect smollm2-135m --control build/laptop/models/clean --sets mmlu/anatomy ...

A writer puts an item's options into order a with a probability that grows by exp(habit x h[a]), a
taste h that readers share. A model that has read nothing of the set scores x[a] = h[a] + noise, a
control y[a] = competence x h[a] + noise. So the suspect prefers the published order without memory.
Four rules could take that away; each uses the test on shards with equal weights, at 0.05 (by its z,
which is normal for as many items):

- alone: the suspect's p-value, without a control;
- silent control: the suspect rejects and the control does not (what the command does);
- difference: the test of x - y;
- fitted difference: the test of x - b y, with b from least squares over all arrangements.

Writes docs/measurements/option_difference.csv (share of 1,000 sets rejected), or
option_difference_models.csv, the same four of two models on published sets.
"""

import argparse
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from option_quiet import ROOT, SEED, TODAY, by_model, chosen
from scipy.stats import norm
from tqdm import tqdm

from contamination.device import describe
from contamination.errors import InputError
from contamination.files import replacing
from contamination.randomness import random_stream
from contamination.scoring.local import TransformersScorer
from contamination.scoring.models import label
from contamination.testsets.sources import open_test_set

ALPHA, TIMES, ARRANGEMENTS, NOISE = 0.05, 1_000, 8, 2.0
ITEMS, HABITS, COMPETENCES = (100, 1_000), (0.0, 0.2, 0.6), (0.0, 0.5, 0.8, 1.0, 1.25)
Scores = NDArray[np.float64]


def p_values(suspect: Scores, control: Scores) -> dict[str, float]:
    """Every rule's p-value of scores (n, N) in nats, column 0 the published arrangement."""
    x, y = (s - s.mean(axis=1, keepdims=True) for s in (suspect, control))
    slope = float((x * y).sum() / (y * y).sum())
    p, silent, difference, fitted = (
        norm.sf(scores[:, 0].sum() / np.sqrt((scores**2).mean(axis=1).sum()))
        for scores in (x, y, x - y, x - slope * y)
    )
    return {
        "alone": p,
        "control": silent,
        "silent control": 1.0 if silent <= ALPHA else p,
        "difference": difference,
        "fitted difference": fitted,
    }


def simulated_set(
    items: int, habit: float, competence: float, *, rng: np.random.Generator
) -> tuple[Scores, Scores]:
    """Scores (items, N) of a suspect and of a control that have both read nothing."""
    taste = rng.standard_normal((items, ARRANGEMENTS))
    written = (habit * taste + rng.gumbel(size=taste.shape)).argmax(axis=1)  # by exp(habit x h)
    rows = np.arange(items)
    first = taste[:, 0].copy()
    chosen = taste[rows, written].copy()
    taste[rows, written] = first
    taste[:, 0] = chosen
    noise = NOISE * rng.standard_normal((2, *taste.shape))
    return taste + noise[0], competence * taste + noise[1]


def simulated() -> pd.DataFrame:
    """Share of sets that each rule rejects, for every habit, size and competence."""
    rows = []
    cases = product((100, 1_000), (0.0, 0.2, 0.6), (0, 0.5, 0.8, 1, 1.25))
    for items, habit, competence in tqdm(list(cases)):
        rng = random_stream(SEED, "difference", items, habit, competence)
        found = pd.DataFrame(
            p_values(*simulated_set(items, habit, competence, rng=rng)) for _ in range(TIMES)
        )
        rejected = (found <= ALPHA).mean().drop("control")
        rows.append({"items": items, "habit": habit, "competence": competence, **rejected})
    return pd.DataFrame(rows)


def measured(suspect: str, control: str, sets: list[str], stores: Path, most: int) -> pd.DataFrame:
    """Every rule's p-value of two models on published sets, from the same arrangements."""
    scores: dict[tuple[str, str], tuple[list[int], Scores]] = {}
    for model in (suspect, control):
        scorer = TransformersScorer(model)
        for name in tqdm(sets, desc=label(model)):
            test_set = open_test_set(name)
            first = chosen(test_set, range(min(len(test_set.records), most)))
            found = by_model(first, "moves", scorer, stores / label(model).replace("/", "-"))
            if found is None:
                raise InputError(f"{name}: fewer than two items move")
            scores[model, name] = found
        del scorer
    rows: list[dict[str, Any]] = []
    for name in sets:
        (ours, x), (theirs, y) = scores[suspect, name], scores[control, name]
        both = sorted(set(ours) & set(theirs))
        kept = x[[ours.index(i) for i in both]], y[[theirs.index(i) for i in both]]
        rows.append({"set": name, "items": len(both), **p_values(*kept)})
    return pd.DataFrame(rows).assign(suspect=label(suspect), control_model=label(control))


def main() -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("simulated", "models"))
    parser.add_argument("--suspect", default="smollm2-135m")
    parser.add_argument("--control", default=str(ROOT / "build" / "laptop" / "models/clean"))
    parser.add_argument("--sets", nargs="+", default=["mmlu/anatomy"])
    parser.add_argument("--records", type=int, default=100, help="of each set")
    parser.add_argument("--stores", type=Path, default=ROOT / "build" / "option_difference")
    parser.add_argument("--measurements", type=Path, default=ROOT / "docs" / "measurements")
    options = parser.parse_args()
    if options.what == "simulated":
        table = simulated()
        name = "option_difference.csv"
    else:
        table = measured(
            options.suspect, options.control, options.sets, options.stores, options.records
        )
        table["device"] = describe(torch.device("cpu"))
        name = "option_difference_models.csv"
    with replacing(options.measurements / name) as file:
        table.assign(date=TODAY).to_csv(file, index=False, float_format="%.4g", lineterminator="\n")
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
