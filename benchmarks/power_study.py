"""The study behind the default test: power for the tokens read, pooled over seeds.

    make study        (or: .venv/bin/python benchmarks/power_study.py study study-2)
    .venv/bin/python benchmarks/power_study.py        (draws what was measured)

Reads results/<profile>/tables/power_replicates.csv of every profile, which notebook 05 has written,
or makes it from build/<profile> with the parameters that the profile gives notebook 05. Writes
docs/measurements/power.csv, power_differences.csv (from the paper's test with all permutations) and
docs/power.svg, of the last profile. The default test was chosen on the sets of `study` whose names
end in 0 or 1; all others confirm it.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from contamination.files import replacing
from contamination.randomness import random_stream
from contamination.tables import read_csv, write_csv
from reproduction.notebooks.beyond.figures import plot_power_per_token
from reproduction.notebooks.beyond.tables import power_rows, summarise
from reproduction.output.figures import use_style
from reproduction.run.experiment import Experiment

ROOT = Path(__file__).parents[1]
MEASUREMENTS = ROOT / "docs" / "measurements"
ALPHAS = (0.05, 0.001)
CHOSEN_ON = "study"


def replicates(profile: str) -> pd.DataFrame:
    """Every test on every set of one profile, scoring what is missing."""
    results = ROOT / "results" / profile
    if not (results / "tables" / "power_replicates.csv").is_file():
        experiment = Experiment(ROOT / "profiles" / f"{profile}.yaml", ROOT / "build" / profile)
        parameters = experiment.profile.notebooks["05_beyond_the_paper"]
        rows = power_rows(
            experiment,
            "contaminated",
            permutations=parameters["permutations"],
            successor_shards=parameters["successor_shards"],
            fractions=parameters["fractions"],
            replicates=parameters["replicates"],
            rng=random_stream(experiment.profile.seed, "beyond the paper"),
        )
        write_csv(rows, results, "power_replicates")
    rows = read_csv(results, "power_replicates")
    # The same name is another set under another seed.
    return rows.assign(profile=profile, dataset=profile + "/" + rows["dataset"])


def differences(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean log10 p less that of the paper's test, over sets, with 95% bootstrap intervals."""
    rng = random_stream(0, "bootstrap")
    keys = ["profile", "dup_count", "dataset"]
    paper = rows[(rows["test"] == "sharded_t") & (rows["fraction"] == 1.0)]
    paper = paper[paper["permutations"] == paper["permutations"].max()]
    baseline = paper.groupby(keys)["log10_p"].mean()
    successors = rows[rows["test"].str.startswith("successor")]
    settings = ["test", "shards", "fraction"]
    table = []
    for setting, group in successors.groupby(settings):
        less = group.groupby(keys)["log10_p"].mean() - baseline
        for where, values in less.groupby(["profile", "dup_count"]):
            means = rng.choice(values.to_numpy(), (10_000, len(values))).mean(axis=1)
            low, high = np.percentile(means, [2.5, 97.5])
            names = dict(zip([*settings, "profile", "dup_count"], [*setting, *where], strict=True))
            found = {"datasets": len(values), "difference": values.mean(), "low": low, "high": high}
            table.append(names | found)
    return pd.DataFrame(table)


def draw(rows: pd.DataFrame) -> None:
    """Draw docs/power.svg from the rows of one group of sets in power.csv."""
    use_style()
    with replacing(ROOT / "docs" / "power.svg") as path:
        plot_power_per_token(rows).savefig(path, metadata={"Date": None})


def main() -> None:
    """Pool the profiles named on the command line; without one, draw what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("profiles", nargs="*")
    profiles = parser.parse_args().profiles
    if not profiles:
        measured = pd.read_csv(MEASUREMENTS / "power.csv")
        confirming = measured.loc[measured["sets"].str.endswith(", confirming"), "sets"]
        draw(measured[measured["sets"] == confirming.iloc[-1]])
        return
    rows = pd.concat([replicates(profile) for profile in profiles], ignore_index=True)
    chosen_on = rows["dataset"].str.match(rf"{CHOSEN_ON}/.*[01]$")
    part = chosen_on.map({True: "choosing", False: "confirming"})
    tables = {
        f"{profile}, {name}": summarise(group, ALPHAS)
        for (profile, name), group in rows.groupby(["profile", part])
    }
    measured = pd.concat(tables, names=["sets"]).reset_index("sets")
    with replacing(MEASUREMENTS / "power.csv") as path:
        measured.round(4).to_csv(path, index=False, lineterminator="\n")
    with replacing(MEASUREMENTS / "power_differences.csv") as path:
        differences(rows[~chosen_on]).round(4).to_csv(path, index=False, lineterminator="\n")
    draw(tables[f"{profiles[-1]}, confirming"])


if __name__ == "__main__":
    main()
