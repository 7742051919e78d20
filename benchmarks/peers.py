"""Other tools and ours on the same planted sets, under the contaminated and the clean model.

    .venv/bin/python benchmarks/peers.py --peer-python ENV/bin/python \\
        --reference-script CHECKOUT --dataset-inference CHECKOUT

Needs a finished run of a profile (`make reproduce`) for its two models and its corpus. ENV is an
environment with benchleak, fire and pandas; each CHECKOUT is one of

- https://github.com/tatsu-lab/test_set_contamination (the test of Oren et al.),
- https://github.com/pratyushmaini/llm_dataset_inference (Maini et al.).

A tool without its environment or checkout is left out, and `--tools` names the tools to ask; the
rows of the others stay. Held-out records are dealt from those of the same kind that no set holds,
as many as a set has and each to one set, so the sides differ by a draw alone.
`benchmarks/peer_tools.py` calls the tools. Writes docs/measurements/peers_sets.csv (a row for each
tool, model and set) and peers.csv (a row for each tool), and prints the table of the page.
"""

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from contamination.device import describe
from contamination.files import replacing
from contamination.statistics import adjust
from contamination.testsets.sources import open_test_set
from reproduction.run.canaries import KINDS, LEFT
from reproduction.run.profile import MODELS, RunFiles

ROOT = Path(__file__).parents[1]
MEASUREMENTS = ROOT / "docs" / "measurements"
LEVEL = 0.05
TOOL = ["tool", "settings", "version"]


@dataclass(frozen=True)
class Peer:
    """A tool with its settings.

    Attributes
    ----------
    tool
        Of `TOOLS` in `peer_tools.py`.
    settings
        As people read them.
    arguments
        As `peer_tools.py` takes them.
    """

    tool: str
    settings: str
    arguments: dict[str, Any] = field(default_factory=dict)


PEERS = (
    Peer("benchleak", "bundled reference", {"limit": 200, "reference": "bundled"}),
    Peer("benchleak", "held-out reference", {"limit": 200, "reference": "held out"}),
    Peer("dataset inference", "half trains, half is tested", {"alpha": 0.1}),
    # its defaults, 50 shards and 250 orderings, are for sets of thousands: of one or two records
    # a shard there are at most two orderings
    Peer("reference script", "25 shards, 25 orderings", {"shards": 25, "permutations": 25}),
    Peer("contamination test", "defaults"),
    Peer("contamination compare", "defaults"),
)


def planted_sets(run: RunFiles) -> list[dict[str, Any]]:
    """Return each set of a run, with as many held-out texts of its kind."""
    published = {spec.name: run.test_set(spec.name).examples for spec in run.profile.canaries}
    planted = set(chain.from_iterable(published.values()))
    unused = {}
    for kind, definition in KINDS.items():
        left_over = open_test_set(run.corpus / LEFT / f"{kind}.jsonl", template=definition.template)
        # two docstrings may make one text, and a record was either published or held back
        unused[kind] = [text for text in left_over.examples if text not in planted]
    sets = []
    for spec in run.profile.canaries:
        texts = unused[str(spec.kind)]
        test_set = {
            "name": spec.name,
            "dup_count": spec.dup_count,
            "published": published[spec.name],
            "held_out": texts[: spec.examples],
        }
        unused[str(spec.kind)] = texts[spec.examples :]
        sets.append(test_set)
    return sets


def ask(python: str, tool: str, job: dict[str, Any]) -> list[dict[str, Any]]:
    """Run one tool in a process of its own, on one thread; return its rows."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "job.json"
        path.write_text(json.dumps(job), encoding="utf-8")
        command = [python, str(ROOT / "benchmarks" / "peer_tools.py"), tool, str(path)]
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, cwd=directory
        )
    if done.returncode:
        raise SystemExit(f"{tool} failed:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def commit_of(checkout: Path) -> str:
    """Return the commit of a checkout."""
    command = ["git", "-C", str(checkout), "rev-parse", "--short=12", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def rows_of(
    peer: Peer, run: RunFiles, sets: list[dict[str, Any]], *, python: str, checkout: Path | None
) -> list[dict[str, Any]]:
    """Return a row for each model and set.

    Parameters
    ----------
    peer
        The tool.
    run
        The finished run, for its models.
    sets
        As `planted_sets` gives them.
    python
        Interpreter of the environment of the tool.
    checkout
        Of the repository of the tool, if it has no package.
    """
    copies = {test_set["name"]: test_set["dup_count"] for test_set in sets}
    rows = []
    for model in MODELS:
        job = {
            "model": str(run.model(model).resolve()),
            "context": run.profile.model.n_positions,
            "sets": sets,
            "settings": peer.arguments,
            "checkout": None if checkout is None else str(checkout.resolve()),
        }
        for answer in ask(python, peer.tool, job):
            versions = answer.pop("versions")
            row = {
                "tool": peer.tool,
                "settings": peer.settings,
                "version": version_of(peer.tool, versions, checkout),
                "model": model,
                "dup_count": copies[answer["dataset"]],
                **answer,
                "packages": versions,
            }
            rows.append(row)
    return rows


def version_of(tool: str, packages: str, checkout: Path | None) -> str:
    """Return the version of a tool: that of its package, or its commit."""
    if checkout is not None:
        return commit_of(checkout)
    if tool == "benchleak":
        return packages.split(";")[0].removeprefix("benchleak ")
    return commit_of(ROOT)


def kept_rows(folder: Path) -> pd.DataFrame:
    """Return the rows of earlier runs; none if there was no run."""
    path = folder / "peers_sets.csv"
    if not path.is_file():
        return pd.DataFrame(columns=[*TOOL, "model"])
    return pd.read_csv(path, dtype={"version": str})


def with_rows(table: pd.DataFrame, peer: Peer, rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Return a table with the rows of a tool in the place of its earlier ones."""
    is_earlier = (table["tool"] == peer.tool) & (table["settings"] == peer.settings)
    new = with_holm(pd.DataFrame(rows))
    new["date"] = datetime.date.today().isoformat()
    new["processor"] = describe(torch.device("cpu"))
    joined = pd.concat([table[~is_earlier], new], ignore_index=True)
    order = {(known.tool, known.settings): number for number, known in enumerate(PEERS)}
    places = [order[key] for key in zip(joined["tool"], joined["settings"], strict=True)]
    return joined.assign(place=places).sort_values("place", kind="stable").drop(columns="place")


