"""Evidence of planted sets under a pretrained model and under one that is trained from scratch.

    make notebooks PROFILE=planted && .venv/bin/python benchmarks/planted.py planted

Reads results/<profile>/tables/canaries.csv and min_k.csv of every profile that is named, and the
canaries of results/reference; scores the sets of `planted` in shards of four, too, since its own
shards of two leave tests of whole orderings but two orderings each. Writes their rows in
docs/measurements/planted.csv (one for each profile, model, set and test), leaves those of others,
draws all in planted_means.csv and docs/planted.svg, and prints the table of docs/power.md, in its
cells one profile after the other. Keeps options.csv of notebook 14 as <profile>_options.csv, and
min_k_held_out.csv of notebook 07 as <profile>_held_out.csv, with its means by copies in
planted_held_out_means.csv. Without a profile the figure is drawn again from planted.csv.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from contamination.audit.registry import TESTS
from contamination.files import read_json, replacing
from contamination.statistics import adjust
from contamination.tables import SIGNIFICANT, read_csv
from reproduction.notebooks.canaries.tables import with_floors
from reproduction.output.figures import plot_power, use_style
from reproduction.run.experiment import MODELS, Experiment, profile_plan

ROOT = Path(__file__).parents[1]
PROFILES = ROOT / "profiles"
MEASUREMENTS = ROOT / "docs" / "measurements"
SHOWN = ("sharded_t", "sharded_exact", "successor")
KEPT = ["model", "dataset", "kind", "examples", "dup_count", "test", "shards"]
KEPT += ["p", "log10_p", "holm_p"]
WHOLE = SHOWN[:2]  # tests of whole orderings
SHARDS = 10
PERMUTATIONS = 25  # of a shard, of the tests of whole orderings
SCORE = "min_k_20"
KEPT_TABLES = {"options": "options", "min_k_held_out": "held_out"}  # of notebooks 14 and 07


def of_profile(profile: str) -> pd.DataFrame:
    """Rows of the tests, with the AUC of Min-20% and the losses of training beside them."""
    run = Experiment(PROFILES / f"{profile}.yaml", ROOT / "build" / profile)
    results = ROOT / "results" / profile
    rows = read_csv(results, "canaries")
    rows = rows.loc[rows["test"].isin(SHOWN), KEPT]
    planting = {spec.name: spec.planting for spec in run.profile.canaries}
    rows.insert(1, "planting", rows["dataset"].map(planting))
    if run.profile.scoring.shards != SHARDS:
        rows = pd.concat([rows, in_larger_shards(run, rows)], ignore_index=True)
    spans = read_csv(results, "min_k")
    auc = spans[spans["score"] == SCORE].set_index(["model", "dataset"])["auc"]
    rows = rows.join(auc.rename(f"auc_{SCORE}"), on=["model", "dataset"])
    facts = {name: read_json(run.model(name) / "training.json") for name in MODELS}
    for column in ("final_loss", "tokens"):  # of training, in nats a token; that were read
        rows[column] = rows["model"].map({name: own[column] for name, own in facts.items()})
    return rows.assign(profile=profile)


def in_larger_shards(run: Experiment, rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of the tests of whole orderings under the contaminated model; Holm over all of one."""
    found = []
    spec = replace(run.profile.scoring, shards=SHARDS)
    for row in rows[(rows["model"] == "contaminated") & rows["test"].isin(WHOLE)].to_dict(
        "records"
    ):
        test = TESTS[row["test"]]
        plan, permutations = profile_plan(spec, test, row["examples"])
        store = run.score("contaminated", row["dataset"], plan, permutations)
        result = test.result(store, permutations)
        found.append(row | {"shards": SHARDS, "p": result.p, "log10_p": result.log10_p})
    table = pd.DataFrame(found)
    for _, group in table.groupby("test"):
        holm = adjust(log10_p=group["log10_p"].to_numpy(), method="holm").p
        table.loc[group.index, "holm_p"] = holm
    return table


def by_count(rows: pd.DataFrame) -> pd.DataFrame:
    """Return mean log10 p by duplication count and test, and how many sets are proven."""
    keys = ["profile", "model", "planting", "dup_count", "test", "shards"]
    groups = rows.assign(proven=rows["holm_p"] <= SIGNIFICANT).groupby(keys, sort=False)
    means = groups.agg(
        sets=("p", "size"),
        proven=("proven", "sum"),
        log10_p=("log10_p", "mean"),
        auc=(f"auc_{SCORE}", "mean"),
    )
    return means.reset_index()


