"""The study of docs/power.md: which tests find fewer copies by the order of records?

    python benchmarks/frontier/run.py train frontier --widths 64       # once more in another size
    python benchmarks/frontier/run.py score frontier --widths 256 --what plain context
    python benchmarks/frontier/run.py tables "2026-11-23, Zen 5, bfloat16"
    python benchmarks/frontier/run.py figure "2026-11-23, Zen 5, bfloat16"  # from frontier.csv

`make frontier` does all of it. The profile `frontier` chooses, `frontier-2` confirms; the page has
the protocol. `train` and `score` go on where they were interrupted. `tables` writes
docs/measurements/frontier.csv (every candidate), frontier_decisions.csv (paired differences),
frontier_sizes.csv (the default under a larger model), frontier_pooled.csv (all sets of a count in
one p-value) and docs/frontier.svg, of what was scored; what was in no run is a row "not run here".
Other machines train other models, so each run has a name, and its rows stand beside those of the
runs before.
"""

import argparse
from itertools import product

import pandas as pd
from scored import MAKERS, MODEL, ROOT, make, opened
from tables import (
    beside,
    decisions,
    measured,
    p_values,
    pooled,
    power_figure,
    size_differences,
)
from tqdm import tqdm

from contamination.files import replacing
from reproduction.output.figures import use_style

PROFILES = ("frontier", "frontier-2")
WIDTHS = (64, 256, 512)


def train(profile: str, width: int) -> None:
    """Train the contaminated model of a width, unless there is one."""
    from reproduction.run.training import train_model

    experiment = opened(profile, width)
    if not (experiment.model(MODEL) / "training.json").is_file():
        train_model(experiment, MODEL)


def score(profile: str, width: int, what: list[str]) -> None:
    """Make what candidates read, of every set."""
    experiment = opened(profile, width)
    names = [spec.name for spec in experiment.profile.canaries]
    for each in what:
        for name in tqdm(names, f"{profile}, width {width}, {each}", unit="set", disable=None):
            make(experiment, name, each)


def write_tables(name: str) -> None:
    """Write the rows of a run beside those of others, and its figure."""
    runs = {key: opened(*key) for key in product(PROFILES, WIDTHS)}
    found = pd.concat(
        [p_values(run, *key) for key, run in tqdm(runs.items(), unit="run")], ignore_index=True
    )
    tables = {
        "frontier": measured(found, list(runs)),
        "frontier_decisions": decisions(found),
        "frontier_sizes": size_differences(found),
        "frontier_pooled": pooled(runs),
    }
    for file, table in tables.items():
        path = ROOT / "docs" / "measurements" / f"{file}.csv"
        together = beside(pd.read_csv(path), table.round(4), name)
        with replacing(path) as temporary:
            together.to_csv(temporary, index=False, lineterminator="\n")
    write_figure(name)


def write_figure(name: str) -> None:
    """Draw docs/frontier.svg from the rows of a run in docs/measurements/frontier.csv."""
    table = pd.read_csv(ROOT / "docs" / "measurements" / "frontier.csv")
    use_style()
    with replacing(ROOT / "docs" / "frontier.svg") as path:
        power_figure(table[table["run"] == name]).savefig(path, metadata={"Date": None})


def main() -> None:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    steps = parser.add_subparsers(dest="step", required=True)
    for step in ("train", "score"):
        parts = steps.add_parser(step)
        parts.add_argument("profile", choices=PROFILES)
        parts.add_argument("--widths", nargs="+", type=int, choices=WIDTHS, default=[256])
    steps.choices["score"].add_argument(
        "--what", nargs="+", choices=["plain", *MAKERS], default=["plain"]
    )
    for step in ("tables", "figure"):
        steps.add_parser(step).add_argument("run", help="its date, processor and precision")
    asked = parser.parse_args()
    if asked.step == "tables":
        write_tables(asked.run)
        return
    if asked.step == "figure":
        write_figure(asked.run)
        return
    for width in asked.widths:
        if asked.step == "train":
            train(asked.profile, width)
        else:
            score(asked.profile, width, asked.what)


if __name__ == "__main__":
    main()
