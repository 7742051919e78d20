"""A made-up distribution, profile and run, for tests that need no model."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from contamination.files import sha256_of, write_json
from contamination.scoring.plan import StorePlan
from contamination.scoring.store import Header, Store
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
        write_json(
            build / "corpus" / "corpus.json",
            {
                "packages": [
                    {"package": "alpha", "version": "1.5"},
                    {"package": "gamma_delta", "version": "2.0"},
                ],
                "documents": 1234,
                "characters": 567890,
                "tokens": 98765,
                "seconds": 60.0,
                "sha256": {"documents": "d" * 64, "tokenizer": "e" * 64},
                "canaries": {
                    name: {
                        "template": "question/1",
                        "kind": "question",
                        "dup_count": count,
                        "examples": EXAMPLES,
                        "tokens": sum(self.lengths[name]),
                        "revision": "f" * 64,
                    }
                    for name, count in SETS.items()
                },
            },
        )
        for i, model in enumerate(MODELS):
            directory = build / "models" / model
            write_json(
                directory / "training.json",
                {
                    "seconds": 120.0 + i,
                    "tokens": 50_000 + i,
                    "parameters": 4321,
                    "steps": 77,
                    "final_loss": 3.456 + i,
                    "injections": [],
                },
            )
            (directory / "model.safetensors").write_bytes(model.encode())
            write_json(
                build / "stores" / f"{model}.json",
                {"tokens": {"one/4": 1000 + i, "one/1": 2000}, "seconds": 30.0},
            )

    def scored(
        self,
        model: str,
        name: str,
        *,
        shards: int,
        permutations: int = 0,
        kind: str = "orderings",
        tokens_per_example: int | None = None,
    ) -> Store:
        """Stand in for `Experiment.scored`: random log-probabilities instead of a model's."""
        lengths = self.lengths[name]
        plan = StorePlan(kind, shards, tokens_per_example)
        named = (model, model, name, name, "question/1", 5)
        header = Header(*named, shards, tuple(lengths), kind, tokens_per_example)
        directory = plan.path(self.experiment.build / "stores", model, name)
        store = Store(directory, header)
        if store.parts():
            return store
        seed = int.from_bytes(sha256_of(f"{model} {name} {shards}").encode()[:8], "little")
        rng = np.random.default_rng(seed)
        gain = 2.0 * np.log2(SETS[name]) if model == "contaminated" else 0.0
        sums = np.zeros((shards, permutations + 1))
        units = []
        for shard, index in header.units(permutations):
            order = header.examples((shard, index))
            values = rng.normal(-4, 1, int(header.stored[order].sum())).astype(np.float32)
            if kind == "orderings":
                values[0] += np.float32(gain if index == 0 else 0.0)
                sums[shard, index] = values.sum(dtype=np.float64)
            elif index < len(order):  # the canonical successor stands at the predecessor's place
                values[header.stored[order[:index]].sum()] += np.float32(gain)
            units.append(((shard, index), order, values))
        store.append(units[: len(units) // 2])
        store.append(units[len(units) // 2 :])
        if kind == "orderings":
            self.sums[model, name, shards] = sums
        return store

    def stand_in(self) -> Callable[..., Store]:
        """Return what to put in the place of the method `Experiment.scored`."""
        return lambda _, *args, **kwargs: self.scored(*args, **kwargs)
