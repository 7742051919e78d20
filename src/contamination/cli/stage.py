"""`contamination stage`: one verb per stage of the Makefile."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from contamination.errors import InputError
from contamination.pretraining.experiment import MODELS, Experiment
from contamination.pretraining.profile import load_profile

app = typer.Typer(no_args_is_help=True, help="The stages of `make reproduce`.")

ProfileFile = Annotated[Path, typer.Option(help="YAML file of the profile.")]
BuildDirectory = Annotated[Path, typer.Option(help="Directory of intermediate files.")]
ResultsDirectory = Annotated[Path, typer.Option(help="Directory of tables, figures and report.")]
ModelName = Annotated[
    str, typer.Argument(help=f"{', '.join(MODELS)}, or clean-WIDTH of a size of the profile.")
]


@app.command()
def sections(profile: ProfileFile, build: BuildDirectory) -> None:
    """Check the profile and cut it into the sections that the stages depend on."""
    from contamination.pretraining.profile import write_sections

    write_sections(load_profile(profile), build / "profile")


@app.command()
def corpus(profile: ProfileFile, build: BuildDirectory) -> None:
    """Harvest the corpus, build the canary test sets and train the tokenizer."""
    from contamination.pretraining.corpus_stage import make_corpus

    make_corpus(Experiment(profile, build))


@app.command()
def train(model: ModelName, profile: ProfileFile, build: BuildDirectory) -> None:
    """Train a model (resumes where it was interrupted)."""
    from contamination.cli.steps import train_model

    train_model(Experiment(profile, build), model)


@app.command()
def score(model: ModelName, profile: ProfileFile, build: BuildDirectory) -> None:
    """Score every canary set under a model into its stores (does only what is missing)."""
    from contamination.cli.steps import score_model

    score_model(Experiment(profile, build), model)


@app.command()
def notebook(
    source: Annotated[Path, typer.Argument(help="Notebook to execute.")],
    profile: ProfileFile,
    build: BuildDirectory,
    results: ResultsDirectory,
    parameters: Annotated[
        list[str] | None,
        typer.Option(
            "--parameter",
            metavar="NAME=VALUE",
            help="In the place of the profile's; VALUE is YAML, as in max_records=50 or "
            "models=[a, b]. May be repeated.",
        ),
    ] = None,
) -> None:
    """Execute a notebook with the parameters of the profile into results/notebooks/."""
    experiment = Experiment(profile, build)
    given = dict(_parameter(text) for text in parameters or [])

    from contamination.report.notebooks import execute_notebook

    chosen = experiment.profile.notebooks
    own = {source.stem: dict(chosen.get(source.stem, {})) | given}
    experiment.profile = replace(experiment.profile, notebooks={**chosen, **own})
    execute_notebook(source, experiment, profile, results)


def _parameter(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise InputError(f"--parameter {text}: write NAME=VALUE, as in max_records=50")
    try:
        return name, yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise InputError(
            f"--parameter {text}: the value is not YAML ({' '.join(str(error).split())}); quote it"
        ) from error


@app.command()
def manifest(
    profile: ProfileFile,
    build: BuildDirectory,
    results: ResultsDirectory,
    published: Annotated[Path, typer.Option(help="The papers' numbers.")] = Path("data/published"),
) -> None:
    """Write manifest.json and variables.yml: what ran, on what, and every number of the prose."""
    from contamination.report.manifest import write_manifest

    write_manifest(Experiment(profile, build), results, published)


@app.command()
def report(
    results: ResultsDirectory,
    paper: Annotated[Path, typer.Option(help="Directory of the report's source.")] = Path("paper"),
) -> None:
    """Render the report (HTML, PDF) and the slides, by Quarto if installed, else by pandoc."""
    from contamination.report.render import render_report

    render_report(paper, results)


@app.command()
def explorer(profile: ProfileFile, build: BuildDirectory, results: ResultsDirectory) -> None:
    """Write explorer.html: every scored set under every test, to be opened in a browser."""
    from contamination.report.explorer.page import write_explorer

    write_explorer(Experiment(profile, build), results)


@app.command()
def summary(results: ResultsDirectory) -> None:
    """Print what the run found and where it lies."""
    from contamination.report.summary import print_summary

    print_summary(results)
