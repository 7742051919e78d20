"""Prerequisites for the Makefile: `build/<profile>/rules.mk`, and a stamp for each stage.

A stamp lists what a stage depends on apart from the files of the stages before it: a digest of each
module that it imports, and the sections of the profile that it reads. It is written again only if
that changes, so its time says when the stage became stale. `diff` shows why.
"""

import json
from dataclasses import asdict
from pathlib import Path

from contamination.files import sha256_of, write_text
from reproduction.notebooks.table import NOTEBOOKS, Notebook
from reproduction.run.files import RunFiles
from reproduction.stages.closure import facts, notebook_code

MODELS_FILE = "data/models.yaml"
STAGE = "reproduction.run.{}_stage"
SOURCES = "contamination.testsets.sources"


def write_rules(run: RunFiles, root: Path = Path()) -> Path:
    """Write the stamps of all stages of a profile, then the rules; return their file.

    Paths in it begin with $(B) and $(R), and it calls $(missing) of the Makefile.
    """
    rules = Rules(run, root)
    rules.collect()
    for name, stamp in rules.stamps.items():
        path = run.build / "stamps" / name
        text = "".join(f"{key} {value}\n" for key, value in stamp.items())
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            write_text(path, text)
    target = run.build / "rules.mk"
    head = "# What each stage depends on, written by reproduction.stages.rules. Do not edit.\n"
    write_text(target, head + "".join(f"{line}\n" for line in rules.lines))
    return target


