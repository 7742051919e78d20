"""Effects of planted copies on a test: the basis of the power that a verdict states.

    .venv/bin/python benchmarks/effects.py

Reads docs/measurements/power.csv, frontier.csv, generated.csv and planted.csv, writes
src/contamination/audit/effects.csv and docs/measurements/power_calibration.csv, and prints both.

**Effect**: z of a planted set over the root of its records that follow another one in their shard,
so that sets of all sizes share it. A study is one model on its own text, with several sets for each
number of copies; its mean effect has the sampling variance of z over its sets.

**Prediction** for a new set in a new study, by a random-effects model of the studies of one kind of
model: Student's t with K - 1 degrees of freedom for K studies, around their mean, with the variance
between studies (Paule and Mandel), between sets of a study, and of the mean. K of 1 says nothing
about the next study, and gets no row.

Where fewer studies measured a test than the default, it takes the default's prediction times the
ratio of both effects in the studies that have both, summed over copies: else a test would look
better for having been left out where models remember little.

**Assumptions**: effects of studies are exchangeable draws of one normal law, and z grows with the
root of the records. The studies `frontier` put the same sets to three sizes of model, so their
effects agree more than independent ones would; they are few, and of small models.

**Calibration**: each study is left out, predicted by the others of its kind, and compared with the
number of its sets that were found at 0.05.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import least_squares
from scipy.stats import binom, norm, t
from statsmodels.stats.meta_analysis import combine_effects

from contamination.files import replacing
from contamination.randomness import random_stream

ROOT = Path(__file__).parents[1]
MEASUREMENTS = ROOT / "docs" / "measurements"
OUT = ROOT / "src" / "contamination" / "audit" / "effects.csv"
CALIBRATION = MEASUREMENTS / "power_calibration.csv"
# Test of the registry: its name in power.csv, shards and permutations there.
STUDIED = {
    "successor": ("successor_32", 10, 0),
    "sharded_exact": ("sharded_exact", 20, 50),
    "token_standardised": ("token_standardised", 20, 50),
    "boundary": ("boundary_16", 20, 50),
}
SIZES = [100, 100, 100, 80]  # records of the sets of power.csv, equally often
FRONTIER_RUN = "2026-11-23, Zen 5, bfloat16"  # the run that has all three sizes
FRONTIER_DEFAULT = "plain, b = 32, k = 10"
FRONTIER_RECORDS, FRONTIER_SHARDS = 60, 6
FRONTIER_SIZES = {64: "0.5 million", 256: "4.3 million", 512: "14.8 million"}
GENERATED_DEFAULT = "log-probabilities"
SHARD_SIZE = 10  # records of a shard of the default test
FEWEST_SETS = 2  # of a study, which show how they vary
PLANTED_SHARDS = {"successor": 4, "sharded_exact": 10}
SCRATCH = "0.5 to 15M, from scratch"
PRETRAINED = "135M, pretrained"
STATED = (1, 2, 4, 8)  # copies
DEFAULT = "successor"
LEVEL = 0.05
DRAWS = 20_000
NODES, SHARES = np.polynomial.hermite_e.hermegauss(60)
SHARES = SHARES / SHARES.sum()


@dataclass(frozen=True)
class Study:
    """The z of the planted sets of one study, for one test and number of copies.

    Attributes
    ----------
    model : kind of model; studies of one kind predict each other.
    mean, sd : of z over the sets.
    following : records of a set that follow another one in their shard.
    found : number of sets with p of at most `LEVEL`.
    """

    name: str
    model: str
    test: str
    copies: int
    sets: int
    mean: float
    sd: float
    following: float
    found: int

    @property
    def effect(self) -> float:
        """Mean effect of the sets, per root of a record."""
        return float(self.mean / np.sqrt(self.following))

    @property
    def effect_variance(self) -> float:
        """Sampling variance of the mean effect; z of a set has a noise of 1 at least."""
        return max(1.0, self.sd**2) / self.sets / self.following

    @property
    def variance_of_sets(self) -> float:
        """Variance of the effect over sets, without the noise of z."""
        return max(0.0, self.sd**2 - 1) / self.following


@dataclass(frozen=True)
class Prediction:
    """The effect of a new set in a new study: mean, and variance by its three sources."""

    studies: int
    sets: int
    mean: float
    between_studies: float
    between_sets: float
    of_mean: float

    @property
    def scale(self) -> float:
        """Scale of Student's t with `studies` - 1 degrees of freedom."""
        return float(np.sqrt(self.between_studies + self.between_sets + self.of_mean))


