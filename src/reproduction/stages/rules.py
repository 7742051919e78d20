"""Prerequisites for the Makefile: `rules.mk`, and a stamp for each stage.

A stamp lists what a stage depends on apart from the files of the stages before it: a
digest of each module that it imports (`closure`), without comments and docstrings; the
installed version of each package of others that
such a module imports by name, or whose text is the corpus; and the sections of the
profile that it reads, with the entries of the models that they name. It is written
again only if that changes, so its time says when the stage became stale (`stamps`).
`diff` shows why.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from contamination.files import sha256_of, write_text
from contamination.scoring.models import REGISTRY, ModelEntry, load_models
from reproduction.notebooks.table import NOTEBOOKS, listed_notebooks, outputs
from reproduction.report.parameters import check_parameters
from reproduction.run.profile import MODELS, Released, RunFiles
from reproduction.stages.closure import facts, modules_of_notebook, parameters_of_notebook
from reproduction.stages.digests import Digests
from reproduction.stages.stamps import forget_stamp, write_stamp
from reproduction.stages.steps import longest_first

CORPUS = "$(B)/corpus/corpus.json"
REPORT = "$(R)/report/report"
MANIFEST = "$(R)/manifest.json"
# What a released model holds does not depend on the code that opens it.
NOT_OF_CORPUS = (
    "torch",
    "contamination.scoring.loading",
    "contamination.scoring.models",
    "contamination.scoring.unpacking",
)
# Docstrings of packages are made without registered sets, which change more often.
NOT_OF_DOCSTRINGS = ("contamination.testsets.sources",)


def write_rules(run: RunFiles, results: Path, root: Path = Path()) -> None:
    """Write the stamps of all stages of a profile, then the rules.

    Parameters
    ----------
    run
        Profile and build directory.
    results
        Directory of the results.
    root
        Root of the repository.

    Raises
    ------
    InputError
        If the profile gives a notebook a parameter that it does not take.
    """
    check_parameters(run, root / "notebooks")
    known = Digests(root / "build" / "digests.json")  # of all profiles
    rules = rules_of(run, root, known)
    known.save()
    stamps = run.build / "stamps"
    forget_stamp(stamps, "report")  # this stage knows no build directory in which to do so
    for stage, facts_of_stage in rules.stamps.items():
        target = rules.targets[stage].replace("$(B)", str(run.build)).replace("$(R)", str(results))
        write_stamp(stamps / stage, facts_of_stage, Path(target))
    head = "# What each stage depends on, written by reproduction.stages.rules. Do not edit.\n"
    write_text(run.build / "rules.mk", head + "".join(f"{line}\n" for line in rules.lines))


class Rules:
    """Lines of the included makefile, and stamps of the stages, as they are added.

    Paths in the lines begin with $(B) and $(R), and they call $(missing) of the
    Makefile.
    """

    def __init__(self, run: RunFiles, root: Path, known: Digests) -> None:
        self.run = run
        self.root = root
        self.known = known
        self.lines: list[str] = []
        self.stamps: dict[str, dict[str, str]] = {}
        self.targets: dict[str, str] = {}
        self._sections: dict[str, Any] = {"seed": run.profile.seed}
        self._sections |= run.profile.notebooks
        if run.profile.pretraining:
            self._sections |= asdict(run.profile.pretraining)

    def add(
        self,
        target: str,
        stage: str,
        modules: Iterable[str],
        *,
        sections: Sequence[str] = (),
        needs: Iterable[str] = (),
        without: Iterable[str] = (),
    ) -> None:
        """Add the line and the stamp of a target.

        Parameters
        ----------
        target
            File that the stage makes.
        stage
            Name of the stamp.
        modules
            Code of the stage; the stamp has all that they import.
        sections
            Sections of the profile on which the stage depends; if there are any, the
            seed is added. The section of a notebook includes the notebook's own
            parameters.
        needs
            Files that the target is made from.
        without
            Modules through which the closure of the code does not go.
        """
        stamp = facts(self.root, modules, without, known=self.known)
        if sections:
            for name in (*sections, "seed"):
                text = self._text_of_section(name)
                stamp[f"profile: {name}"] = sha256_of(text)[:16]
                models = entries_quoted_in(text, self.root / "data" / "models.yaml")
                for model, entry in models.items():
                    stamp[f"data/models.yaml: {model}"] = sha256_of(repr(entry))[:16]
        self.stamps[stage] = stamp
        self.targets[stage] = target
        self.lines.append(f"{target}: $(B)/stamps/{stage} {' '.join(needs)}")

    def _text_of_section(self, name: str) -> str:
        text = json.dumps(self._sections.get(name, {}), sort_keys=True, default=str)
        if name in NOTEBOOKS:
            text += parameters_of_notebook(self.root / "notebooks" / f"{name}.ipynb")
        return text


def entries_quoted_in(text: str, registry: Path = REGISTRY) -> dict[str, ModelEntry]:
    """Return the registered models whose names or hub ids a text quotes, by name."""
    quoted = {name.lower() for name in re.findall(r"""["']([^"']+)["']""", text)}
    return {
        name: entry
        for name, entry in load_models(registry).items()
        if {entry.name.lower(), entry.id.lower()} & quoted
    }


def rules_of(run: RunFiles, root: Path, known: Digests) -> Rules:
    """Return the lines of the included makefile, and the stamps of the stages.

    Parameters
    ----------
    run
        Profile and build directory.
    root
        Root of the repository.
    known
        Digests of modules and versions of packages.
    """
    rules = Rules(run, root, known)
    models = {name: f"$(B)/models/{name}/training.json" for name in run.shapes}
    stores = [f"$(B)/stores/{name}.json" for name in list(models)[:2]]
    rules.lines.append(f"STORES := {' '.join(stores)}")
    if models:
        _add_corpus(rules)
        _add_models(rules, models)
        for name, store in zip(models, stores, strict=False):
            rules.add(
                store,
                f"score-{name}",
                ["reproduction.notebooks.canaries.score"],
                sections=["canaries", "scoring"],
                needs=[models[name]],
            )
    listed = listed_notebooks(run)
    scores = list(stores)
    written: list[str] = []
    for name in listed:
        scores_of_notebook, outputs_of_notebook = _add_notebook(
            rules, name, listed=listed, models=list(models.values()), stores=stores
        )
        scores += scores_of_notebook
        written += outputs_of_notebook
    executed = map(_executed, longest_first(listed, root))
    rules.lines.append(f"EXECUTED := {' '.join(executed)}")
    _add_report(rules, is_trained=bool(models))
    if models:
        page = "$(R)/explorer.html"
        read = [_executed("03_open_model_audit"), _executed("04_mmlu_fisher")]
        rules.add(page, "explorer", ["reproduction.report.explorer.page"], needs=[*stores, *read])
        rules.lines.append(f"$(B)/finished: {page}")
    rules.lines.append(f"SCORES := {' '.join(scores)}")
    rules.lines.append(f"OUTPUTS := {' '.join(written)}")
    return rules


def _add_corpus(rules: Rules) -> None:
    """Add the stage of the corpus, whose stamp has versions of packages."""
    profile = rules.run.profile
    sections = ["corpus", "canaries"]
    if isinstance(profile.model, Released):
        sections.append("model")
    without = list(NOT_OF_CORPUS)
    reads_files = profile.corpus.files or any(spec.file for spec in profile.canaries)
    if not reads_files:
        without += NOT_OF_DOCSTRINGS
    rules.add(
        CORPUS,
        "corpus",
        ["reproduction.run.corpus_stage"],
        sections=sections,
        without=without,
    )
    for package in (*profile.corpus.packages, *profile.corpus.held_out):
        rules.stamps["corpus"][package] = rules.known.of_package(package)


def _add_models(rules: Rules, models: Mapping[str, str]) -> None:
    """Add the training of every model: name -> its target."""
    for name, target in models.items():
        sections = ["training", "sizes"]
        if name in MODELS:
            sections = ["training", "canaries", "model"]
        rules.add(
            target,
            f"train-{name}",
            ["reproduction.run.training"],
            sections=sections,
            needs=[CORPUS],
        )


def _add_notebook(
    rules: Rules,
    name: str,
    *,
    listed: Sequence[str],
    models: Sequence[str],
    stores: Sequence[str],
) -> tuple[list[str], list[str]]:
    """Add the passes of a notebook over models, and its execution.

    Parameters
    ----------
    rules
        Rules to which lines are added.
    name
        Name of the notebook.
    listed
        All notebooks of the run.
    models, stores
        Targets of the models that are trained, and of their canary stores.

    Returns
    -------
    scores : target of the passes, if it makes any.
    outputs : tables and figures that it writes.
    """
    row = NOTEBOOKS[name]
    source = f"notebooks/{name}.ipynb"
    target = _executed(name)
    scores: list[str] = []
    if _makes_passes(rules.run, name):
        scores = [f"$(B)/scores/{name}.json"]
        by_name = {"stores": stores, "both": models[:2], "clean": models[1:2], "all": models}
        needs = list(by_name[row.passes])
        if models and row.passes != "stores":
            needs.append("| $(EARLIER)")
        code = [f"reproduction.notebooks.{row.package}.measure", "reproduction.run.experiment"]
        rules.add(scores[0], f"measure-{name}", code, sections=[name], needs=needs)
    reads: list[str] = []
    for read in row.reads:
        if read == "stores":
            reads += stores
        elif read == "notebooks":
            reads += [_executed(other) for other in listed if other != name]
        else:
            reads.append(_executed(read))
    written = [f"$(R)/{path}" for path in outputs(rules.root / source)]
    rules.add(
        target,
        f"notebook-{name}",
        modules_of_notebook(rules.root / source),
        sections=[name],
        needs=[source, *scores, *reads, f"$(call missing,{' '.join(written)})"],
    )
    rules.lines.append(f"{' '.join(written)}: {target} ;")
    return scores, written


def _makes_passes(run: RunFiles, name: str) -> bool:
    """Return whether a notebook makes passes over models in this profile."""
    row = NOTEBOOKS[name]
    if not row.passes:
        return False
    if not row.needs or not run.shapes:
        return True
    return bool(run.profile.notebooks.get(name, {}).get(row.needs))


def _add_report(rules: Rules, *, is_trained: bool) -> None:
    """Add the manifest and the report; only a run that trains models has slides."""
    rules.add(
        MANIFEST,
        "manifest",
        ["reproduction.report.manifest"],
        needs=["$(EXECUTED)", "$(call missing,$(R)/variables.yml)"],
    )
    pages = f"{REPORT}.pdf"
    if is_trained:
        pages += " $(R)/report/slides.html"
    rules.add(
        f"{REPORT}.html",
        "report",
        ["reproduction.report.render"],
        needs=[MANIFEST, f"$(call missing,{pages})"],
    )


def _executed(name: str) -> str:
    """Return where make finds a notebook that has run; other files are where they are."""
    if name in NOTEBOOKS:
        return f"$(R)/notebooks/{name}.ipynb"
    return name
