"""The stages of the Makefile, a command each.

Each reads the files of the stage before it, writes its own whole or not at all, and
ends with a file that says what was done; that file is the target that `make` compares.
"""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, chdir, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from filelock import FileLock, Timeout

from contamination.cli.ending import ExitStatus
from contamination.cli.printing import save_table
from contamination.errors import InputError
from contamination.files import check_directory, read_json, write_json, write_text
from reproduction.stages import steps
from reproduction.stages.stamps import forget_stamp

if TYPE_CHECKING:
    from reproduction.run.experiment import Experiment

app = typer.Typer(no_args_is_help=True)


@app.callback()
def stages() -> None:
    """The stages of `make reproduce`."""
    steps.begin(sys.argv[1:])


ProfileFile = Annotated[Path, typer.Option(help="YAML file of the profile.")]
BuildDirectory = Annotated[Path, typer.Option(help="Directory of intermediate files.")]
ResultsDirectory = Annotated[
    Path,
    typer.Option(help="Directory of tables, figures and report."),
]
NotebookFile = Annotated[Path, typer.Argument(help="The notebook, in notebooks/.")]
ModelName = Annotated[
    str,
    typer.Argument(help="contaminated, clean, or clean-WIDTH of a size of the profile."),
]
# From the root of the repository, where make runs.
PUBLISHED = Path("data/published")
MEASUREMENTS = Path("docs/measurements")
REFERENCE = Path("results/reference")
TOLERANCES = MEASUREMENTS / "tolerances.csv"


@contextmanager
def _open(
    profile: Path,
    build: Path,
    step: str,
    model: str | None = None,
) -> "Iterator[Experiment]":
    """Open the files of a run, and keep a second `make` out of a step.

    Other steps may run at the same time: each writes files of its own. A stage imports
    torch only after this, so that an unknown model, or a missing corpus, is refused at
    once.
    """
    from reproduction.run.experiment import Experiment

    check_directory(build)
    experiment = Experiment(profile, build)
    try:
        with _lock(build, step):
            if model is not None:
                experiment.model(model)
                experiment.require_corpus()
            forget_stamp(build / "stamps", step)
            yield experiment
    except Timeout as error:
        raise InputError(
            f"{build}: another make works on this profile; wait until it ends, or stop it",
        ) from error


def _lock(build: Path, step: str) -> AbstractContextManager[object]:
    """Return the lock of a step; none in further processes of it."""
    is_first_process = os.environ.get("RANK", "0") == "0"
    if is_first_process and build.is_dir():
        return FileLock(build / f".{step}.lock", timeout=0)
    return nullcontext()


@app.command()
def costs(profile: ProfileFile, build: BuildDirectory) -> None:
    """Print what a profile without a corpus downloads, reads and takes, and download nothing."""
    from reproduction.run.experiment import Experiment
    from reproduction.stages.costs import print_costs

    print_costs(Experiment(profile, build))


@app.command()
def rules(profile: ProfileFile, build: BuildDirectory, results: ResultsDirectory) -> None:
    """Write rules.mk, which the Makefile includes, and the stamps of stages that have changed."""
    from reproduction.run.profile import RunFiles
    from reproduction.stages.rules import write_rules

    check_directory(build)
    write_rules(RunFiles(profile, build), results)


@app.command()
def corpus(profile: ProfileFile, build: BuildDirectory) -> None:
    """Harvest the corpus, build the canary test sets and train or fetch the tokenizer."""
    from reproduction.run.corpus_stage import make_corpus

    with _open(profile, build, "corpus") as experiment:
        make_corpus(experiment)


@app.command()
def train(model: ModelName, profile: ProfileFile, build: BuildDirectory) -> None:
    """Train a model (resumes where it was interrupted)."""
    with _open(profile, build, f"train-{model}", model) as experiment:
        from reproduction.run.training import train_model

        train_model(experiment, model)


@app.command()
def score(model: ModelName, profile: ProfileFile, build: BuildDirectory) -> None:
    """Score every canary set under a model into its stores (does only what is missing)."""
    with _open(profile, build, f"score-{model}", model) as experiment:
        from reproduction.notebooks.canaries.score import score_canaries

        score_canaries(experiment, model)


