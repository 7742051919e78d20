"""The stages of a run that need a model: train and score, one per target of the Makefile.

Each reads the files of the stage before it, writes its own whole or not at all, and ends with a
JSON file that says what was done; that file is the target that `make` compares.
"""

import time
from dataclasses import asdict

import numpy as np
from tqdm import tqdm

from contamination.files import replacing, write_json
from contamination.pretraining.experiment import Experiment


def train_model(experiment: Experiment, name: str) -> None:
    """Train the contaminated model, or one on the same corpus without the canaries."""
    profile, directory = experiment.profile, experiment.model(name)
    experiment.require_corpus()  # before the slow imports

    from accelerate import PartialState
    from transformers import AutoTokenizer

    from contamination.pretraining.injection import mix
    from contamination.pretraining.training import train
    from contamination.testsets.tokens import id_type, tokenize

    tokenizer = AutoTokenizer.from_pretrained(experiment.corpus / "tokenizer")
    canaries = {
        spec.name: (np.concatenate(tokenize(tokenizer, experiment.test_set(spec.name).examples)), n)
        for spec in profile.canaries
        if (n := spec.dup_count if name == "contaminated" else 0)
    }
    mixture = mix(
        np.memmap(experiment.corpus / "tokens.bin", dtype=id_type(tokenizer), mode="r"),
        np.load(experiment.corpus / "ends.npy"),
        canaries,
        tokenizer.eos_token_id,
        rng=np.random.default_rng([profile.seed, 2]),
    )
    stream = directory.with_name(f"{name}.tokens.bin")
    processes = PartialState()
    if processes.is_main_process:
        with replacing(stream) as temporary, temporary.open("wb") as file:
            for piece in mixture.pieces:
                piece.tofile(file)
    processes.wait_for_everyone()
    train(
        np.memmap(stream, dtype=id_type(tokenizer), mode="r"),
        tokenizer,
        experiment.shapes[name],
        profile.training,
        directory,
        seed=profile.seed,
        label=f"train {name} model",
        record={"injections": [asdict(injection) for injection in mixture.injections]},
    )
    if processes.is_main_process:
        stream.unlink()


def score_model(experiment: Experiment, name: str) -> None:
    """Score every canary set under a model, as every test of the canary table needs it."""
    started = time.perf_counter()
    experiment.model(name)  # an unknown name is told before the slow import
    experiment.require_corpus()

    from contamination.audit.battery import TESTS
    from contamination.experiments.canaries.evaluation import CANARY_TESTS
    from contamination.scoring.processes import processes

    jobs = [(spec.name, test) for spec in experiment.profile.canaries for test in CANARY_TESTS]
    tokens = {}
    first_process = processes().is_main_process
    with tqdm(jobs, desc=f"score {name} model", unit="store", disable=not first_process) as bar:
        for dataset, test in bar:
            store, permutations = experiment.store_for(name, dataset, TESTS[test])
            key = store.directory.relative_to(experiment.build / "stores" / name).as_posix()
            tokens[key] = store.header.tokens_of(permutations)
    if first_process:
        write_json(
            experiment.build / "stores" / f"{name}.json",
            {"tokens": tokens, "seconds": time.perf_counter() - started},
        )
