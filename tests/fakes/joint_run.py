"""What several processes do together, as a program to be launched twice at once.

python joint_run.py MODEL FOLDER

Each process writes what it was given to FOLDER/seen-RANK.json; FOLDER has the sets of an audit.
"""

import atexit
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer

from contamination.scoring import score as scoring
from contamination.scoring.local import TransformersScorer
from contamination.scoring.processes import processes
from fakes import measuring_run, scoring_run, training_run
from fakes.data_fixtures import released_data, write_profile
from fakes.opening import Opening
from fakes.remembering_scorer import made_up_set
from fakes.training_run import SPEC
from reproduction.notebooks.open_models.measure import measure
from reproduction.run.experiment import Experiment
from reproduction.run.network import NextTokenLoss

AUDITED = {"first": 24, "second": 30}  # sets, and their examples


def write_inputs(folder: Path) -> None:
    """Write the sets, and a profile that trains nothing."""
    write_profile(folder / "p.yaml", released_data())
    for name, count in AUDITED.items():
        (folder / f"{name}.txt").write_text("".join(made_up_set(count).examples))


def run(model: Path, folder: Path, put: Callable[[Any, str, Any], None]) -> dict[str, Any]:
    """Score, measure, make the passes of notebook 03 and train; return what this process did.

    `put`(object, name, value) replaces what stand-ins replace.
    """
    put(scoring, "SMALLEST_PART", scoring_run.SMALLEST_PART)
    store = scoring_run.run(TransformersScorer(model, batch_tokens=25), folder / "store")
    assert store.log_probs(5).shape == (3, 6)  # every process sees the whole of it
    seen = {"measured": measuring_run.run(model, folder / "measured")}

    tokenizer = AutoTokenizer.from_pretrained(model)
    access = Opening(tokenizer)
    cells = measure(
        Experiment(folder / "p.yaml", folder / "build"),
        models=["one", "two"],
        sets=[str(folder / f"{name}.txt") for name in (*AUDITED, "missing")],
        tests=["permutation", "sharded_t", "successor"],
        permutations=5,
        max_records=None,
        start_each=False,
        by_line=True,
        access=access,
    )["cells"]
    seen["scored"] = {name: scorer.scored for name, scorer in access.scorers.items()}

    targets, forward = [], NextTokenLoss.forward

    def counted(network: NextTokenLoss, ids: Any) -> Any:
        targets.append(ids[:, 1:].numel())
        return forward(network, ids)

    put(NextTokenLoss, "forward", counted)
    training_run.run(tokenizer, folder / "trained")
    seen["targets"] = sum(targets)
    # Each of two reads its share at once, although a micro-batch would hold more.
    halves = replace(SPEC, micro_batch_size=SPEC.batch_size // 2 * processes().num_processes)
    training_run.run(tokenizer, folder / "halves", spec=halves)

    if processes().is_main_process:
        cells.to_parquet(folder / "cells.parquet")
    return json.loads(json.dumps(seen))


if __name__ == "__main__":
    atexit.register(scoring_run.nothing_is_left)  # first, so that it runs last
    own = run(Path(sys.argv[1]), Path(sys.argv[2]), setattr)
    Path(sys.argv[2], f"seen-{processes().process_index}.json").write_text(json.dumps(own))
