"""Prerequisites for the Makefile: `build/<profile>/rules.mk`, and a stamp for each stage.

A stamp lists what a stage depends on apart from the files of the stages before it: a digest of each
module that it imports, directly or not, at its top or inside a function, without comments and
docstrings; the version in the lock of each package of others that such a module imports by name;
and the sections of the profile that it reads. It is written again only if that changes, so its time
says when the stage became stale. `diff` shows why.
"""

import ast
import json
import re
from collections.abc import Iterable
from dataclasses import asdict
from functools import cache
from pathlib import Path

import grimp

from contamination.files import sha256_of, write_text
from reproduction.notebooks.table import NOTEBOOKS, Notebook, code_of, outputs
from reproduction.run.profile import MODELS, Architecture, Released, RunFiles

PACKAGES = ("contamination", "reproduction")
# Files that a module reads at run time, from the root of the repository.
READ_BY = {
    "contamination.testsets.registry": ("data/registry.yaml",),
    "reproduction.output.published": ("data/published/*.csv",),
    "reproduction.report.explorer.page": (
        "src/reproduction/report/explorer/*.*",
        "docs/measurements/mmlu_*.csv",
    ),
    "reproduction.report.render": ("src/reproduction/report/*.lua",),
}
# Packages whose name in the lock is not that of the import.
LOCKED_AS = {"sklearn": "scikit_learn", "yaml": "pyyaml", "bs4": "beautifulsoup4"}
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
        elif version := _versions(root).get(LOCKED_AS.get(name, name).lower()):
            found[name] = version
        for pattern in READ_BY.get(name, ()):
            for read in sorted(root.glob(pattern)):
                if read.is_file() and read.suffix != ".py":
                    found[read.relative_to(root).as_posix()] = sha256_of(read)
    return found


@cache
def _versions(root: Path) -> dict[str, str]:
    """Versions in the lock by the name of the package, with underscores."""
    lock = (root / "requirements.lock").read_text(encoding="utf-8")
    return {name.replace("-", "_"): v for name, v in re.findall(r"^([\w.-]+)==(\S+)", lock, re.M)}


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


CORPUS, RELEASED = "$(B)/corpus/corpus.json", "$(B)/released/config.json"
SOURCES = "contamination.testsets.sources"


def write_rules(run: RunFiles, root: Path = Path()) -> None:
    """Write the stamps of all stages of a profile, then the rules.

    Paths in the rules begin with $(B) and $(R), and they call $(missing) of the Makefile.
    """
    rules = Rules(run, root)
    for name, stamp in rules.stamps.items():
        path = run.build / "stamps" / name
        text = "".join(f"{key} {value}\n" for key, value in stamp.items())
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            write_text(path, text)
    head = "# What each stage depends on, written by reproduction.stages.rules. Do not edit.\n"
    write_text(run.build / "rules.mk", head + "".join(f"{line}\n" for line in rules.lines))


