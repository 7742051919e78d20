"""One run of a profile: where its files lie, and how to open them.

::

    build/<profile>/corpus/       documents.jsonl, canaries/*.jsonl, tokenizer/, corpus.json
    build/<profile>/models/       contaminated/, clean/, and clean-<width>/ for each further size
    build/<profile>/stores/       <model>/<canary set>/orderings-<r>/, successors-<r>/

The stages write these in order (`make` knows which depends on which); notebooks only read them,
through `Experiment`. A run of a profile without a corpus has none of them.
"""

from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contamination.errors import InputError
from contamination.files import read_json
from contamination.scoring.models import ModelEntry
from contamination.scoring.plan import StoreNeed, StorePlan
from contamination.scoring.store import Store, open_store
from contamination.scoring.store_format import count_rows
from contamination.testsets.example_set import ExampleSet, load_test_set
from reproduction.run.profile import Architecture, CanarySpec, Profile, load_profile

if TYPE_CHECKING:
    from contamination.scoring.contract import Scorer
    from contamination.scoring.store_format import Kind

MODELS = ("contaminated", "clean")


class Experiment:
    """Paths and contents of one run, of the YAML file of a profile and its directory in `build`."""

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

    def store_for(self, model: str, dataset: str, test: StoreNeed) -> tuple[Store, int]:
        """Open the store that a test of a canary set reads here; also return its permutations."""
        plan, permutations = self.profile.scoring.plan(test, self.spec(dataset).examples)
        return self.scored(model, dataset, permutations=permutations, **asdict(plan)), permutations

    def scored(
        self,
        model: str,
        name: str,
        *,
        shards: int,
        permutations: int = 0,
        kind: "Kind" = "orderings",
        tokens_per_example: int | None = None,
    ) -> Store:
        """Open a store that was scored, with so many permutations of each shard at least.

        No model is opened: that the store is of the model as it is now is for make to ensure.
        Raises InputError if there is no such store, it is of another text or seed, or it lacks
        something of what is asked for.
        """
        plan = StorePlan(kind, shards, tokens_per_example)
        store = open_store(plan.path(self.build / "stores", model, name))
        header, revision = store.header, self.test_set(name).revision
        if (header.dataset_revision, header.seed) != (revision, self.profile.seed):
            raise InputError(
                f"{store.directory}: it was scored from another text or with another seed; run "
                "`make reproduce`"
            )
        if sum(map(count_rows, store.parts())) < header.tokens_stored(permutations):
            raise InputError(
                f"{store.directory}: something of what is asked for is not scored yet; run "
                "`make reproduce`, or `python -m reproduction measure` with the notebook and its "
                "--parameter"
            )
        return store

    def score(
        self,
        model: str,
        name: str,
        *,
        shards: int,
        permutations: int = 0,
        kind: "Kind" = "orderings",
        tokens_per_example: int | None = None,
    ) -> Store:
        """Score what a store lacks, on all processes; see `contamination.scoring.score.score`."""
        # Imported here: commands that score nothing must not cost the import of torch.
        from contamination.scoring.local import TransformersScorer
        from contamination.scoring.score import score

        if model not in self._scorers:
            self._scorers[model] = TransformersScorer(self.model(model))
        plan = StorePlan(kind, shards, tokens_per_example)
        return score(
            self.test_set(name),
            self._scorers[model],
            plan.path(self.build / "stores", model, name),
            model=model,
            shards=shards,
            permutations=permutations,
            seed=self.profile.seed,
            kind=kind,
            tokens_per_example=tokens_per_example,
            replace=True,
        )


def trained_here(experiment: Experiment) -> list[ModelEntry]:
    """Return the models of a run: the contaminated one with its truth, the clean one as control.

    There are none where the profile has no corpus.
    """
    if experiment.profile.pretraining is None:
        return []
    contaminated, clean = ((name, str(experiment.model(name))) for name in MODELS)
    planted = {f"profile/{spec.name}": spec.dup_count for spec in experiment.profile.canaries}
    return [
        ModelEntry(*contaminated, role="contaminated", planted=planted),
        ModelEntry(*clean, role="negative_control", planted=dict.fromkeys(planted, 0)),
    ]
