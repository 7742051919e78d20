"""Pre-training on a mixture: every token once, in blocks, deterministic and resumable.

Oren (section 4.1, appendix): a GPT-2 architecture trained from scratch with AdamW on
the corpus with its injected test sets. The stream is cut into blocks of the context
length, the blocks are shuffled once with the seed, and each is read exactly once.
Steps, not wall-clock time, decide everything, so a run that was killed and started
again ends with the same weights as one that was not. Under ``accelerate launch``,
processes on several GPUs or nodes share each batch.

A checkpoint is a directory, whole or absent, with one file: the tensors of the model
and of AdamW, the step and recent losses. Its name is a checksum over all that and the
identity of the run, `RECIPE` included.
"""

import contextlib
import hashlib
import math
import shutil
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from accelerate import Accelerator
from accelerate.utils import set_seed
from tqdm import tqdm
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    GPT2LMHeadModel,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from contamination.errors import InputError
from contamination.files import replacing, sha256_of, write_json
from contamination.randomness import derived_seed, random_stream
from contamination.scoring.processes import processes
from contamination.testsets.tokens import id_type, tokenize
from reproduction.run.injection import mix, planted_copies
from reproduction.run.network import NextTokenLoss, gpt2_config, training_attention
from reproduction.run.profile import Architecture, Released, RunFiles, TrainingSpec

# Part of the key of a checkpoint. Raise it if the same arguments give another model.
RECIPE = 1
LAST_STEPS = 50  # the reported final loss is the mean over this many steps