class Rules:
    """The lines of the included makefile and the contents of the stamps, by name of the stage."""

    def __init__(self, run: RunFiles, root: Path) -> None:
        self.run, self.root = run, root
        self.lines: list[str] = []
        self.stamps: dict[str, dict[str, str]] = {}
        self.models = {name: f"$(B)/models/{name}/training.json" for name in run.shapes}
        self.stores = [f"$(B)/stores/{name}.json" for name in list(self.models)[:2]]
        listed = [n for n, row in NOTEBOOKS.items() if not row.released]
        if not (self.models and isinstance(run.profile.model, Architecture)):
            listed = [name for name in NOTEBOOKS if name in run.profile.notebooks]
        self.notebooks = {name: NOTEBOOKS[name] for name in listed}
        if self.models:
            self._train()
        scores: list[str] = []
        for name, row in self.notebooks.items():
            scores += (own := self._score(name, row))
            self._notebook(name, row, own)
        self._report()
        written = [path for name in self.notebooks for path in self._outputs(name)]
        self.lines.append(f"SCORES := {' '.join([*self.stores, *scores])}")
        self.lines.append(f"OUTPUTS := {' '.join(written)}")

    def _train(self) -> None:
        asked, code = self.run.profile, ["reproduction.run.corpus_stage"]
        # Docstrings of packages are made without registered sets, which change more often.
        files = asked.corpus.files or any(spec.file for spec in asked.canaries)
        begun = []
        if isinstance(asked.model, Released):
            self._rule(RELEASED, "release", [], "model")
            begun = [RELEASED]
        self._rule(CORPUS, "corpus", code, "corpus canaries", *begun, but="" if files else SOURCES)
        for name, target in self.models.items():
            kept = "canaries model" if name in MODELS else "sizes"
            code = ["reproduction.run.training"]
            self._rule(target, f"train-{name}", code, f"training {kept}", CORPUS)
        for name, store in zip(self.models, self.stores, strict=False):
            code = ["reproduction.notebooks.canaries.score"]
            self._rule(store, f"score-{name}", code, "canaries scoring", self.models[name])

    def _score(self, name: str, row: Notebook) -> list[str]:
        """Add the passes of a notebook over models; return their target, if there are any."""
        wanted = self.run.profile.notebooks.get(name, {}).get(row.needs) if row.needs else True
        if not row.passes or not wanted:
            return []
        models = list(self.models.values())
        chosen = {"stores": self.stores, "both": models[:2], "clean": models[1:2], "all": models}
        needed = [*chosen[row.passes]] if self.models else ["data/models.yaml"]
        needed += [path for path in row.reads if path.startswith("data/")]
        code = [f"reproduction.notebooks.{row.package}.measure", "reproduction.run.experiment"]
        target = f"$(B)/scores/{name}.json"
        self._rule(target, f"measure-{name}", code, name, *needed)
        return [target]

    def _notebook(self, name: str, row: Notebook, scores: list[str]) -> None:
        source, target = f"notebooks/{name}.ipynb", _executed(name)
        written = " ".join(self._outputs(name))
        lists = {"stores": self.stores, "notebooks": [_executed(n) for n in self.notebooks]}
        reads = [path for read in row.reads for path in lists.get(read, [_executed(read)])]
        reads = [path for path in reads if path != target]
        code = sorted(notebook_code(self.root / source)[0])
        missing = f"$(call missing,{written})"
        self._rule(target, f"notebook-{name}", code, name, source, *scores, *reads, missing)
        self.lines.append(f"{written}: {target} ;")

    def _report(self) -> None:
        self.lines.append(f"EXECUTED := {' '.join(map(_executed, self.notebooks))}")
        manifest, made = "$(R)/manifest.json", "$(R)/report/report.pdf"
        needed = ("$(EXECUTED)", "$(call missing,$(R)/variables.yml)")
        self._rule(manifest, "manifest", ["reproduction.report.manifest"], "", *needed)
        made += " $(R)/report/slides.html" if self.models else ""
        needed = (manifest, f"$(call missing,{made})")
        code = ["reproduction.report.render"]
        self._rule("$(R)/report/report.html", "report", code, "", *needed)
        if self.models:
            read = map(_executed, ("03_open_model_audit", "04_mmlu_fisher"))
            code, page = ["reproduction.report.explorer.page"], "$(R)/explorer.html"
            self._rule(page, "explorer", code, "", *self.stores, *read)
            self.lines.append(f"$(B)/finished: {page}")

    def _rule(
        self, target: str, stage: str, code: list[str], sections: str, *needed: str, but: str = ""
    ) -> None:
        """Add what a target is made from: files, modules (none `but`), sections of the profile."""
        stamp = facts(self.root, code, {but} - {""})
        for section in (*sections.split(), *(["seed"] if sections else [])):
            stamp[f"profile: {section}"] = sha256_of(self._section(section))[:16]
        self.stamps[stage] = stamp
        self.lines.append(f"{target}: $(B)/stamps/{stage} {' '.join(needed)}")

    def _section(self, name: str) -> str:
        """Return a section of the profile, that of a notebook with its own parameters, as text."""
        profile = self.run.profile
        if name in NOTEBOOKS:
            own = notebook_code(self._source(name))[1]
            return json.dumps(profile.notebooks.get(name, {}), sort_keys=True, default=str) + own
        given = asdict(profile.require_pretraining()) if profile.pretraining else {}
        return json.dumps((given | {"seed": profile.seed})[name], sort_keys=True)

    def _outputs(self, name: str) -> list[str]:
        return [f"$(R)/{path}" for path in outputs(self._source(name))]

    def _source(self, name: str) -> Path:
        return self.root / "notebooks" / f"{name}.ipynb"


def _executed(name: str) -> str:
    """Where make finds a notebook that has run; other files are where they are."""
    return f"$(R)/notebooks/{name}.ipynb" if name in NOTEBOOKS else name
