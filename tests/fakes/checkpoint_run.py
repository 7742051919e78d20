"""The passes of notebook 12 on made-up checkpoints, also as a program to be launched twice at once.

python checkpoint_run.py MODEL FOLDER

MODEL gives the tokenizer, FOLDER has the sets. Process 0 writes the tables to FOLDER/tables.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from transformers import AutoTokenizer

from contamination.scoring import score as scoring
from contamination.scoring.models import ModelEntry
from contamination.scoring.processes import processes
from contamination.testsets.lines import open_lines
from fakes.made_up_scorer import MadeUpScorer
from fakes.remembering_scorer import WORDS, RemembersText
from reproduction.notebooks.checkpoints import measure
from reproduction.run.grid import Access

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
}
SEED = 3
SMALLEST_PART = 100  # tokens, so that there are enough parts for two


class RemembersLines(RemembersText):
    """Looks further back: between two lines stand some ten tokens that all of them share."""

    RUN = 16


class MadeUpCheckpoints(Access):
    """Sets as files of a folder, a model that has read some of them, and one that has read none.

    `opened` keeps the names of the models in the order in which they were opened, `broken` has
    what opening one raises.
    """

    def __init__(self, folder: Path, tokenizer: Any) -> None:
        self.folder = folder
        self.tokenizer = tokenizer
        self.opened: list[str] = []
        self.broken: dict[str, BaseException] = {}
        self.scorers: dict[str, MadeUpScorer] = {}
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

    def open_model(self, entry: ModelEntry) -> MadeUpScorer:
        """Stand in for opening a model."""
        self.opened.append(entry.name)
        if entry.name in self.broken:
            raise self.broken[entry.name]
        planted = [self.sets[name] for name in PLANTED if entry.name != "old"]
        read = [open_lines(path) for path in planted if Path(path).is_file()]
        found = RemembersLines(self.tokenizer, *read, revision=entry.name)
        self.scorers[entry.name] = found
        return found

    def stand_in(self, replace: Callable[[Any, str, Any], None]) -> None:
        """Put the stand-ins in their places, by `replace`(module, name, value)."""
        replace(measure, "find_model", self.find)

    def measure(self, **changes: Any) -> dict[str, pd.DataFrame]:
        """Make the passes; sets by their short names, or as they are."""
        chosen = {
            "sets": SETS[:3],
            "ablation_sets": ["often", "unread"],
            "min_k_sets": ["often", "unread"],
            "validation_members": ["twice"],
            "validation_non_members": ["other"],
        }
        arguments = SETTINGS | chosen | changes
        for name in chosen:
            arguments[name] = [self.sets.get(each, each) for each in arguments[name]]
        experiment = SimpleNamespace(
            build=self.folder / "build", profile=SimpleNamespace(seed=SEED)
        )
        return measure.measure(experiment, **arguments, access=self)


def main(model: Path, folder: Path) -> None:
    """Measure in one of several processes; the first one writes what came of it."""
    made_up = MadeUpCheckpoints(folder, AutoTokenizer.from_pretrained(model))
    made_up.stand_in(setattr)
    scoring.SMALLEST_PART = SMALLEST_PART
    tables = made_up.measure()
    (folder / f"scored-{processes().process_index}").write_text(
        json.dumps({name: scorer.scored for name, scorer in made_up.scorers.items()})
    )
    if processes().is_main_process:
        for name, table in tables.items():
            table.to_parquet(folder / f"{name}.parquet")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
