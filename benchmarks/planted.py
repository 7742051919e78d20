"""What a pretrained model shows of sets that it read a few times, beside one trained from scratch.

    make notebooks PROFILE=planted && .venv/bin/python benchmarks/planted.py planted

Reads results/<profile>/tables/canaries.csv and min_k.csv of every profile that is named, and the
canaries of results/reference. Writes docs/measurements/planted.csv (a row for each profile, model,
set and test) and docs/planted.svg, and prints the table of docs/power.md.
"""

import argparse
from pathlib import Path

import pandas as pd

from contamination.audit.battery import TESTS
from contamination.files import read_json, replacing
from contamination.tables import SIGNIFICANT, read_csv
from reproduction.output.figures import plot_power, use_style
from reproduction.run.profile import load_profile

ROOT = Path(__file__).parents[1]
PROFILES = ROOT / "profiles"
SHOWN = ("sharded_t", "sharded_exact", "successor")
KEPT = ["model", "dataset", "kind", "examples", "dup_count", "test", "p", "log10_p", "holm_p"]
SCORE = "min_k_20"


def of_profile(profile: str) -> pd.DataFrame:
    """Rows of the tests, with the AUC of Min-20% and the losses of training beside them."""
    results, build = ROOT / "results" / profile, ROOT / "build" / profile
    rows = read_csv(results, "canaries")
    spans = read_csv(results, "min_k")
    auc = spans[spans["score"] == SCORE].set_index(["model", "dataset"])["auc"]
    loss = {
        model: read_json(build / "models" / model / "training.json")["final_loss"]
        for model in rows["model"].unique()
    }
    rows = rows.loc[rows["test"].isin(SHOWN), KEPT]
    found = rows.join(auc.rename(f"auc_{SCORE}"), on=["model", "dataset"])
    planting = {
        spec.name: spec.planting for spec in load_profile(PROFILES / f"{profile}.yaml").canaries
    }
    found.insert(1, "planting", found["dataset"].map(planting))
    return found.assign(final_loss=found["model"].map(loss), profile=profile)


def by_count(rows: pd.DataFrame) -> str:
    """Mean log10 p by duplication count and test, and how many sets Holm's correction leaves."""
    lines = ["| model | planted | copies | " + " | ".join(SHOWN) + " | AUC of Min-20% |"]
    lines.append("|---|---|---:|" + "---:|" * (1 + len(SHOWN)))
    keys = ["model", "planting", "dup_count"]
    for (model, planting, count), group in rows.groupby(keys, sort=False):
        cells = []
        for test in SHOWN:
            one = group[group["test"] == test]
            rejected = (one["holm_p"] <= SIGNIFICANT).sum()
            cells.append(f"{one['log10_p'].mean():.2f} ({rejected} of {len(one)})")
        auc = group.drop_duplicates(["profile", "dataset"])[f"auc_{SCORE}"].mean()
        lines.append(f"| {model} | {planting} | {count} | " + " | ".join(cells) + f" | {auc:.2f} |")
    return "\n".join(lines).replace(" -", " −")


def main() -> None:
    """Join the profiles named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("profiles", nargs="+")
    rows = pd.concat(map(of_profile, parser.parse_args().profiles), ignore_index=True)
    with replacing(ROOT / "docs" / "measurements" / "planted.csv") as path:
        rows.to_csv(path, index=False, lineterminator="\n")
    print(by_count(rows))
    scratch = read_csv(ROOT / "results" / "reference", "canaries")
    panels = {
        "Pretrained, 135 million parameters": rows[
            (rows["model"] == "contaminated") & (rows["planting"] == "whole")
        ],
        "From scratch, 4.3 million": scratch[
            (scratch["model"] == "contaminated") & scratch["test"].isin(SHOWN)
        ],
    }
    use_style()
    with replacing(ROOT / "docs" / "planted.svg") as path:
        plot_power(panels, [TESTS[name] for name in SHOWN]).savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
