"""The training stage: the model of a profile, on the corpus with its injected canary sets."""

from dataclasses import asdict

import numpy as np
from transformers import AutoTokenizer

from contamination.files import replacing
from contamination.randomness import random_stream
from contamination.scoring.processes import processes
from contamination.testsets.tokens import id_type, tokenize
from reproduction.run.files import RunFiles
from reproduction.run.injection import mix
from reproduction.run.training import train


def train_model(run: RunFiles, name: str) -> None:
    """Train the contaminated model, or one on the same corpus without the canaries."""
    profile, directory = run.profile, run.model(name)
    run.require_corpus()
    tokenizer = AutoTokenizer.from_pretrained(run.corpus / "tokenizer")
    token_type = id_type(tokenizer)
    canaries = {
        spec.name: (np.concatenate(tokenize(tokenizer, run.test_set(spec.name).examples)), n)
        for spec in profile.canaries
        if (n := spec.dup_count if name == "contaminated" else 0)
    }
    pieces, injections = mix(
        np.memmap(run.corpus / "tokens.bin", dtype=token_type, mode="r"),
        np.load(run.corpus / "ends.npy"),
        canaries,
        tokenizer.eos_token_id,
        rng=random_stream(profile.seed, "injection"),
    )
    stream = directory.with_name(f"{name}.tokens.bin")
    state = processes()
    if state.is_main_process:
        with replacing(stream) as temporary, temporary.open("wb") as file:
            for piece in pieces:
                piece.tofile(file)
    state.wait_for_everyone()
    train(
        np.memmap(stream, dtype=token_type, mode="r"),
        tokenizer,
        run.shapes[name],
        profile.training,
        directory,
        seed=profile.seed,
        label=f"train {name} model",
        record={"injections": [asdict(injection) for injection in injections]},
    )
    if state.is_main_process:
        stream.unlink()