def save(table: pd.DataFrame, folder: Path) -> None:
    """Write the rows of the sets, and a row for each tool."""
    for name, rows in (("peers_sets", table), ("peers", by_tool(table))):
        with replacing(folder / f"{name}.csv") as path:
            rows.to_csv(path, index=False, lineterminator="\n")


def with_holm(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with p-values after Holm over the sets of a tool under a model."""
    rows = rows.copy()
    rows["holm_p"] = np.nan
    for _, group in rows.groupby([*TOOL, "model"]):
        # the script of Oren et al. prints 0 for what lies below 1e-16
        log10_p = np.log10(group["p"].fillna(1.0).clip(lower=1e-300).to_numpy())
        rows.loc[group.index, "holm_p"] = adjust(log10_p=log10_p, method="holm").p
    return rows


def by_tool(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each tool: sets found and falsely accused, tokens and seconds."""
    summaries = []
    for keys, group in rows.groupby(TOOL, sort=False):
        summary = dict(zip(TOOL, keys, strict=True))
        for model, word in zip(MODELS, ("found", "falsely"), strict=True):
            own = group[group["model"] == model]
            summary[f"{word}_at_0.05"] = int((own["p"] <= LEVEL).sum())
            summary[f"{word}_after_holm"] = int((own["holm_p"] <= LEVEL).sum())
            summary[f"{word}_by_own_verdict"] = int(own["accused"].sum())
        summary["sets"] = group["dataset"].nunique()
        # of both models: what one model costs is half of it
        summary["tokens_read_per_set"] = round(group["tokens_read"].mean())
        summary["processor_seconds_per_set"] = round(group["processor_seconds"].mean(), 2)
        summary["packages"] = group["packages"].iloc[0]
        summary["date"] = group["date"].iloc[0]
        summary["processor"] = group["processor"].iloc[0]
        summaries.append(summary)
    return pd.DataFrame(summaries)


def as_markdown(summary: pd.DataFrame) -> str:
    """Return the table of the page."""
    lines = [
        "| tool | settings | found: p ≤ 0.05 | after Holm | own verdict "
        "| falsely accused: p ≤ 0.05 | after Holm | own verdict "
        "| tokens per set | seconds per set |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in summary.to_dict("records"):
        cells = [f"{row['tool']} {row['version']}", row["settings"]]
        for word in ("found", "falsely"):
            for rule in ("at_0.05", "after_holm", "by_own_verdict"):
                cells.append(str(row[f"{word}_{rule}"]))
        cells.append(f"{row['tokens_read_per_set']:,}")
        cells.append(f"{row['processor_seconds_per_set']:.1f}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Ask every tool, and write both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--profile", type=Path, default=ROOT / "profiles" / "laptop.yaml")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "laptop")
    parser.add_argument("--peer-python", help="with benchleak, fire and pandas")
    parser.add_argument("--reference-script", type=Path, help="checkout")
    parser.add_argument("--dataset-inference", type=Path, help="checkout")
    parser.add_argument("--tools", nargs="+", choices=[peer.tool for peer in PEERS])
    parser.add_argument("--output", type=Path, default=MEASUREMENTS)
    options = parser.parse_args()
    run = RunFiles(options.profile, options.build)
    sets = planted_sets(run)
    checkouts = {
        "reference script": options.reference_script,
        "dataset inference": options.dataset_inference,
    }
    table = kept_rows(options.output)
    for peer in PEERS:
        is_ours = peer.tool.startswith("contamination")
        python = sys.executable if is_ours else options.peer_python
        checkout = checkouts.get(peer.tool)
        if options.tools is not None and peer.tool not in options.tools:
            continue
        if python is None or (peer.tool in checkouts and checkout is None):
            print(f"{peer.tool}: left out, since its environment or checkout is not named")
            continue
        print(f"{peer.tool}, {peer.settings} ...", flush=True)
        rows = rows_of(peer, run, sets, python=python, checkout=checkout)
        table = with_rows(table, peer, rows)
        save(table, options.output)
    print(as_markdown(by_tool(table)))


if __name__ == "__main__":
    main()
