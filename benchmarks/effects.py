"""How much planted copies raise a test: the effects behind the power that a verdict states.

    .venv/bin/python benchmarks/effects.py

Reads docs/measurements/power.csv (second seed, on which nothing was chosen) and planted.csv, writes
src/contamination/audit/effects.csv, and prints what one seed predicts of another beside what was
found there: of our models the second of the first, of the pretrained one the first of the second.
An effect is z of a set divided by the root of its records that follow another one in their shard.
Its sd, of another set, is what the variance of z over sets exceeds its noise of 1 by, and the error
of the mean.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import least_squares
from scipy.stats import norm

from contamination.files import replacing

ROOT = Path(__file__).parents[1]
OUT = ROOT / "src" / "contamination" / "audit" / "effects.csv"
# Test of the battery: its name in power.csv, shards and permutations there.
STUDIED = {
    "successor": ("successor_32", 10, 0),
    "sharded_exact": ("sharded_exact", 20, 50),
    "token_standardised": ("token_standardised", 20, 50),
    "boundary": ("boundary_16", 20, 50),
}
SIZES = [100, 100, 100, 80]  # records of the sets of the study, equally often
RELEASED = 4  # shards of the successor test in planted.csv; whole orderings were scored in too few
STATED = (1, 4, 8, 16)  # copies
NODES, SHARES = np.polynomial.hermite_e.hermegauss(60)
SHARES = SHARES / SHARES.sum()


def z_of_study(mean: float, se: float, sets: int) -> NDArray[np.float64]:
    """Mean and sd of normal z whose log10 p has this mean, and this standard error over sets."""

    def off(guess: NDArray[np.float64]) -> NDArray[np.float64]:
        logs = norm.logsf(guess[0] + guess[1] * NODES) / np.log(10)
        average = SHARES @ logs
        sd = np.sqrt(SHARES @ (logs - average) ** 2)
        return np.array([average - mean, sd - se * np.sqrt(sets)])

    return np.asarray(least_squares(off, [np.sqrt(-2 * mean), 1.0], bounds=([-5, 0], 60)).x)


def effect(mean: float, sd: float, sets: int, following: float) -> tuple[float, float]:
    """Mean of the effect and its sd for another set, from mean and sd of z over sets."""
    variance = max(0.0, sd**2 - 1) + max(1.0, sd**2) / sets
    return round(mean / following, 3), round(np.sqrt(variance) / following, 3)


def spread_of(z: "pd.Series[float]") -> tuple[float, float, int]:
    """Mean, sd and number of the z of sets."""
    return float(z.mean()), float(z.std(ddof=1)), len(z)


def found_with(told: tuple[float, float], following: float, alpha: float) -> float:
    """Probability that a set with this mean and sd of the effect is found at a level."""
    spread = np.hypot(1, told[1] * following)
    return float(norm.sf((norm.isf(alpha) - told[0] * following) / spread))


def main() -> None:
    """Write the effects, and print the check."""
    power = pd.read_csv(ROOT / "docs" / "measurements" / "power.csv")
    power = power[power["fraction"] == 1]
    rows = []
    for test, (name, shards, permutations) in STUDIED.items():
        chosen = power[(power["test"] == name) & (power["shards"] == shards)]
        chosen = chosen[chosen["permutations"] == permutations]
        following = float(np.mean(np.sqrt(np.array(SIZES) - shards)))
        for copies, group in chosen.groupby("dup_count"):
            first = group[group["sets"].str.startswith("study,")]
            (second,) = group[group["sets"] == "study-2, confirming"].itertuples()
            z = z_of_study(second.mean_log10_p, second.se_log10_p, second.datasets)
            told = effect(*z, second.datasets, following)
            rows.append((test, "4.3 million parameters", copies, second.datasets, *told))
            for alpha in (0.05, 0.001):
                predicted = found_with(told, following, alpha)
                found = np.average(first[f"power_{alpha:g}"], weights=first["datasets"])
                sets = first["datasets"].sum()
                print(f"{test} {copies} {alpha:g}: {predicted:.2f}, found {found:.2f} of {sets}")
    planted = pd.read_csv(ROOT / "docs" / "measurements" / "planted.csv")
    planted = planted[(planted["model"] == "contaminated") & (planted["planting"] == "whole")]
    planted = planted[(planted["shards"] == RELEASED) & (planted["test"] == "successor")]
    for copies, group in planted.groupby("dup_count"):
        following = float(np.sqrt(group["examples"].iloc[0] - RELEASED))
        z = dict(list(group.assign(z=norm.isf(group["p"])).groupby("profile")["z"]))
        told = effect(*spread_of(z["planted"]), following)
        expected = found_with(told, following, 0.05)
        found = norm.sf(z["planted-2"]) <= 0.05
        print(f"pretrained {copies} 0.05: {expected:.2f}, found {found.sum()} of {found.size}")
        told = effect(*spread_of(pd.concat(z)), following)
        rows.append(("successor", "135 million parameters, pretrained", copies, len(group), *told))
    with replacing(OUT) as temporary:
        columns = ["test", "model", "copies", "sets", "mean", "sd"]
        table = pd.DataFrame(rows, columns=columns)
        table = table[table["copies"].isin(STATED)]
        table.to_csv(temporary, index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