@app.command()
def measure(source: NotebookFile, profile: ProfileFile, build: BuildDirectory) -> None:
    """Make every pass over models that a notebook needs (does only what is missing)."""
    started = time.perf_counter()
    with _open(profile, build.absolute(), f"measure-{source.stem}") as experiment:
        from contamination.testsets.sources import DATA_VARIABLE, data_directory
        from reproduction.notebooks.table import notebook_of
        from reproduction.report.notebooks import measurement_of
        from reproduction.run.experiment import write_measured

        measurement = measurement_of(source, experiment)
        assert measurement is not None, "make has a rule for notebooks with passes alone"
        # Paths among the parameters are as seen from the notebook, but the mirror is
        # where it was.
        os.environ[DATA_VARIABLE] = str(data_directory().absolute())
        with chdir(source.parent):
            tables = measurement.run(experiment)

        from contamination.scoring.processes import processes

        if processes().is_main_process:
            if tables:
                package = notebook_of(source).package
                write_measured(experiment, package, measurement.settings, tables)
            seconds = time.perf_counter() - started
            record = {"seconds": seconds, "processes": processes().num_processes}
            write_json(build / "scores" / f"{source.stem}.json", record)


@app.command()
def notebook(
    source: NotebookFile,
    profile: ProfileFile,
    build: BuildDirectory,
    results: ResultsDirectory,
) -> None:
    """Execute a notebook with the parameters of the profile into results/notebooks/."""
    with _open(profile, build, f"notebook-{source.stem}") as experiment:
        from reproduction.report.notebooks import execute_notebook

        execute_notebook(source, experiment, results)


@app.command()
def manifest(
    profile: ProfileFile,
    build: BuildDirectory,
    results: ResultsDirectory,
) -> None:
    """Write manifest.json and variables.yml: what ran, on what, and every number of the prose."""
    from reproduction.report.manifest import write_manifest

    with _open(profile, build, "manifest") as experiment:
        write_manifest(experiment, results, PUBLISHED)


@app.command()
def report(results: ResultsDirectory) -> None:
    """Render the report (HTML, PDF) and the slides, by Quarto if installed, else by pandoc.

    Of a run that trained nothing: a report of its own, without slides.
    """
    from reproduction.report.render import render_report

    render_report(Path("paper"), results)


@app.command()
def explorer(
    profile: ProfileFile,
    build: BuildDirectory,
    results: ResultsDirectory,
) -> None:
    """Write explorer.html: MMLU, and every scored set under every test, for a browser."""
    from reproduction.report.explorer.page import make_page

    with _open(profile, build, "explorer") as experiment:
        page = make_page(
            experiment,
            results,
            published=PUBLISHED,
            measurements=MEASUREMENTS,
            released=REFERENCE / "pocket",
        )
        write_text(results / "explorer.html", page)


@app.command("ship-stores")
def ship_stores(
    profile: ProfileFile,
    build: BuildDirectory,
    results: ResultsDirectory,
    stores: Annotated[Path, typer.Option(help="Directory that is replaced.")],
) -> None:
    """Write slim copies of the stores of a finished run, which notebook 00 reads."""
    with _open(profile, build, "ship-stores") as experiment:
        from reproduction.notebooks.start.shipped import ship_stores as ship

        ship(experiment, results, stores)


@app.command()
def reference(
    results: ResultsDirectory,
    outputs: Annotated[
        list[Path],
        typer.Argument(help="Tables and figures of a complete run."),
    ],
) -> None:
    """Keep tables, figures and report of a finished run for git, whole or not at all."""
    from reproduction.output.compare import renew_reference

    files = renew_reference(results, REFERENCE, outputs)
    commit = read_json(results / "manifest.json")["commit"]
    typer.echo(
        f"{len(files)} files of a run of commit {commit}: {', '.join(map(str, files))}",
    )


@app.command()
def compare(
    results: ResultsDirectory,
    other: Annotated[Path, typer.Option(help="Results of another run.")] = REFERENCE,
) -> ExitStatus:
    """Compare a run with another; exit status 1 if anything is different.

    First the names of files, columns, variables and sections; then, of two runs of the
    same profile, every value. Writes results/comparison.csv, a row for each value.
    """
    import pandas as pd

    from reproduction.output.compare import DIFFERENT, compare
    from reproduction.output.state import differences, state_of
    from reproduction.stages.summary import print_comparison

    lines = differences(
        state_of(results),
        state_of(other),
        names=(str(results), str(other)),
    )
    typer.echo("\n".join([*lines, f"{len(lines)} differences of names"]))
    profile = read_json(results / "manifest.json")["profile"]
    expected = read_json(other / "manifest.json")["profile"]
    if profile != expected:
        typer.echo(f"no values compared: {results} is of {profile}, {other} of {expected}")
        return ExitStatus.DIFFERENT if lines else ExitStatus.DONE
    values = compare(results, other, pd.read_csv(TOLERANCES))
    save_table(values, results / "comparison.csv")
    print_comparison(values, results, other)
    if lines or (values["outcome"] == DIFFERENT).any():
        return ExitStatus.DIFFERENT
    return ExitStatus.DONE


@app.command()
def summary(results: ResultsDirectory) -> None:
    """Print what the run found and where it lies."""
    from reproduction.stages.summary import print_summary

    print_summary(results, REFERENCE, TOLERANCES)
