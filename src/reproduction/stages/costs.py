"""What a run of released models takes, before it downloads anything: `make plan`.

(`contamination plan` is another thing: how many shards a wanted power takes.)
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contamination.cli.printing import print_table
from reproduction.stages.stage import BuildDirectory, ProfileFile

if TYPE_CHECKING:
    import pandas as pd

    from reproduction.report.costs import Device

NOTEBOOKS = Path("notebooks")
MEASURED = Path("docs/measurements/set_tokens.csv")


def costs(
    profile: ProfileFile,
    build: BuildDirectory,
    gpu: Annotated[
        list[str] | None,
        typer.Option(
            help="A GPU that is not here, by its memory and its rate in bfloat16, as in 24:165 for "
            "24 GB and 165 TFLOP/s. May be repeated for several.",
            metavar="GB:TFLOPS",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print what a profile without a corpus downloads, reads and takes, and download nothing."""
    import pandas as pd
    from huggingface_hub.utils.tqdm import disable_progress_bars

    from contamination.errors import InputError
    from reproduction.run.experiment import Experiment

    experiment = Experiment(profile, build)
    name = experiment.profile.name
    if experiment.profile.pretraining is not None:
        shown = f"profile {name} trains its own models and downloads none"
        typer.echo(json.dumps({"profile": name, "trains": True}) if as_json else shown)
        return
    if not MEASURED.is_file():
        raise InputError(f"{MEASURED}: no such file; restore it from git")

    from reproduction.report import costs as report
    from reproduction.run.counting import Counting

    disable_progress_bars()  # of looking for files that are not fetched
    counting = Counting(pd.read_csv(MEASURED))
    devices = [report.described(text) for text in gpu or []] or report.devices_found()
    report.count_profile(experiment, NOTEBOOKS, counting)
    table = report.cost_table(counting, devices)
    if as_json:
        typer.echo(json.dumps(report.as_json(name, devices, table), indent=1))
    else:
        _print(name, devices, table)


def _print(profile: str, devices: "list[Device]", table: "pd.DataFrame") -> None:
    from reproduction.output.figures import short_count
    from reproduction.report.costs import NONE, SHARE, SPREAD, sums

    whole = sums(table)
    total = whole | {"model": f"{whole['models']} models", "exact": bool(table["exact"].all())}
    rows = []
    for row in [*table.to_dict("records"), total]:
        about, placement = "" if row["exact"] else "~", row.get("placement", "")
        hours = f"{row['hours']:,.1f}" if row["hours"] >= 0.05 else "< 0.1"
        rows.append(
            (
                row["model"],
                f"{row['download_gb']:.1f}",
                f"{row['memory_gb']:.1f}" if placement else "",
                about + short_count(row["tokens_read"]),
                about + f"{row['flops']:.1e}".replace("e+", "e"),
                {NONE: NONE, SPREAD: f"{hours} *"}.get(placement, hours),
            )
        )
    columns = ("model", "GB", "memory", "tokens", "FLOPs", "hours")
    print_table(columns, rows, title=f"What PROFILE={profile} takes")
    first = devices[0]
    notes = {
        f"devices: {len(devices)} of {first.memory / 1e9:,.0f} GB and "
        f"{first.flops_per_second / 1e12:,.3g} TFLOP/s ({first.name})": True,
        "GB: weights that are still to be fetched; memory: GB of the weights there": True,
        "tokens: at most so many; a model reads equal orderings of small shards once": True,
        f"hours: computed, not measured: FLOPs over {SHARE:.0%} of that rate, without downloads "
        "and loading": True,
        "~: estimated, since the model or a test set is not at hand; GB then count two bytes a "
        "parameter, and some files have four": not total["exact"],
        "*: on all devices together, of which one works at a time": SPREAD
        in set(table["placement"]),
        f"{NONE}: {whole['too_large']} models, not in the sums": whole["too_large"],
    }
    typer.echo("\n".join(note for note, holds in notes.items() if holds))