class Rules:
    """The lines of the included makefile and the contents of the stamps, while they are made."""

    def __init__(self, run: RunFiles, root: Path) -> None:
        self.run, self.root = run, root
        self.lines: list[str] = []
        self.stamps: dict[str, dict[str, str]] = {}
        trained = list(run.shapes)
        self.models = {name: f"$(B)/models/{name}/training.json" for name in trained}
        self.stores = [f"$(B)/stores/{name}.json" for name in trained[:2]]
        self.notebooks = {
            name: row
            for name, row in NOTEBOOKS.items()
            if (not row.released if trained else name in run.profile.notebooks)
        }

    def collect(self) -> None:
        """Add the rules of all stages, in the order in which they run."""
        if self.models:
            self._train()
        scores = [self._measure(name, row) for name, row in self.notebooks.items()]
        for name, row in self.notebooks.items():
            self._notebook(name, row)
        outputs = [f"$(R)/{path}" for row in self.notebooks.values() for path in row.outputs]
        self._variable("EXECUTED", [self._executed(name) for name in self.notebooks])
        self._variable("SCORES", [*self.stores, *(path for path in scores if path)])
        self._variable("OUTPUTS", outputs)
        self._report()

    def _train(self) -> None:
        models, profile = list(self.models), self.run.profile
        corpus, code = "$(B)/corpus/corpus.json", [STAGE.format("corpus")]
        files = profile.corpus.files or [spec.file for spec in profile.canaries if spec.file]
        # Docstrings of packages are made without registered sets, which change more often.
        unused = () if files else (SOURCES,)
        stamp = self._stamp("corpus", code, "seed", "corpus", "canaries", without=unused)
        self._rule(corpus, stamp)
        for name, target in self.models.items():
            kept = ("sizes",) if name not in models[:2] else ("canaries", "model")
            code = [STAGE.format("training")]
            stamp = self._stamp(f"train-{name}", code, "seed", "training", *kept)
            self._rule(target, stamp, corpus)
        code = ["reproduction.notebooks.canaries.score"]
        stamp = self._stamp("score", code, "seed", "canaries", "scoring")
        for name, store in zip(models, self.stores, strict=False):
            self._rule(store, stamp, self.models[name])

    def _measure(self, name: str, row: Notebook) -> str:
        """Add the passes of a notebook over models; return their target, "" if there are none."""
        parameters = self.run.profile.notebooks.get(name, {})
        if not row.passes or (self.models and row.needs and not parameters.get(row.needs)):
            return ""
        target = f"$(B)/scores/{name}.json"
        code = [f"reproduction.notebooks.{row.package}.measure", "reproduction.run.measured"]
        stamp = self._stamp(f"measure-{name}", code, "seed", name)
        self._rule(target, stamp, *self._passed_over(row), *self._data(row))
        return target

    def _passed_over(self, row: Notebook) -> list[str]:
        if not self.models:
            return [MODELS_FILE]
        models = list(self.models.values())
        chosen = {"stores": self.stores, "both": models[:2], "clean": models[1:2], "all": models}
        return chosen[row.passes]

    def _data(self, row: Notebook) -> list[str]:
        return [name for name in row.reads if name.startswith("data/")] if row.passes else []

    def _notebook(self, name: str, row: Notebook) -> None:
        source, target = Path("notebooks") / f"{name}.ipynb", self._executed(name)
        code = sorted(notebook_code(self.root / source)[0])
        needed = [source.as_posix(), self._stamp(f"notebook-{name}", code, "seed", name)]
        needed += [path for path in [f"$(B)/scores/{name}.json"] if self._is_measured(path)]
        for read in row.reads:
            needed += {
                "stores": self.stores,
                "notebooks": [self._executed(other) for other in self.notebooks if other != name],
            }.get(read) or [self._executed(read) if read in NOTEBOOKS else read]
        outputs = " ".join(f"$(R)/{path}" for path in row.outputs)
        self._rule(target, *needed, f"$(call missing,{outputs})")
        self.lines.append(f"{outputs}: {target} ;")

    def _is_measured(self, target: str) -> bool:
        return any(line.startswith(f"{target}:") for line in self.lines)

    def _report(self) -> None:
        manifest, page = "$(R)/manifest.json", "$(R)/report/report.html"
        stamp = self._stamp("manifest", ["reproduction.report.manifest"])
        self._rule(manifest, stamp, "$(EXECUTED)", "$(call missing,$(R)/variables.yml)")
        made = ["$(R)/report/report.pdf", *(["$(R)/report/slides.html"] if self.models else [])]
        stamp = self._stamp("report", ["reproduction.report.render"])
        self._rule(page, stamp, manifest, f"$(call missing,{' '.join(made)})")
        if self.models:
            read = ("03_open_model_audit", "04_mmlu_fisher")
            explorer = "$(R)/explorer.html"
            stamp = self._stamp("explorer", ["reproduction.report.explorer.page"])
            self._rule(explorer, stamp, *self.stores, *map(self._executed, read))
            self._rule("$(B)/finished", explorer)

    def _executed(self, name: str) -> str:
        return f"$(R)/notebooks/{name}.ipynb"

    def _rule(self, target: str, *needed: str) -> None:
        self.lines.append(f"{target}: {' '.join(needed)}")

    def _variable(self, name: str, values: list[str]) -> None:
        self.lines.append(f"{name} := {' '.join(values)}")

    def _stamp(
        self, name: str, modules: list[str], *sections: str, without: tuple[str, ...] = ()
    ) -> str:
        """Note what a stage depends on; return the file that says so."""
        stamp = facts(self.root, modules, without)
        for section in sections:
            stamp[f"profile: {section}"] = sha256_of(self._section(section))[:16]
        self.stamps[name] = stamp
        return f"$(B)/stamps/{name}"

    def _section(self, name: str) -> str:
        """Return a section of the profile, that of a notebook with its own parameters, as text."""
        profile = self.run.profile
        if name in NOTEBOOKS:
            own = notebook_code(self.root / "notebooks" / f"{name}.ipynb")[1]
            return json.dumps(profile.notebooks.get(name, {}), sort_keys=True, default=str) + own
        if name == "seed":
            return str(profile.seed)
        return json.dumps(asdict(profile.require_pretraining())[name], sort_keys=True)
