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

CORPUS = "$(B)/corpus/corpus.json"
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
        listed = run.profile.notebooks
        self.notebooks = {
            name: row
            for name, row in NOTEBOOKS.items()
            if (not row.released if self.models else name in listed)
        }
        if self.models:
            self._train()
        scores: list[str] = []
        for name, row in self.notebooks.items():
            scores += (own := self._score(name, row))
            self._notebook(name, row, own)
        self._report()
        outputs = [path for row in self.notebooks.values() for path in _outputs(row)]
        self.lines.append(f"SCORES := {' '.join([*self.stores, *scores])}")
        self.lines.append(f"OUTPUTS := {' '.join(outputs)}")

    def _train(self) -> None:
        profile, (contaminated, clean, *_) = self.run.profile, self.models
        files = profile.corpus.files or [spec.file for spec in profile.canaries if spec.file]
        # Docstrings of packages are made without registered sets, which change more often.
        unused = () if files else (SOURCES,)
        self._rule(CORPUS, "corpus", ["reproduction.run.corpus_stage"], "corpus canaries", unused)
        for name, target in self.models.items():
            kept = "canaries model" if name in (contaminated, clean) else "sizes"
            code = ["reproduction.run.training_stage"]
            self._rule(target, f"train-{name}", code, f"training {kept}", (), CORPUS)
        for name, store in zip(self.models, self.stores, strict=False):
            code = ["reproduction.notebooks.canaries.score"]
            self._rule(store, f"score-{name}", code, "canaries scoring", (), self.models[name])

    def _score(self, name: str, row: Notebook) -> list[str]:
        """Add the passes of a notebook over models; return their target, if there are any."""
        wanted = self.run.profile.notebooks.get(name, {}).get(row.needs) if row.needs else True
        if not row.passes or (self.models and not wanted):
            return []
        models = list(self.models.values())
        chosen = {"stores": self.stores, "both": models[:2], "clean": models[1:2], "all": models}
        needed = [*chosen[row.passes]] if self.models else ["data/models.yaml"]
        needed += [path for path in row.reads if path.startswith("data/")]
        code = [f"reproduction.notebooks.{row.package}.measure", "reproduction.run.measured"]
        target = f"$(B)/scores/{name}.json"
        self._rule(target, f"measure-{name}", code, name, (), *needed)
        return [target]

    def _notebook(self, name: str, row: Notebook, scores: list[str]) -> None:
        source, target = f"notebooks/{name}.ipynb", _executed(name)
        outputs = " ".join(_outputs(row))
        lists = {"stores": self.stores, "notebooks": [_executed(n) for n in self.notebooks]}
        reads = [path for read in row.reads for path in lists.get(read, [_executed(read)])]
        reads = [path for path in reads if path != target]
        code = sorted(notebook_code(self.root / source)[0])
        missing = f"$(call missing,{outputs})"
        self._rule(target, f"notebook-{name}", code, name, (), source, *scores, *reads, missing)
        self.lines.append(f"{outputs}: {target} ;")

    def _report(self) -> None:
        self.lines.append(f"EXECUTED := {' '.join(map(_executed, self.notebooks))}")
        manifest, made = "$(R)/manifest.json", "$(R)/report/report.pdf"
        needed = ("$(EXECUTED)", "$(call missing,$(R)/variables.yml)")
        self._rule(manifest, "manifest", ["reproduction.report.manifest"], "", (), *needed)
        made += " $(R)/report/slides.html" if self.models else ""
        needed = (manifest, f"$(call missing,{made})")
        code = ["reproduction.report.render"]
        self._rule("$(R)/report/report.html", "report", code, "", (), *needed)
        if self.models:
            read = map(_executed, ("03_open_model_audit", "04_mmlu_fisher"))
            code, page = ["reproduction.report.explorer.page"], "$(R)/explorer.html"
            self._rule(page, "explorer", code, "", (), *self.stores, *read)
            self.lines.append(f"$(B)/finished: {page}")

    def _rule(
        self,
        target: str,
        stage: str,
        code: list[str],
        sections: str,
        without: tuple[str, ...],
        *needed: str,
    ) -> None:
        """Add what a target is made from: files, modules and sections of the profile."""
        stamp = facts(self.root, code, without)
        for section in (*sections.split(), *(["seed"] if sections else [])):
            stamp[f"profile: {section}"] = sha256_of(self._section(section))[:16]
        self.stamps[stage] = stamp
        self.lines.append(f"{target}: $(B)/stamps/{stage} {' '.join(needed)}")

    def _section(self, name: str) -> str:
        """Return a section of the profile, that of a notebook with its own parameters, as text."""
        profile = self.run.profile
        if name in NOTEBOOKS:
            own = notebook_code(self.root / "notebooks" / f"{name}.ipynb")[1]
            return json.dumps(profile.notebooks.get(name, {}), sort_keys=True, default=str) + own
        given = asdict(profile.require_pretraining()) if profile.pretraining else {}
        return json.dumps((given | {"seed": profile.seed})[name], sort_keys=True)


def _executed(name: str) -> str:
    """Where make finds a notebook that has run; other files are where they are."""
    return f"$(R)/notebooks/{name}.ipynb" if name in NOTEBOOKS else name


def _outputs(row: Notebook) -> list[str]:
    return [f"$(R)/{path}" for path in row.outputs]
