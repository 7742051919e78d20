"""Prerequisites for the Makefile: `build/<profile>/rules.mk`, and a stamp for each stage.

A stamp lists what a stage depends on apart from the files of the stages before it: a digest of each
module that it imports, directly or not, at its top or inside a function, without comments and
docstrings; the installed version of each package of others that such a module imports by name, or
whose text is the corpus; and the sections of the profile that it reads. It is written again only if
that changes, so its time says when the stage became stale. `diff` shows why.
"""

import ast
import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path
from typing import Any

import grimp

from contamination.files import sha256_of, write_text
from reproduction.notebooks.table import NOTEBOOKS, code_of, outputs
from reproduction.run.profile import MODELS, Architecture, Released, RunFiles

PACKAGES = ("contamination", "reproduction")
# Files that a module reads at run time, from the root of the repository.
READ_BY = {
    "contamination.testsets.registry": ("data/registry.yaml",),
    "reproduction.output.published": ("data/published/*.csv",),
    "reproduction.report.explorer.page": (
        "src/reproduction/report/explorer/*.*",
        "docs/measurements/mmlu_*.csv",
        "results/reference/pocket/tables/mmlu_subsets.csv",
    ),
    "reproduction.report.render": ("src/reproduction/report/*.lua",),
}
Definition = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@cache
def _graph() -> grimp.ImportGraph:
    return grimp.build_graph(
        *PACKAGES,
        include_external_packages=True,
        exclude_type_checking_imports=True,
        cache_dir=None,
    )


def closure(start: Iterable[str], without: Iterable[str] = ()) -> set[str]:
    """Return modules and all that they import, ours and others', but not through `without`."""
    found, left = set(without), set(start)
    while left:
        if (name := left.pop()) not in found:
            found.add(name)
            left |= _graph().find_modules_directly_imported_by(name)
            left |= {name.rpartition(".")[0]} - {""}  # importing a module runs its package
    return found.difference(without)


def facts(root: Path, start: Iterable[str], without: Iterable[str] = ()) -> dict[str, str]:
    """Describe what counts of the closure of `start`: a digest or version for each name."""
    found: dict[str, str] = {}
    for name in sorted(closure(start, without)):
        path = root / "src" / Path(*name.split("."))
        if name.startswith(PACKAGES):
            found[name] = _digest(
                path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
            )
        elif installed := _version(name):
            found[name] = installed
        for pattern in READ_BY.get(name, ()):
            for read in sorted(root.glob(pattern)):
                if read.is_file() and read.suffix != ".py":
                    found[read.relative_to(root).as_posix()] = sha256_of(read)
    return found


_distributions = cache(packages_distributions)


def _version(name: str) -> str:
    """Version of what is installed by that name, or imported by it; "" if nothing is."""
    for each in (*_distributions().get(name, ()), name):
        with suppress(PackageNotFoundError):
            return version(each)
    return ""


@cache
def _digest(path: Path) -> str:
    tree = ast.parse(path.read_bytes())
    for node in ast.walk(tree):
        if isinstance(node, Definition) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
    return sha256_of(ast.dump(tree))[:16]


def notebook_code(path: Path) -> tuple[set[str], str]:
    """Return the modules of ours that a notebook imports, and the tree of its parameters."""
    imported: set[str] = set()
    own = ""
    for tree, has_parameters in code_of(path):
        own += ast.dump(tree) if has_parameters else ""
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and node.module:
                imported |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return {name for name in imported & _graph().modules if name.startswith(PACKAGES)}, own


CORPUS, REPORT = "$(B)/corpus/corpus.json", "$(R)/report/report"


def write_rules(run: RunFiles, root: Path = Path()) -> None:
    """Write the stamps of all stages of a profile, then the rules."""
    lines, stamps = rules_of(run, root)
    for name, stamp in stamps.items():
        path = run.build / "stamps" / name
        text = "".join(f"{key} {value}\n" for key, value in stamp.items())
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            write_text(path, text)
    head = "# What each stage depends on, written by reproduction.stages.rules. Do not edit.\n"
    write_text(run.build / "rules.mk", head + "".join(f"{line}\n" for line in lines))


