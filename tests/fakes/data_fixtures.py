"""A made-up distribution, profile and run, for tests that need no model."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from contamination.files import sha256_of, write_json
from contamination.scoring.plan import StorePlan
from contamination.scoring.store import Header, Store, create_store
from contamination.testsets.sources import DATA_VARIABLE
from fakes.made_up_sets import random_units
from reproduction.run.experiment import MODELS, Experiment

ROOT = Path(__file__).parents[2]
PROFILES = sorted((ROOT / "profiles").glob("*.yaml"))
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

WORDS = ["apple", "river", "stone", "cloud", "lamp", "green", "tower", "quiet", "orbit", "maple"]
SETS = {"one": 1, "eight": 8, "sixty-four": 64}  # name -> duplication count
EXAMPLES = 12
TRAINING = {
    "batch_size": 2,
    "micro_batch_size": 2,
    "learning_rate": 0.001,
    "weight_decay": 0.1,
    "warmup_steps": 1,
    "checkpoint_steps": 10,
}


def make_distribution(site: Path, name: str, files: dict[str, str | bytes]) -> None:
    """Install a distribution of Python files into `site`, as pip would record it."""
    info = site / f"{name}-1.5.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.5\n")
    record = [f"{info.name}/METADATA,,", f"{info.name}/RECORD,,"]
    for path, source in files.items():
        target = site / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(source if isinstance(source, bytes) else source.encode())
        record.append(f"{path},,")
    (info / "RECORD").write_text("\n".join(record) + "\n")


def source_of(name: str, documents: int) -> str:
    """A module of functions, each with a docstring that begins with a name of its own."""
    words = [" ".join(np.random.default_rng(i).choice(WORDS, 30)) for i in range(documents)]
    texts = [f"{name}{i} is about {some} and nothing else." for i, some in enumerate(words)]
    return "".join(f'def f{i}():\n    """{text}"""\n' for i, text in enumerate(texts))


def divided_run(root: Path, monkeypatch: Any) -> Experiment:
    """Make a corpus of about half of two packages; beta, and what it has of alpha, is held out."""
    from reproduction.run.corpus_stage import make_corpus

    beta = source_of("beta", 30) + source_of("alpha", 60).replace("def f", "def g")
    sources = {"alpha": source_of("alpha", 60), "gamma": source_of("gamma", 60), "beta": beta}
    for name, source in sources.items():
        make_distribution(root / "site", name, {f"{name}.py": source})
    monkeypatch.syspath_prepend(str(root / "site"))
    monkeypatch.setenv(DATA_VARIABLE, str(root))
    (root / "c.jsonl").write_text("".join(f'{{"text": "canary {i}"}}\n' for i in range(3)))
    canary = {"name": "c", "file": "c.jsonl", "template": "text/1", "examples": 3, "dup_count": 1}
    corpus = {"packages": ["alpha", "gamma"], "held_out": ["beta"], "characters": 10_000}
    data = profile_data() | {"corpus": corpus | {"vocabulary": 300}, "canaries": [canary]}
    run = Experiment(write_profile(root / "divided.yaml", data), root / "build")
    make_corpus(run)
    return run


def profile_data() -> dict[str, Any]:
    """A valid profile, as YAML would give it."""
    return {
        "seed": 5,
        "corpus": {"packages": ["alpha"], "held_out": ["beta"], "vocabulary": 300},
        "canaries": [
            {"name": name, "kind": "question", "examples": EXAMPLES, "dup_count": count}
            for name, count in SETS.items()
        ],
        "model": {"n_embd": 8, "n_layer": 1, "n_head": 1, "n_positions": 16},
        "training": dict(TRAINING),
        "scoring": {"shards": 4, "permutations": 6, "whole_set_permutations": 9},
        "notebooks": {"01_canary_eval": {"alpha": 0.05}},
    }


def released_data() -> dict[str, Any]:
    """A valid profile that trains nothing."""
    return {"seed": 5, "notebooks": {"03_open_model_audit": {"models": ["gpt2"]}}}


def write_profile(path: Path, data: dict[str, Any] | None = None) -> Path:
    path.write_text(yaml.safe_dump(data or profile_data(), sort_keys=False), encoding="utf-8")
    return path


class MadeUpRun:
    """The files of a finished run, its stores filled with random numbers.

    `sums[model, dataset, shards][shard, ordering]` are the sequence log-probabilities that were
    written, added up here and not by the store. Under the contaminated model the canonical order
    of a set gains in proportion to the logarithm of its copies.
    """

    def __init__(self, root: Path) -> None:
        self.profile = write_profile(root / "tiny.yaml")
        self.experiment = Experiment(self.profile, root / "build")
        self.results = root / "results"
        self.sums: dict[tuple[str, str, int], np.ndarray] = {}
        self.lengths = {
            name: np.random.default_rng(i).integers(3, 9, EXAMPLES).tolist()
            for i, name in enumerate(SETS)
        }
        build = root / "build"
        planted = {"template": "question/1", "kind": "question", "examples": EXAMPLES}
        packages = [("alpha", "1.5"), ("gamma_delta", "2.0")]
        facts = {"documents": 1234, "characters": 567890, "tokens": 98765, "seconds": 60.0}
        facts["packages"] = [{"package": name, "version": version} for name, version in packages]
        facts["sha256"] = {"documents": "d" * 64, "tokenizer": "e" * 64}
        facts["canaries"] = {
            name: planted
            | {"dup_count": count, "tokens": sum(self.lengths[name]), "revision": "f" * 64}
            for name, count in SETS.items()
        }
        write_json(build / "corpus" / "corpus.json", facts)
        for i, model in enumerate(MODELS):
            directory = build / "models" / model
            trained = {"parameters": 4321, "steps": 77, "injections": []}
            trained |= {"seconds": 120.0 + i, "tokens": 50_000 + i, "final_loss": 3.456 + i}
            write_json(directory / "training.json", trained)
            (directory / "model.safetensors").write_bytes(model.encode())
            read = {"tokens": {"one/4": 1000 + i, "one/1": 2000}, "seconds": 30.0}
            write_json(build / "stores" / f"{model}.json", read)

    def scored(self, model: str, name: str, plan: StorePlan, permutations: int = 0) -> Store:
        """Stand in for `Experiment.scored`: random log-probabilities instead of a model's."""
        lengths = self.lengths[name]
        kind, shards = plan.kind, plan.shards
        named = (model, model, name, name, "question/1", 5)
        header = Header(*named, shards, tuple(lengths), kind, plan.tokens_per_example)
        directory = plan.path(self.experiment.build / "stores", model, name)
        store = create_store(directory, header)
        if store.parts():
            return store
        seed = int.from_bytes(sha256_of(f"{model} {name} {shards}").encode()[:8], "little")
        gain = 2.0 * np.log2(SETS[name]) if model == "contaminated" else 0.0
        units = random_units(header, permutations, np.random.default_rng(seed), gain, whole=True)
        store.append(units[: len(units) // 2])
        store.append(units[len(units) // 2 :])
        if kind == "orderings":
            sums = [values.sum(dtype=np.float64) for _, _, values in units]
            self.sums[model, name, shards] = np.reshape(sums, (shards, permutations + 1))
        return store

    def stand_in(self) -> Callable[..., Store]:
        """Return what to put in the place of the method `Experiment.scored`."""
        return lambda _, *args, **kwargs: self.scored(*args, **kwargs)