def predict(studies: list[Study]) -> Prediction:
    """Return what two or more studies predict for another one of their kind."""
    effects = np.array([study.effect for study in studies])
    variances = np.array([study.effect_variance for study in studies])
    combined = combine_effects(effects, variances, method_re="iterated")
    sets = np.array([study.sets for study in studies])
    of_sets = np.array([study.variance_of_sets for study in studies])
    return Prediction(
        studies=len(studies),
        sets=int(sets.sum()),
        mean=float(combined.mean_effect_re),
        between_studies=float(combined.tau2),
        between_sets=float(np.average(of_sets, weights=sets)),
        of_mean=float(combined.sd_eff_w_re**2),
    )


def detected_of(prediction: Prediction, study: Study, rng: np.random.Generator) -> pd.Series:
    """Predict how many sets of a study are found at `LEVEL`, and compare."""
    spread = np.sqrt(prediction.between_studies + prediction.of_mean)
    means = prediction.mean + spread * t.rvs(prediction.studies - 1, size=DRAWS, random_state=rng)
    noise = np.sqrt(1 + prediction.between_sets * study.following)
    chances = norm.sf((norm.isf(LEVEL) - means * np.sqrt(study.following)) / noise)
    counts = binom.rvs(study.sets, chances, random_state=rng)
    low, high = np.quantile(counts, [0.05, 0.95])
    return pd.Series(
        {
            "test": study.test,
            "model": study.model,
            "copies": study.copies,
            "left_out": study.name,
            "sets": study.sets,
            "predicted": round(float(chances.mean()), 2),
            "low": int(low),
            "high": int(high),
            "found": study.found,
            "found_share": round(study.found / study.sets, 2),
        }
    )


def z_of_study(mean: float, se: float, sets: int) -> NDArray[np.float64]:
    """Return mean and sd of normal z whose log10 p has this mean and standard error over sets."""

    def off(guess: NDArray[np.float64]) -> NDArray[np.float64]:
        logs = norm.logsf(guess[0] + guess[1] * NODES) / np.log(10)
        average = SHARES @ logs
        sd = np.sqrt(SHARES @ (logs - average) ** 2)
        return np.array([average - mean, sd - se * np.sqrt(sets)])

    start = [np.sqrt(-2 * mean), 1.0]
    return np.asarray(least_squares(off, start, bounds=([-5, 0], 60)).x)


def study_of(rows: pd.DataFrame, found: str, **known: object) -> Study:
    """Return a study from rows that have mean and standard error of log10 p over parts of it."""
    sets = rows["sets_counted"].to_numpy()
    z = [
        z_of_study(row.mean_log10_p, row.se_log10_p, row.sets_counted) for row in rows.itertuples()
    ]
    means = np.array([each[0] for each in z])
    sds = np.array([each[1] for each in z])
    return Study(
        sets=int(sets.sum()),
        mean=float(np.average(means, weights=sets)),
        sd=float(np.sqrt(np.average(sds**2, weights=sets))),
        found=int(np.round(rows[found] * sets).sum()),
        **known,
    )


def default_studies() -> list[Study]:
    """Return the studies `study` and `study-2` of the default test and three others."""
    power = pd.read_csv(MEASUREMENTS / "power.csv")
    power = power[power["fraction"] == 1].rename(columns={"datasets": "sets_counted"})
    power["name"] = power["sets"].str.partition(",")[0]
    studies = []
    for test, (name, shards, permutations) in STUDIED.items():
        chosen = power[(power["test"] == name) & (power["shards"] == shards)]
        chosen = chosen[chosen["permutations"] == permutations]
        following = float(np.mean(np.sqrt(np.array(SIZES) - shards)) ** 2)
        for (study, copies), rows in chosen.groupby(["name", "dup_count"]):
            known = {"name": study, "model": SCRATCH, "test": test, "copies": int(copies)}
            studies.append(study_of(rows, "power_0.05", following=following, **known))
    return studies


def frontier_studies() -> list[Study]:
    """Return both seeds of `frontier` under three sizes of model, by the default test."""
    table = pd.read_csv(MEASUREMENTS / "frontier.csv")
    table = table[(table["run"] == FRONTIER_RUN) & (table["candidate"] == FRONTIER_DEFAULT)]
    table = table.rename(columns={"sets": "sets_counted"})
    following = float(FRONTIER_RECORDS - FRONTIER_SHARDS)
    studies = []
    for (part, width, copies), rows in table.groupby(["part", "width", "dup_count"]):
        name = f"frontier, {part}, {FRONTIER_SIZES[width]}"
        known = {"name": name, "model": SCRATCH, "test": "successor", "copies": int(copies)}
        studies.append(study_of(rows, "rejected_05", following=following, **known))
    return studies