def rules_of(run: RunFiles, root: Path) -> tuple[list[str], dict[str, dict[str, str]]]:
    """Return the lines of the included makefile, and the stamps by name of the stage.

    Paths in the lines begin with $(B) and $(R), and they call $(missing) of the Makefile.
    """
    profile = run.profile
    sections: dict[str, Any] = {"seed": profile.seed, **profile.notebooks}
    sections |= asdict(profile.pretraining) if profile.pretraining else {}
    lines: list[str] = []
    stamps: dict[str, dict[str, str]] = {}

    def add(target: str, stage: str, code: str, read: str, *needed: str, without: str = "") -> None:
        """Add what a target is made from: files, modules, sections of the profile.

        The section of a notebook has the notebook's own parameters, too.
        """
        stamp = facts(root, code.split(), without.split())
        for name in (*read.split(), *(["seed"] if read else [])):
            text = json.dumps(sections.get(name, {}), sort_keys=True, default=str)
            if name in NOTEBOOKS:
                text += notebook_code(root / "notebooks" / f"{name}.ipynb")[1]
            stamp[f"profile: {name}"] = sha256_of(text)[:16]
        stamps[stage] = stamp
        lines.append(f"{target}: $(B)/stamps/{stage} {' '.join(needed)}")

    models = {name: f"$(B)/models/{name}/training.json" for name in run.shapes}
    stores = [f"$(B)/stores/{name}.json" for name in list(models)[:2]]
    if models:
        kept = f"corpus canaries {'model' if isinstance(profile.model, Released) else ''}"
        # Docstrings of packages are made without registered sets, which change more often, and what
        # a released model holds does not depend on what opens it.
        without = "torch contamination.scoring.loading contamination.scoring.models"
        if not profile.corpus.files and not any(spec.file for spec in profile.canaries):
            without += " contamination.testsets.sources"
        add(CORPUS, "corpus", "reproduction.run.corpus_stage", kept, without=without)
        harvested = (*profile.corpus.packages, *profile.corpus.held_out)
        stamps["corpus"] |= {name: _version(name) for name in harvested}
        for name, target in models.items():
            kept = "training canaries model" if name in MODELS else "training sizes"
            add(target, f"train-{name}", "reproduction.run.training", kept, CORPUS)
        for name, store in zip(models, stores, strict=False):
            code = "reproduction.notebooks.canaries.score"
            add(store, f"score-{name}", code, "canaries scoring", models[name])

    listed = [n for n, row in NOTEBOOKS.items() if not row.released]
    if not (models and isinstance(profile.model, Architecture)):
        listed = [name for name in NOTEBOOKS if name in profile.notebooks]
    trained = list(models.values())
    chosen = {"stores": stores, "both": trained[:2], "clean": trained[1:2], "all": trained}
    lists = {"stores": stores, "notebooks": [_executed(each) for each in listed]}
    scores = [*stores]
    written: list[str] = []
    for name in listed:
        row, source, target = NOTEBOOKS[name], f"notebooks/{name}.ipynb", _executed(name)
        wanted = profile.notebooks.get(name, {}).get(row.needs) if row.needs else True
        own = []
        if row.passes and (wanted or not models):
            own = [f"$(B)/scores/{name}.json"]
            needed = chosen[row.passes] if models else ["data/models.yaml"]
            code = f"reproduction.notebooks.{row.package}.measure reproduction.run.experiment"
            add(own[0], f"measure-{name}", code, name, *needed)
        reads = [p for read in row.reads for p in lists.get(read, [_executed(read)]) if p != target]
        made = [f"$(R)/{path}" for path in outputs(root / source)]
        code, lost = " ".join(notebook_code(root / source)[0]), f"$(call missing,{' '.join(made)})"
        add(target, f"notebook-{name}", code, name, source, *own, *reads, lost)
        lines.append(f"{' '.join(made)}: {target} ;")
        scores, written = [*scores, *own], [*written, *made]

    lines.append(f"EXECUTED := {' '.join(map(_executed, listed))}")
    manifest, lost = "$(R)/manifest.json", "$(call missing,$(R)/variables.yml)"
    add(manifest, "manifest", "reproduction.report.manifest", "", "$(EXECUTED)", lost)
    pages = f"{REPORT}.pdf $(R)/report/slides.html" if models else f"{REPORT}.pdf"
    lost = f"$(call missing,{pages})"
    add(f"{REPORT}.html", "report", "reproduction.report.render", "", manifest, lost)
    if models:
        read = map(_executed, ("03_open_model_audit", "04_mmlu_fisher"))
        code, page = "reproduction.report.explorer.page", "$(R)/explorer.html"
        add(page, "explorer", code, "", *stores, *read)
        lines.append(f"$(B)/finished: {page}")
    lines += [f"SCORES := {' '.join(scores)}", f"OUTPUTS := {' '.join(written)}"]
    return lines, stamps


def _executed(name: str) -> str:
    """Where make finds a notebook that has run; other files are where they are."""
    return f"$(R)/notebooks/{name}.ipynb" if name in NOTEBOOKS else name
