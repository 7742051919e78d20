"""`contamination audit-logs`: which models know a sealed set, by their logs."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from contamination.audit.decision import exit_status
from contamination.cli.ending import ExitStatus
from contamination.cli.options import AsJson, CsvFile, option
from contamination.cli.printing import print_table, save_table, say

if TYPE_CHECKING:
    from contamination.seal.files import SealedSet
    from contamination.seal.logs import ModelAnswers

COLUMNS = ("model", "asked", "named", "hits", "known ≥", "p", "p (Holm)", "verdict")
NO_NUMBERS = ("–", "–", "–")  # of a model of which nothing can be said


def audit_logs(
    logs: Annotated[
        list[Path],
        typer.Argument(
            metavar="LOGS...",
            help="Logs of lm-evaluation-harness (samples_*.jsonl), Inspect (.eval, .json), "
            "lighteval (details_*.parquet) or HELM (scenario_state.json), or a table "
            "of `id`, `answer` and `model`.",
        ),
    ],
    seal: Annotated[Path, option("The seal.json that was published with the set.")],
    key: Annotated[Path, option("The author's key.json.")],
    epochs: Annotated[
        Literal["first", "majority"] | None,
        option("Which of several different answers to one record counts."),
    ] = None,
    limit: Annotated[
        int | None,
        option("State that the evaluation read the first N published records alone.", min=1),
    ] = None,
    as_json: AsJson = False,
    csv: CsvFile = None,
) -> ExitStatus:
    """Test every model of LOGS by its answers to a sealed set.

    Example: contamination audit-logs samples_*.jsonl --seal seal.json --key key.json

    Small p: of several right answers the model names the published one too often for
    chance. The exit status is 1 if anything is proven or evidence after Holm's correction,
    else 3 if nothing can be said of a model, else 0. Nothing can be said of a model
    whose logs miss records of the set, or have different answers to one record and no
    --epochs.
    """

    from contamination.seal.files import verify
    from contamination.seal.logs import audit_logs as audit
    from contamination.testsets.logs.read import read_log

    sealed = verify(None, seal, key)
    results = audit(sealed, map(read_log, logs), epochs=epochs, limit=limit)
    level = sealed.seal.level
    conclusions = [result.conclusion(level) for result in results]
    rows = []
    for result, conclusion in zip(results, conclusions, strict=True):
        rows.append(asdict(result) | {"conclusion": conclusion})
    save_table(rows, csv)
    if as_json:
        stated = {
            "seal": sealed.seal.model_dump(mode="json"),
            "guarantee": sealed.seal.guarantee,
            "logs": [str(path) for path in logs],
            "epochs": epochs,
            "limit": limit,
        }
        print(json.dumps(stated | {"models": rows}, indent=2))
    else:
        _print(results, sealed)
        _print_coverage(results, logs)
    return ExitStatus(exit_status(conclusions))


def _print(results: "Sequence[ModelAnswers]", sealed: "SealedSet") -> None:
    """Print a row for each model, and what was verified."""
    rows = []
    for result in results:
        numbers = NO_NUMBERS
        if not result.reason:
            known = f"{result.known_at_least:,}"
            numbers = (known, f"{result.p:.2g}", f"{result.holm_p:.2g}")
        row = (
            result.model,
            result.records,
            result.admissible,
            result.hits,
            *numbers,
            result.conclusion(sealed.seal.level),
        )
        rows.append(row)
    title = f"Which models know what the key of {sealed.seal.name} drew?"
    print_table(COLUMNS, rows, title=title, text=("verdict",))
    say(f"verified: {sealed.described}", sealed.seal.guarantee)


def _print_coverage(
    results: "Sequence[ModelAnswers]",
    logs: Sequence[Path],
) -> None:
    """Print why nothing can be said of a model, repeated records, and the files."""
    for result in results:
        if result.reason:
            line = f"{result.model}: nothing can be said, since {result.reason}"
            if result.missing or result.differing:
                line += "; see --limit and --epochs"
            say(line, wrap=False)
        elif result.repeated:
            say(
                f"{result.model}: {result.repeated:,} of its records have more than one "
                f"answer, of which {result.differing:,} have different ones",
                wrap=False,
            )
    if len(logs) > 1:
        names = ", ".join(str(path) for path in logs)
        say(f"logs in this order: {names}", wrap=False)
