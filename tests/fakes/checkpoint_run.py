"""The passes of notebook 12 on made-up checkpoints."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from contamination.scoring.models import ModelEntry
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.sources import open_lines, open_test_set
from fakes.opening import Opening
from fakes.remembering_scorer import WORDS, RemembersText
from reproduction.notebooks.checkpoints.measure import checkpoints, measure
from reproduction.run import experiment

PLANTED = {"often": 50, "twice": 2}
SETS = (*PLANTED, "unread", "other")
EXAMPLES = 24
SETTINGS: dict[str, Any] = {
    "models": ["reader"],
    "controls": ["old"],
    "tests": ["permutation", "sharded_t", "sharded_exact", "successor"],
    "shards": 6,
    "permutations": 9,
    "whole_set_permutations": 19,
    "max_records": 5000,
    "ablation_shards": [3, 6, 12],
    "length": 48,
    "spans": 8,
    "k": 20,
    "start_each": False,
}
SEED = 3


class RemembersLines(RemembersText):
    """Looks further back: between two lines stand some ten tokens that all of them share."""

    RUN = 16


class MadeUpCheckpoints(Opening):
    """Sets as files of a folder, a model that has read some of them, and one that has read none."""

    def __init__(self, folder: Path, tokenizer: Any) -> None:
        super().__init__(tokenizer)
        self.folder = folder
        profile = SimpleNamespace(seed=SEED, pretraining=None)
        self.experiment = SimpleNamespace(build=folder / "build", profile=profile)
        self.sets = {name: str(folder / "sets" / f"{name}.jsonl") for name in SETS}

    def write(self) -> None:
        for number, (name, path) in enumerate(self.sets.items()):
            rng = np.random.default_rng(number)
            texts = [" ".join(rng.choice(WORDS, 6)) for _ in range(EXAMPLES)]
            lines = [json.dumps({"t": f"{i} {name} {text}"}) for i, text in enumerate(texts)]
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_text("\n".join(lines) + "\n")

    def find(self, name: str) -> ModelEntry:
        """Stand in for the registry of models."""
        planted = {self.sets[each]: count for each, count in PLANTED.items()}
        return ModelEntry(name, f"org/{name}", planted=planted if name != "old" else {})

    def open_set(self, name: str, *, max_records: int | None, lines: bool = False) -> ExampleSet:
        return open_lines(name) if lines else open_test_set(name, template="t")

    def made(self, name: str) -> RemembersLines:
        planted = [self.sets[each] for each in PLANTED if name != "old"]
        read = [open_lines(path) for path in planted if Path(path).is_file()]
        return RemembersLines(self.tokenizer, *read, revision=name)

    def stand_in(self, replace: Callable[[Any, str, Any], None]) -> None:
        """Put the stand-ins in their places, by `replace`(module, name, value)."""
        replace(experiment, "find_model", self.find)

    def entries(self) -> list[ModelEntry]:
        """The models as the tables ask for them."""
        return checkpoints(self.experiment, SETTINGS["models"], SETTINGS["controls"])

    def measure(self, **changes: Any) -> dict[str, pd.DataFrame]:
        """Make the passes; sets by their short names, or as they are."""
        chosen = {
            "sets": SETS[:3],
            "ablation_sets": ["often", "unread"],
            "min_k_sets": ["often", "unread"],
            "validation_members": ["twice"],
            "validation_non_members": ["other"],
        }
        self.scorers.clear()  # so that they count what these passes score
        arguments = SETTINGS | chosen | changes
        for name in chosen:
            arguments[name] = [self.sets.get(each, each) for each in arguments[name]]
        return measure(self.experiment, **arguments, access=self)
