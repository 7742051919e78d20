"""The files of one run of a profile: where the corpus, the canary sets and the models lie.

::

    build/<profile>/corpus/       documents.jsonl, canaries/*.jsonl, tokenizer/, corpus.json
    build/<profile>/models/       contaminated/, clean/, and clean-<width>/ for each further size

The stages write these in order, and `make` knows which depends on which. Training needs no more
than `RunFiles`; `reproduction.run.experiment.Experiment` adds the stores of what was scored. A run
of a profile without a corpus has none of these files.
"""

from functools import cached_property
from pathlib import Path
from typing import Any

from contamination.errors import InputError
from contamination.files import read_json
from contamination.testsets.example_set import ExampleSet, load_test_set
from reproduction.run.profile import Architecture, CanarySpec, Profile, load_profile

MODELS = ("contaminated", "clean")


class RunFiles:
    """Paths and contents of one run: the YAML file of a profile and its directory in `build`."""

    def __init__(self, profile: Path | str, build: Path | str) -> None:
        self.profile: Profile = load_profile(Path(profile))
        self.build = Path(build)
        self.corpus = self.build / "corpus"

    @cached_property
    def corpus_facts(self) -> dict[str, Any]:
        """What the corpus stage recorded: sizes, versions, checksums."""
        self.require_corpus()
        facts: dict[str, Any] = read_json(self.corpus / "corpus.json")
        return facts

    def require_corpus(self) -> None:
        """Raise InputError if the profile has no corpus, or its stage has not finished."""
        self.profile.require_pretraining()
        path = self.corpus / "corpus.json"
        if not path.exists():
            raise InputError(f"{path} is missing: run `make reproduce` or the corpus stage first")

    def spec(self, name: str) -> CanarySpec:
        """Return the canary set of that name, as the profile describes it."""
        specs = {spec.name: spec for spec in self.profile.canaries}
        if name not in specs:
            known = f"it has {', '.join(specs) or 'none'}"
            raise InputError(f"profile {self.profile.name} has no canary set {name!r}; {known}")
        return specs[name]

    @property
    def shapes(self) -> dict[str, Architecture]:
        """Shape of every model: those of `MODELS`, then the further sizes, in their order."""
        if self.profile.pretraining is None:
            return {}
        sizes = {f"clean-{shape.n_embd}": shape for shape in self.profile.sizes}
        return dict.fromkeys(MODELS, self.profile.model) | sizes

    @property
    def sizes(self) -> tuple[str, ...]:
        """Names of the models that read the clean text in other sizes."""
        return tuple(self.shapes)[len(MODELS) :]

    def model(self, name: str) -> Path:
        """Directory of a model. Raises InputError if the profile trains no such model."""
        self.profile.require_pretraining()
        if name not in self.shapes:
            raise InputError(f"unknown model {name!r}: choose one of {', '.join(self.shapes)}")
        return self.build / "models" / name

    def test_set(self, name: str) -> ExampleSet:
        """Load a canary set as a test set, in canonical order."""
        path = self.corpus / "canaries" / f"{self.spec(name).name}.jsonl"
        return load_test_set(path, self.corpus_facts["canaries"][name]["template"], name)
