"""Checks of a rehearsal: all ran, failures state a reason, and planted sets are found."""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd

from contamination.files import read_json
from contamination.tables import read_csv

SAYS_WHY = re.compile(r"ok|(failed|not run here|not asked|not pooled): \S.*", re.DOTALL)
SMALL = 1e-4  # p-values of sets that a model has learnt by heart


def check(
    results: Path, *, notebooks: Sequence[str], reasons: Mapping[str, str], taught: Sequence[str]
) -> None:
    """Print what every table holds; end the program if something is not as it has to be.

    Parameters
    ----------
    results : directory of the run.
    notebooks : that it had to execute.
    reasons : each failure made on purpose -> words of the statuses that have to say so.
    taught : a model, and the sets that it has learnt.
    """
    problems = [
        *_missing(results, notebooks),
        *_statuses(results, reasons),
        *_planted(results, *taught),
        *_manifest(results, notebooks),
        *_report(results),
    ]
    if problems:
        sys.exit("\n".join(f"error: {problem}" for problem in problems))


def _missing(results: Path, notebooks: Sequence[str]) -> Iterator[str]:
    for name in notebooks:
        if not (results / "notebooks" / f"{name}.ipynb").is_file():
            yield f"notebook {name} was not executed"


def _statuses(results: Path, reasons: Mapping[str, str]) -> Iterator[str]:
    """Print how many rows each table has of each kind; yield what has no status or no reason."""
    seen = []
    for path in sorted((results / "tables").glob("*.csv")):
        table = pd.read_csv(path, low_memory=False)
        if "status" not in table:
            continue
        if table.empty:  # nothing of this kind was asked of released models
            print(f"{path.name:30} no row")
            continue
        statuses = table["status"].fillna("").astype(str)
        kinds = statuses.str.partition(":")[0].value_counts()
        print(f"{path.name:30} " + ", ".join(f"{count} {kind}" for kind, count in kinds.items()))
        wrong = [status for status in statuses if not SAYS_WHY.fullmatch(status)]
        if wrong:
            yield f"{path.name}: {len(wrong)} rows do not say why, such as {wrong[0]!r}"
        if "ok" not in kinds:
            yield f"{path.name}: not one row is ok"
        seen += list(statuses)
    for what, words in reasons.items():
        if not any(what in status and words in status for status in seen):
            yield f"no status says of {what}: {words}"


def _planted(results: Path, model: str, *sets: str) -> Iterator[str]:
    table = read_csv(results, "open_models").query("test == 'successor'")
    for name in sets:
        (p,) = table.loc[(table["model"] == model) & (table["dataset"] == name), "p"]
        print(f"{model} has learnt {name}: p = {p:.2g}")
        if not p < SMALL:
            yield f"{model} has learnt {name}, and p is {p:.2g}"
    for other, name, p in table.loc[table["model"] != model, ["model", "dataset", "p"]].to_numpy():
        if p < SMALL:
            yield f"{other} has read nothing, and p of {name} is {p:.2g}"


def _manifest(results: Path, notebooks: Sequence[str]) -> Iterator[str]:
    manifest = read_json(results / "manifest.json")
    if not (manifest["rehearsal"] and manifest["released"] and manifest["tokens_scored"]):
        yield "manifest.json does not name the models of a rehearsal, or what they scored"
    trained = {"corpus", "canaries", "models"} & manifest.keys()
    if trained:
        yield f"manifest.json speaks of {', '.join(sorted(trained))}, and nothing was trained"
    steps = {f"notebook {name}" for name in notebooks}
    lost = steps - manifest["steps"].keys()
    if lost:
        yield f"manifest.json has no time of {', '.join(sorted(lost))}"


def _report(results: Path) -> Iterator[str]:
    page = results / "report" / "report.html"
    if 'class="rehearsal"' not in page.read_text(encoding="utf-8"):
        yield f"{page} does not say that it is a rehearsal"
    made = sorted(path.name for path in page.parent.iterdir())
    if made != ["report.html", "report.pdf"]:  # slides are of what was trained
        yield f"{page.parent} has {', '.join(made)}"
