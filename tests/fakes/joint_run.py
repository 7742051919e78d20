"""Runs of two processes that end well or of which one is killed; and killed training.

The first two meet at the first port, each writes what it was given to FOLDER/seen-RANK.json; FOLDER
has the sets of an audit. Of those at the next port the first is killed, at the last the second.
What is said of errors is in FOLDER/errors-KILLED-RANK. Each of KILLS leaves what it leaves of
training in FOLDER/HOW.
"""

import atexit
import gc
import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer

from contamination.scoring import work
from contamination.scoring.local import TransformersScorer
from contamination.scoring.processes import processes
from fakes import measuring_run, scoring_run, training_run
from fakes.data_fixtures import released_data, write_profile
from fakes.made_up_scorer import MadeUpScorer
from fakes.opening import Opening
from fakes.remembering_scorer import made_up_set
from fakes.training_run import KILLS, SPEC
from reproduction.notebooks.open_models.measure import measure
from reproduction.notebooks.open_models.settings import Settings
from reproduction.run.experiment import Experiment
from reproduction.run.network import NextTokenLoss

LIMIT = 300  # seconds, for a machine that does other things, too
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
    put(work, "SMALLEST_PART", scoring_run.SMALLEST_PART)
    store = scoring_run.run(TransformersScorer(model, batch_tokens=25), folder / "store")
    assert store.log_probs(5).shape == (3, 6)  # every process sees the whole of it
    seen = {"measured": measuring_run.run(model, folder / "measured")}

    tokenizer = AutoTokenizer.from_pretrained(model)
    access = Opening(tokenizer)
    cells = measure(
        Experiment(folder / "p.yaml", folder / "build"),
        Settings(
            models=["one", "two"],
            sets=[str(folder / f"{name}.txt") for name in (*AUDITED, "missing")],
            tests=["permutation", "sharded_t", "successor"],
            permutations=5,
            max_records=None,
            start_each=False,
            by_line=True,
        ),
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


def run_and_tell(model: Path, folder: Path) -> None:
    own = run(model, folder, setattr)
    Path(folder, f"seen-{processes().process_index}.json").write_text(json.dumps(own))


def run_killed(model: Path, folder: Path, rank: int) -> None:
    work.SMALLEST_PART = scoring_run.SMALLEST_PART
    scorer = MadeUpScorer(AutoTokenizer.from_pretrained(model))
    scoring_run.run_killed(scorer, folder / f"killed-{rank}", rank, folder / f"fifo-{rank}")


def start(job: Callable[[], None], port: str, errors: str) -> list[int]:
    """Do a job in two processes that meet at a port of the caller; return their exit statuses.

    They part here and not before, so torch is imported once.
    """
    gc.freeze()  # else each of them walks through all of torch when it ends
    children = []
    for rank in range(2):
        if (child := os.fork()) == 0:
            signal.alarm(LIMIT)
            os.dup2(os.open(f"{errors}-{rank}", os.O_WRONLY | os.O_CREAT), 2)
            os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2"}
            os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": "2"}
            os.environ["TORCHELASTIC_USE_AGENT_STORE"] = "True"
            job()
            sys.exit()
        children.append(child)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def main(model: Path, folder: Path, ports: list[str]) -> dict[str, Any]:
    """Start everything, one after the other; return the exit statuses."""
    atexit.register(scoring_run.nothing_is_left)  # first, so that it runs last
    jobs = [partial(run_and_tell, model, folder)]
    jobs += [partial(run_killed, model, folder, rank) for rank in range(2)]
    names = [f"{folder}/errors-{killed}" for killed in ("none", 0, 1)]
    together = list(map(start, jobs, ports, names))
    tokenizer = AutoTokenizer.from_pretrained(model)
    alone = [training_run.killed(how, tokenizer, folder / how / "model") for how in KILLS]
    return {"together": together, "alone": alone}