def as_markdown(means: pd.DataFrame) -> str:
    """A row for each model, planting and number of copies, a column for each test; by profile."""
    columns = list(means.groupby(["shards", "test"], sort=False).groups)
    heads = " | ".join(f"{test}, {shards} shards" for shards, test in columns)
    lines = [f"| model | planted | copies | {heads} | AUC of Min-20% |"]
    lines.append("|---|---|---:|" + "---:|" * (1 + len(columns)))
    for place, group in means.groupby(["model", "planting", "dup_count"], sort=False):
        found = dict(list(group.groupby(["shards", "test"])))
        cells = [
            "; ".join(
                f"{row.log10_p:.2f} ({row.proven} of {row.sets})"
                for row in (found[key].itertuples() if key in found else ())
            )
            for key in columns
        ]
        auc = "; ".join(f"{value:.2f}" for value in group.groupby("profile")["auc"].first())
        lines.append(f"| {' | '.join(map(str, place))} | {' | '.join(cells)} | {auc} |")
    return "\n".join(lines).replace(" -", " −")


def held_out_means(profile: str) -> pd.DataFrame:
    """Return how far records are told from their held-out twins, by planting and copies."""
    rows = pd.read_csv(MEASUREMENTS / f"{profile}_held_out.csv")
    for test in ("", "order_"):
        rows[f"{test}proven"] = rows[f"{test}holm_p"] <= SIGNIFICANT
    every_set = rows.assign(planting="all", dup_count=0)
    together = pd.concat([rows, every_set])
    groups = together.groupby(["model", "planting", "dup_count"], sort=False)
    means = groups.agg(
        sets=("p", "size"),
        log10_p=("log10_p", "mean"),
        proven=("proven", "sum"),
        largest_p=("p", "max"),
        auc=("auc", "mean"),
        order_log10_p=("order_log10_p", "mean"),
        order_proven=("order_proven", "sum"),
    )
    means.insert(0, "profile", profile)
    return means.reset_index()


def with_permutations(rows: pd.DataFrame) -> pd.DataFrame:
    """Add the number of orderings with which each test compared a shard."""
    counts = []
    for row in rows.to_dict("records"):
        counts.append(TESTS[row["test"]].orderings(row["shards"], PERMUTATIONS))
    return rows.assign(permutations=np.array(counts))


def draw(rows: pd.DataFrame) -> None:
    """Draw docs/planted.svg: sets planted whole, and those of results/reference beside them."""
    whole = rows[(rows["model"] == "contaminated") & (rows["planting"] == "whole")]
    pretrained = whole[(whole["test"] == "successor") | (whole["shards"] == SHARDS)]
    scratch = read_csv(ROOT / "results" / "reference", "canaries")
    contaminated = scratch[(scratch["model"] == "contaminated") & scratch["test"].isin(SHOWN)]
    few_copies = contaminated[contaminated["dup_count"] <= rows["dup_count"].max()]
    panels = {
        "Pretrained, 135 million parameters": with_floors(with_permutations(pretrained)),
        "From scratch, 4.3 million": with_floors(few_copies),
    }
    use_style()
    tests = [TESTS[name] for name in SHOWN]
    with replacing(ROOT / "docs" / "planted.svg") as path:
        plot_power(panels, tests, one_scale=True).savefig(path, metadata={"Date": None})


def main() -> None:
    """Join the profiles named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("profiles", nargs="*")
    chosen = parser.parse_args().profiles
    if not chosen:
        draw(pd.read_csv(MEASUREMENTS / "planted.csv"))
        return
    tables = list(map(of_profile, chosen))
    if (kept := MEASUREMENTS / "planted.csv").is_file():
        before = pd.read_csv(kept)
        tables.insert(0, before[~before["profile"].isin(chosen)])
    rows = pd.concat(tables, ignore_index=True)
    means = by_count(rows)
    for name, table in (("planted", rows), ("planted_means", means)):
        with replacing(MEASUREMENTS / f"{name}.csv") as path:
            table.to_csv(path, index=False, lineterminator="\n")
    print(as_markdown(means[(means["test"] == "successor") | (means["shards"] == SHARDS)]))
    for profile in chosen:
        for table_name, kept_as in KEPT_TABLES.items():
            made = ROOT / "results" / profile / "tables" / f"{table_name}.csv"
            if made.is_file():
                with replacing(MEASUREMENTS / f"{profile}_{kept_as}.csv") as path:
                    path.write_bytes(made.read_bytes())
    held_out = pd.concat([held_out_means(profile) for profile in chosen], ignore_index=True)
    print(held_out.to_string(index=False))
    with replacing(MEASUREMENTS / "planted_held_out_means.csv") as path:
        held_out.to_csv(path, index=False, float_format="%.4g", lineterminator="\n")
    draw(rows)


if __name__ == "__main__":
    main()
