"""`contamination verify`: a seal, or the stores of audits, without a model."""

from pathlib import Path
from typing import Annotated

import typer

from contamination.cli.options import option
from contamination.cli.printing import fail, print_table, say
from contamination.errors import InputError


def verify(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="STORES...|SEALED",
            help="Folders that hold stores; or the published file of a seal.",
        ),
    ],
    against: Annotated[
        Path | None, option("Table of `audit --csv`, whose numbers STORES have to give.")
    ] = None,
    seal: Annotated[Path | None, option("The seal.json that was published with SEALED.")] = None,
    key: Annotated[Path | None, option("The key.json of its author.")] = None,
    date: Annotated[Path | None, option("Time stamp of the seal, commitment.tsr.")] = None,
    ca: Annotated[Path | None, option("Root certificate (PEM) of who gave that.")] = None,
) -> None:
    """Verify without a model: p-values from STORES alone, or SEALED by its key.

    Every byte of STORES is checked against its checksum, and each test computed again. With
    --against, each number of the audit's table is compared. Of SEALED: --key draws this set and
    this --seal, byte by byte. Exit status 0: all is as it says. 2: a line for each difference.
    """
    if any(each is not None for each in (seal, key, date, ca)):
        if seal is None or key is None or against is not None or len(paths) > 1:
            raise InputError("a seal is verified by SEALED, --seal and --key: give these alone")
        from contamination.cli.seal import verify_sealed

        return verify_sealed(paths[0], seal, key, date, ca)
    stores = [each.parent for path in paths for each in sorted(path.rglob("store.json"))]
    if not stores:
        written = [each for path in paths for each in path.rglob("completions.json")]
        if written:
            raise InputError(
                f"{written[0].parent}: texts that a model wrote, and no log-probabilities: the "
                "`contamination test --access generate` that wrote them reads them again"
            )
        raise InputError(
            f"{paths[0]}: no store in it; name an audit's --store, or --seal and --key"
        )

    from contamination.audit.recompute import differences, read_audit, recompute

    audited = None if against is None else read_audit(against)
    found, wrong = [], list[str]()
    for directory in stores:
        try:
            found += recompute(directory, audited)
        except InputError as error:
            wrong.append(str(error))
    if audited is not None:
        wrong += (f"{against}, {line}" for line in differences(audited, found))
    shown = ("store", "model", "set", "test", "p", "log10 p")
    rows = (
        (
            row["store"][:8],
            *(f"{row[name]} {row[f'{name} revision'][:8]}" for name in ("model", "set")),
            *(row["test"], f"{row['p']:.3g}", f"{row['log10 p']:.1f}"),
        )
        for row in found
    )
    print_table(shown, rows, title="What the stores alone give, uncorrected", text=shown[:4])
    if audited is None and any(row["axis"] == "options" for row in found):
        say("options: if the set is sealed, `contamination test --seal` tells its wordings apart")
    fail(wrong)
    if against is not None:
        say(f"verified: the stores give every p of {against}", wrap=False)
    return None