def generated_studies() -> list[Study]:
    """Return both seeds of `generated`, by the default test on log-probabilities."""
    table = pd.read_csv(MEASUREMENTS / "generated.csv")
    table = table[(table["model"] == "contaminated") & (table["similarity"] == GENERATED_DEFAULT)]
    studies = []
    for (profile, copies), rows in table.groupby(["profile", "dup_count"]):
        if len(rows) < FEWEST_SETS:
            continue
        records = int(rows["examples"].iloc[0])
        study = Study(
            name=profile,
            model=SCRATCH,
            test=DEFAULT,
            copies=int(copies),
            sets=len(rows),
            mean=float(rows["z"].mean()),
            sd=float(rows["z"].std(ddof=1)),
            following=float(records - records // SHARD_SIZE),
            found=int((rows["log10_p"] <= np.log10(LEVEL)).sum()),
        )
        studies.append(study)
    return studies


def pretrained_studies() -> list[Study]:
    """Return both seeds of the pretrained model that read sets on, whole and in order."""
    planted = pd.read_csv(MEASUREMENTS / "planted.csv")
    planted = planted[(planted["model"] == "contaminated") & (planted["planting"] == "whole")]
    studies = []
    for test, shards in PLANTED_SHARDS.items():
        chosen = planted[(planted["test"] == test) & (planted["shards"] == shards)]
        for (profile, copies), rows in chosen.groupby(["profile", "dup_count"]):
            z = norm.isf(rows["p"])
            study = Study(
                name=profile,
                model=PRETRAINED,
                test=test,
                copies=int(copies),
                sets=len(rows),
                mean=float(z.mean()),
                sd=float(z.std(ddof=1)),
                following=float(rows["examples"].iloc[0] - shards),
                found=int((rows["p"] <= LEVEL).sum()),
            )
            studies.append(study)
    return studies


def grouped(studies: list[Study]) -> dict[tuple[str, str, int], list[Study]]:
    """Return the studies by test, kind of model and copies, where there are two at least."""
    groups: dict[tuple[str, str, int], list[Study]] = {}
    for study in studies:
        groups.setdefault((study.test, study.model, study.copies), []).append(study)
    return {key: group for key, group in groups.items() if len(group) > 1}


def relative_effect(
    groups: dict[tuple[str, str, int], list[Study]], test: str, model: str
) -> float:
    """Return the effect of a test over that of the default one, in the studies that have both."""
    of_test = 0.0
    of_default = 0.0
    for (name, kind, copies), group in groups.items():
        if (name, kind) != (test, model):
            continue
        default = {study.name: study.effect for study in groups[DEFAULT, model, copies]}
        of_test += sum(study.effect for study in group)
        of_default += sum(default[study.name] for study in group)
    return of_test / of_default


def effect_rows(groups: dict[tuple[str, str, int], list[Study]]) -> pd.DataFrame:
    """Return the table of predicted effects."""
    rows = []
    for (test, model, copies), group in groups.items():
        if copies not in STATED:
            continue
        default = groups[DEFAULT, model, copies]
        times = 1.0
        if len(default) > len(group):
            group = default
            times = relative_effect(groups, test, model)
        prediction = predict(group)
        rows.append(
            {
                "test": test,
                "model": model,
                "copies": copies,
                "studies": prediction.studies,
                "sets": prediction.sets,
                "mean": round(times * prediction.mean, 3),
                "scale": round(times * prediction.scale, 3),
                "between_studies": round(times * np.sqrt(prediction.between_studies), 3),
            }
        )
    return pd.DataFrame(rows)


def calibration_rows(groups: dict[tuple[str, str, int], list[Study]]) -> pd.DataFrame:
    """Return each study as the others of its kind, two or more of them, predict it."""
    rng = random_stream(0, "calibration of power")
    rows = []
    for group in groups.values():
        for study in group:
            others = [other for other in group if other is not study]
            if len(others) > 1:
                rows.append(detected_of(predict(others), study, rng))
    return pd.DataFrame(rows)


def main() -> None:
    """Write the effects and their calibration, and print both."""
    studies = [
        *default_studies(),
        *frontier_studies(),
        *generated_studies(),
        *pretrained_studies(),
    ]
    groups = grouped(studies)
    effects = effect_rows(groups)
    calibration = calibration_rows(groups)
    for table, path in ((effects, OUT), (calibration, CALIBRATION)):
        with replacing(path) as temporary:
            table.to_csv(temporary, index=False, lineterminator="\n")
        print(table.to_string(index=False))
    inside = calibration["found"].between(calibration["low"], calibration["high"])
    expected = (calibration["predicted"] * calibration["sets"]).sum()
    print(f"found {calibration['found'].sum()}, predicted {expected:.0f}")
    print(f"within the 90% interval: {inside.sum()} of {len(inside)}")


if __name__ == "__main__":
    main()