def block_starts(tokens: int, context: int, *, rng: np.random.Generator) -> np.ndarray:
    """Cut a stream into blocks; return where they start, shuffled, int64[blocks].

    A block is context + 1 tokens. Neighbouring blocks share one token, which is the
    last target of one and the first input of the next, so every token but the very
    first is a target exactly once. The tail that does not fill a block is dropped, and
    `train` drops the blocks that do not fill a last batch.

    Parameters
    ----------
    tokens
        Length of the stream.
    context
        Inputs of a block.
    rng
        Draws the order of the blocks.
    """
    return context * rng.permutation(max(0, tokens - 1) // context)


def learning_rate_at(step: int, steps: int, spec: TrainingSpec) -> float:
    """Return the rate of a step: linear warm-up, then a cosine down to a tenth.

    Parameters
    ----------
    step
        Number of the step, from 0.
    steps
        Number of all steps.
    spec
        Hyper-parameters of the training.
    """
    if step < spec.warmup_steps:
        return spec.learning_rate * (step + 1) / spec.warmup_steps
    progress = (step - spec.warmup_steps) / max(1, steps - spec.warmup_steps)
    return spec.learning_rate * (0.55 + 0.45 * math.cos(math.pi * progress))


def train(
    tokens: np.ndarray,
    tokenizer: PreTrainedTokenizerBase,
    shape: Architecture | Released,
    spec: TrainingSpec,
    directory: Path,
    *,
    seed: int,
    label: str,
    record: Mapping[str, Any] | None = None,
    weights: Path | None = None,
) -> dict[str, Any]:
    """Train on the stream and save the model and its tokenizer in `directory`.

    A checkpoint beside `directory` survives a kill; it is resumed only by a run with
    the same tokens, shape, hyper-parameters and seed, and removed at the end.

    Parameters
    ----------
    tokens
        The stream; it may be a memory map: only the blocks of a batch are read at a
        time.
    tokenizer
        Saved with the model.
    shape
        Shape of a model that begins with random weights, or the released model.
    spec
        Hyper-parameters.
    directory
        Folder of the model, which is written whole or not at all.
    seed
        Seed of the run.
    label
        Title of the progress bar and of errors.
    record
        Further entries of `training.json`.
    weights
        Directory of the weights that the model begins with; None for random ones.

    Returns
    -------
    summary
        The contents of `training.json`: `record`, tokens, steps, parameters, final loss
        (nats per token, mean of the last 50 steps), seconds.

    Raises
    ------
    InputError
        For a batch that the stream or the processes cannot fill, and if the loss
        diverges.
    """
    accelerator = Accelerator()
    set_seed(derived_seed(seed, "initial weights"))
    order_of_blocks = random_stream(seed, "order of blocks")
    starts = block_starts(len(tokens), shape.n_positions, rng=order_of_blocks)
    steps = len(starts) // spec.batch_size
    _check_batches(spec, shape, accelerator, blocks=len(starts))
    model = _initial_model(shape, tokenizer, weights)
    model.set_attn_implementation(
        training_attention(accelerator.device, shape.n_positions),
    )
    wrapped, optimizer = accelerator.prepare(
        NextTokenLoss(model),
        _optimizer(model, spec),
    )

    digest = hashlib.sha256(np.ascontiguousarray(tokens).data).hexdigest()
    initial_weights = [weights / "model.safetensors"] if weights else []
    identity = repr((RECIPE, shape, len(tokenizer), spec, seed))
    key = sha256_of(digest, identity, *initial_weights)
    checkpoint = directory.with_name(directory.name + ".checkpoint")
    state = load_checkpoint(checkpoint, key, model, optimizer)
    started = time.perf_counter() - state["seconds"]
    tokens_per_step = spec.batch_size * shape.n_positions
    bar = tqdm(
        desc=label,
        total=steps * tokens_per_step,
        initial=state["step"] * tokens_per_step,
        unit="tok",
        unit_scale=True,
        # None: on a terminal alone
        disable=None if accelerator.is_main_process else True,
        mininterval=2.0,
    )
    with bar:
        for step in range(state["step"], steps):
            for group in optimizer.param_groups:
                group["lr"] = learning_rate_at(step, steps, spec)
            chosen = starts[step * spec.batch_size : (step + 1) * spec.batch_size]
            batch = np.stack([tokens[s : s + shape.n_positions + 1] for s in chosen])
            loss = _step(accelerator, wrapped, optimizer, batch, spec)
            if not math.isfinite(loss):
                raise InputError(
                    f"{label}: the loss is {loss} at step {step}; lower training.learning_rate",
                )
            state["losses"] = [*state["losses"], loss][-LAST_STEPS:]
            bar.set_postfix(loss=f"{np.mean(state['losses']):.3f}", refresh=False)
            bar.update(tokens_per_step)
            done = step + 1
            if done % spec.checkpoint_steps == 0 and done < steps and accelerator.is_main_process:
                state["step"] = done
                state["seconds"] = time.perf_counter() - started
                save_checkpoint(checkpoint, key, model, optimizer, state)

    summary = {
        "tokens": steps * tokens_per_step,
        "steps": steps,
        "parameters": sum(p.numel() for p in model.parameters()),
        "final_loss": float(np.mean(state["losses"])),
        "seconds": time.perf_counter() - started,
        "spec": asdict(spec),
        "architecture": asdict(shape),
        "seed": seed,
    }
    summary |= record or {}
    if accelerator.is_main_process:
        transformers.utils.logging.disable_progress_bar()  # ours say more
        with replacing(directory) as temporary:
            model.save_pretrained(temporary)
            tokenizer.save_pretrained(temporary)
            write_json(temporary / "training.json", summary)
        shutil.rmtree(checkpoint, ignore_errors=True)
    accelerator.wait_for_everyone()
    return summary


def _check_batches(
    spec: TrainingSpec,
    shape: Architecture | Released,
    accelerator: Accelerator,
    *,
    blocks: int,
) -> None:
    """Raise InputError if the blocks fill no batch, or a batch cannot be divided."""
    size = spec.batch_size
    processes = accelerator.num_processes
    if size > blocks or size % spec.micro_batch_size or size % processes:
        raise InputError(
            f"batch_size {size} must be a multiple of micro_batch_size, "
            f"{spec.micro_batch_size}, and of the {processes} processes, and at most "
            f"the {blocks} blocks of {shape.n_positions} tokens: lower it, or raise "
            "`corpus.characters`"
        )


def _initial_model(
    shape: Architecture | Released,
    tokenizer: PreTrainedTokenizerBase,
    weights: Path | None,
) -> PreTrainedModel:
    """Return a model with random weights, or a released one, in float32."""
    model: PreTrainedModel
    if isinstance(shape, Architecture):
        model = GPT2LMHeadModel(
            gpt2_config(shape, len(tokenizer), tokenizer.eos_token_id),
        )
    else:
        model = AutoModelForCausalLM.from_pretrained(
            weights,
            dtype=torch.float32,
        ).train()
    return model


def _optimizer(model: PreTrainedModel, spec: TrainingSpec) -> torch.optim.AdamW:
    """Return AdamW, whose weight decay leaves out vectors: biases and layer norms."""
    matrices = [parameter for parameter in model.parameters() if parameter.ndim >= 2]
    vectors = [parameter for parameter in model.parameters() if parameter.ndim < 2]
    groups = [
        {"params": matrices, "weight_decay": spec.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(
        groups,
        lr=spec.learning_rate,
        betas=(0.9, 0.95),
        fused=True,
    )


def _step(
    accelerator: Accelerator,
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    batch: np.ndarray,
    spec: TrainingSpec,
) -> float:
    """Take one step over this process's share of the batch; return the loss (nats).

    Two processes with one micro-batch each give the bits of one process with both:
    halves are exact, and it does not matter which of two numbers is added to the other.
    """
    share = np.array_split(batch, accelerator.num_processes)[accelerator.process_index]
    # all of one size, whose means count alike
    rows = math.gcd(spec.micro_batch_size, len(share))
    micro = [share[i : i + rows] for i in range(0, len(share), rows)]
    total = torch.zeros((), device=accelerator.device)
    for i, blocks in enumerate(micro, start=1):
        ids = torch.from_numpy(blocks.astype(np.int64)).to(accelerator.device)
        # Processes exchange gradients only with the last micro-batch.
        exchange = contextlib.nullcontext() if i == len(micro) else accelerator.no_sync(model)
        with exchange:
            loss = model(ids)
            accelerator.backward(loss / len(micro))
        total += loss.detach() / len(micro)
    accelerator.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    return float(accelerator.reduce(total, "mean"))


def save_checkpoint(
    path: Path,
    key: str,
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    state: Mapping[str, Any],
) -> None:
    """Write model, optimiser and state (step, seconds, losses) of the run named `key`.

    Parameters
    ----------
    path
        Directory of the checkpoint.
    key
        Key of the run.
    model, optimizer
        Model and optimiser whose tensors are written.
    state
        Step, seconds and losses.
    """
    with replacing(path) as temporary:
        temporary.mkdir()
        file = temporary / "tensors.pt"
        torch.save((model.state_dict(), optimizer.state_dict(), state), file)
        file.rename(temporary / sha256_of(key, file))


def load_checkpoint(
    path: Path, key: str, model: torch.nn.Module, optimizer: torch.optim.Optimizer
) -> dict[str, Any]:
    """Load a checkpoint of this very run into model and optimiser, or start at step 0.

    Parameters
    ----------
    path
        Directory of the checkpoint.
    key
        Key of the run; a checkpoint of another run is not read.
    model, optimizer
        Model and optimiser that receive the tensors.
    """
    # Unreadable or damaged: training from the start costs time, never correctness.
    with contextlib.suppress(OSError):
        for file in path.glob("*"):
            if file.name == sha256_of(key, file):
                weights, moments, state = torch.load(file, weights_only=True)
                model.load_state_dict(weights)
                optimizer.load_state_dict(moments)
                return dict(state)
    return {"step": 0, "seconds": 0.0, "losses": []}


def train_model(run: RunFiles, name: str) -> None:
    """Train the contaminated model, or one on the same corpus without the canaries."""
    profile = run.profile
    directory = run.model(name)
    shape = run.shapes[name]
    run.require_corpus()
    tokenizer = AutoTokenizer.from_pretrained(run.corpus / "tokenizer")
    token_type = id_type(tokenizer)
    canaries: dict[str, tuple[np.ndarray, int]] = {}
    if name == "contaminated":
        orders = random_stream(profile.seed, "shuffled copies")
        for spec in profile.canaries:
            records = tokenize(tokenizer, run.test_set(spec.name).examples)
            canaries |= planted_copies(
                spec.name, spec.planting, spec.dup_count, records, rng=orders
            )
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
        shape,
        profile.require_pretraining().training,
        directory,
        seed=profile.seed,
        label=f"train {name} model",
        record={"injections": [asdict(injection) for injection in injections]},
        weights=run.released if isinstance(shape, Released) else None,
    )
    if state.is_main_process:
        stream.unlink()
