"""`contamination audit-logs`: which models know a sealed set, by the logs of their evaluations."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from contamination.audit.decision import exit_status
from contamination.cli.choices import check_written
from contamination.cli.ending import ExitStatus
from contamination.cli.options import AsJson, CsvFile, option
from contamination.cli.printing import print_table, save_table, say

if TYPE_CHECKING:
    from contamination.seal.files import SealedSet
    from contamination.seal.logs import ModelAnswers

COLUMNS = ("model", "asked", "named", "hits", "known ≥", "p", "p (Holm)", "verdict")


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
        option("The evaluation had this limit: the first N published records.", min=1),
    ] = None,
    as_json: AsJson = False,
    csv: CsvFile = None,
) -> ExitStatus:
    """Test every model of LOGS by its answers to a sealed set, without the model.

    Small p: of several right answers the model names the published one too often for
    chance. Exit status 1 if anything is proven or evidence after Holm's correction,
    else 3 if nothing can be said of a model, else 0. Nothing can be said of a model
    whose logs miss records of the set, or have different answers to one record and no
    --epochs.
    """
    check_written([csv], [*logs, seal, key])

    from contamination.seal.files import verify
    from contamination.seal.logs import audit_logs as audit
    from contamination.testsets.logs.read import read_log

    sealed = verify(None, seal, key)
    found = audit(sealed, map(read_log, logs), epochs=epochs, limit=limit)
    level = sealed.seal.level
    rows = [asdict(one) | {"conclusion": one.conclusion(level)} for one in found]
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
        _print(found, sealed)
        _print_coverage(found, logs, level)
    return ExitStatus(exit_status(one.conclusion(level) for one in found))


def _print(found: "Sequence[ModelAnswers]", sealed: "SealedSet") -> None:
    """Print a row for each model, and what was verified."""
    rows = []
    for one in found:
        row = (
            one.model,
            one.records,
            one.admissible,
            one.hits,
            one.known_at_least,
            f"{one.p:.2g}",
            f"{one.holm_p:.2g}",
            one.conclusion(sealed.seal.level),
        )
        rows.append(row)
    title = f"Which models know what the key of {sealed.seal.name} drew?"
    print_table(COLUMNS, rows, title=title, text=("verdict",))
    say(f"verified: {sealed.described}", sealed.seal.guarantee)


def _print_coverage(
    found: "Sequence[ModelAnswers]",
    logs: Sequence[Path],
    level: float,
) -> None:
    """Print why nothing can be said of a model, which records count twice, and the files' order."""
    for one in found:
        if one.reason:
            line = f"{one.model}: nothing can be said, since {one.reason}"
            say(f"{line}; see --limit and --epochs", wrap=False)
        elif one.conclusion(level) == "cannot say":
            say(
                f"{one.model}: nothing can be said, since {one.admissible:,} answers "
                "that name exactly one right answer are too few for a p-value of "
                f"{level:g}",
                wrap=False,
            )
        elif one.repeated:
            say(
                f"{one.model}: {one.repeated:,} of its records have more than one "
                f"answer, of which {one.differing:,} have different ones",
                wrap=False,
            )
    if len(logs) > 1:
        names = ", ".join(str(path) for path in logs)
        say(f"logs in this order: {names}", wrap=False)
