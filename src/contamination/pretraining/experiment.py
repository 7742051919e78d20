"""One run of a profile: where its files lie, and how to open them.

::

    build/<profile>/corpus/       documents.jsonl, canaries/*.jsonl, tokenizer/, corpus.json
    build/<profile>/models/       contaminated/, clean/, and clean-<width>/ for each further size
    build/<profile>/stores/       <model>/<canary set>/shards-<r>/, successors-<r>/

The stages write these in order (`make` knows which depends on which); notebooks only read them,
through `Experiment`.
"""

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contamination.errors import InputError
from contamination.files import read_json
from contamination.profile import Architecture, CanarySpec, Profile, load_profile
from contamination.store import Store
from contamination.test_set import TestSet, load_test_set

if TYPE_CHECKING:
    from contamination.engine.contract import Scorer
    from contamination.store_layout import Kind

MODELS = ("contaminated", "clean")


class Experiment:
    """Paths and contents of one run.

    Parameters
    ----------
    profile : the YAML file of the profile.
    build : directory of its intermediate files.
    """

    def __init__(self, profile: Path | str, build: Path | str) -> None:
        self.profile: Profile = load_profile(Path(profile))
        self.build = Path(build)
        self.corpus = self.build / "corpus"
        self._scorers: dict[str, Scorer] = {}

    @cached_property
    def corpus_facts(self) -> dict[str, Any]:
        """What the corpus stage recorded: sizes, versions, checksums."""
        self.require_corpus()
        facts: dict[str, Any] = read_json(self.corpus / "corpus.json")
        return facts

    def require_corpus(self) -> None:
        """Raise `InputError` if the corpus stage has not finished."""
        path = self.corpus / "corpus.json"
        if not path.exists():
            raise InputError(f"{path} is missing: run `make reproduce` or the corpus stage first")

    def spec(self, name: str) -> CanarySpec:
        """Return the canary set of that name, as the profile describes it."""
        for spec in self.profile.canaries:
            if spec.name == name:
                return spec
        known = ", ".join(s.name for s in self.profile.canaries)
        raise InputError(f"profile {self.profile.name} has no canary set {name!r}; it has {known}")

    @property
    def shapes(self) -> dict[str, Architecture]:
        """Shape of every model: those of `MODELS`, then the further sizes, in their order."""
        sizes = {f"clean-{shape.n_embd}": shape for shape in self.profile.sizes}
        return dict.fromkeys(MODELS, self.profile.model) | sizes

    @property
    def sizes(self) -> tuple[str, ...]:
        """Names of the models that read the clean text in other sizes."""
        return tuple(self.shapes)[len(MODELS) :]

    def model(self, name: str) -> Path:
        """Directory of a model."""
        if name not in self.shapes:
            raise InputError(f"unknown model {name!r}: choose one of {', '.join(self.shapes)}")
        return self.build / "models" / name

    def test_set(self, name: str) -> TestSet:
        """Load a canary set as a test set, in canonical order."""
        path = self.corpus / "canaries" / f"{self.spec(name).name}.jsonl"
        return load_test_set(path, self.corpus_facts["canaries"][name]["template"], name)

    def scored(
        self,
        model: str,
        name: str,
        *,
        shards: int,
        permutations: int = 0,
        kind: "Kind" = "orderings",
        first: int | None = None,
    ) -> Store:
        """Store of that kind, scoring what is missing; see `contamination.scoring.score`."""
        # Imported here: commands that score nothing must not cost the import of torch.
        from contamination.engine.local import TransformersScorer
        from contamination.scoring import score

        if model not in self._scorers:
            self._scorers[model] = TransformersScorer(self.model(model))
        folder = f"shards-{shards:03d}" if kind == "orderings" else f"{kind}-{shards:03d}"
        return score(
            self.test_set(name),
            self._scorers[model],
            self.build / "stores" / model / name / folder,
            model=model,
            shards=shards,
            permutations=permutations,
            seed=self.profile.seed,
            kind=kind,
            first=first,
            replace=True,
        )
