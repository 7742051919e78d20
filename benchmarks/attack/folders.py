"""Bad folders of models, and what a person may type, for `run.py`, by properties.

*Folders*: one value of config.json or one tensor of the weights is exchanged, cut, removed, added
or stored in another kind of number. What is accepted must score as a network that is built from
config.json and given every tensor of the file strictly, by name: no weight made up, none left out.

*Commands*: options with values from a pool of bad and good ones, and files of odd names. Every
command must end with one of its statuses, and what it refuses, in one line without an escape.
"""

import contextlib
import io
import json
import shutil
import sys
from functools import cache
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch
from hypothesis import strategies as st
from records import kept_folder
from safetensors.torch import load_file, save_file
from sealing import JSON, by_properties
from transformers import AutoConfig, AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel

from contamination.cli.main import main
from contamination.errors import InputError
from contamination.scoring.loading import ModelSource
from contamination.scoring.local import TransformersScorer
from reproduction.run.tokenizer import train_tokenizer

Rng = np.random.Generator
CONTEXT = 32
IDS = np.arange(40, 64, dtype=np.int32)
KINDS = (torch.int32, torch.int8, torch.bool, torch.float16, torch.float64)
WAYS = ("config", "remove", "cut", "add", "number", "zeros", "nothing")
ADDED = (
    "transformer.h.0.attn.q.bias",
    "transformer.h.9.ln_1.bias",
    "score.weight",
    "h.1.attn.bias",
)


@cache
def model() -> Path:
    """Make a small random model once; every attempt changes a copy of it."""
    folder = kept_folder()
    tokenizer = train_tokenizer([f"The record of number {i} says {i}.\n" for i in range(200)], 300)
    torch.manual_seed(0)
    shape = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": CONTEXT, "vocab_size": 300}
    network = GPT2LMHeadModel(GPT2Config(**shape, bos_token_id=0, eos_token_id=0))
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(8).add_(0.01)
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def changed(data: st.DataObject, folder: Path) -> None:
    """Change one thing of a model's folder."""
    config = folder / "config.json"
    file = folder / "model.safetensors"
    way = data.draw(st.sampled_from(WAYS))
    if way == "config":
        values = json.loads(config.read_text())
        numbers = st.sampled_from([-1, 0, 1, 2, 3, 1.5, 10**9, "x", None, True])
        values[data.draw(st.sampled_from(sorted(values)))] = data.draw(numbers | JSON)
        config.write_text(json.dumps(values), errors="surrogatepass")
        return
    weights = load_file(file)
    name = data.draw(st.sampled_from(sorted(weights)))
    if way == "remove":
        del weights[name]
    elif way == "cut":
        weights[name] = weights[name][:-1].contiguous()
    elif way == "add":
        weights[data.draw(st.sampled_from(ADDED))] = torch.ones(3)
    elif way == "number":
        weights[name] = weights[name].to(data.draw(st.sampled_from(KINDS)))
    elif way == "zeros":
        weights[name] = torch.zeros_like(weights[name])
    save_file(weights, file, {"format": "pt"})


@torch.inference_mode()
def strictly(folder: Path, start: int) -> np.ndarray:
    """Log-probabilities of IDS under a network that takes every tensor of the file by its name."""
    network = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder)).float().eval()
    weights = {k: v.float() for k, v in load_file(folder / "model.safetensors").items()}
    used = {k: v for k, v in weights.items() if k not in ("score.weight", "h.1.attn.bias")}
    found = network.load_state_dict(used, strict=False)
    if found.unexpected_keys or {*found.missing_keys} - {"lm_head.weight"}:
        raise AssertionError(f"accepted, but {found}")
    network.tie_weights()
    ids = torch.tensor([[start, *IDS[:-1].tolist()]])
    table = network(ids, return_dict=True).logits[0].log_softmax(-1)
    return table[torch.arange(len(IDS)), torch.tensor(IDS.astype(np.int64))].numpy()


def attack_folders(rng: Rng, folder: Path) -> str:
    """Score under a changed model; what is accepted must be what the file says."""
    place = folder / "model"

    def accept(data: st.DataObject) -> tuple[int, np.ndarray]:
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(model(), place)
        changed(data, place)
        scorer = TransformersScorer(ModelSource(str(place), precision="float32"))
        ((_, values),) = scorer.token_logprobs([IDS])
        return scorer.start, values

    def judge(data: st.DataObject, accepted: tuple[int, np.ndarray]) -> None:
        start, values = accepted
        np.testing.assert_allclose(values, strictly(place, start), rtol=0, atol=1e-3)

    return by_properties(rng, st.data(), accept, judge)


# --- commands -------------------------------------------------------------------------------------

VALUES = ("nan", "inf", "-1", "0", "1", "3", "100000", "1e9", "", "x", "[/b]", "\x1b[31m", "/")
VALUES += (
    "a\nb",
    "/dev/full",
    "/proc/self/mem",
    "nowhere.jsonl",
    "n" * 400,
    "é|<img>",
    "set.jsonl",
)
OPTIONS = ("alpha", "permutations", "shards", "max-records", "context", "seed")
OPTIONS += ("template", "field", "test", "axis", "arrangements", "precision", "store")
OPTIONS += ("revision", "concurrency", "timeout", "endpoint", "split", "mirror", "answer", "out")
OPTIONS += ("key", "seal")
COMMANDS = ("test", "score", "plan", "seal", "verify", "audit", "data")


def attack_commands(rng: Rng, folder: Path) -> str:
    """Type a command with a few options; it must end as a command does."""

    def accept(data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(["set", "s[v2]", "s[/b]".replace("/", "|"), "s\x1b[31m"]))
        path = folder / f"{name}.jsonl"
        path.write_text("".join(json.dumps({"text": f"record {i}"}) + "\n" for i in range(12)))
        command = data.draw(st.sampled_from(COMMANDS))
        value = st.sampled_from(VALUES)
        args = {"seal": [path], "verify": [path], "data": ["check", data.draw(value)]}
        args |= {"audit": [path, "--model", model()]}
        names = data.draw(st.lists(st.sampled_from(OPTIONS), max_size=3, unique=True))
        given_options = [f"--{option}={data.draw(value)}" for option in names]
        if "store" not in names and command in ("test", "score", "plan", "audit"):
            given_options.append(f"--store={folder / 'stores'}")
        if command in ("test", "score"):
            given_options.append("--dry-run")
        line = [command, *args.get(command, [model(), path]), *given_options]
        out = io.StringIO()
        err = io.StringIO()
        status = None
        with (
            contextlib.chdir(folder),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            patch.object(sys, "argv", ["contamination", *map(str, line)]),
        ):
            try:
                main()
            except SystemExit as end:
                status = end.code or 0
        refused = err.getvalue().strip().splitlines()
        if status not in (0, 1, 2, 3) or (status == 2 and len(refused) != 1 and command != "data"):
            raise AssertionError(f"{line} ended with {status}: {err.getvalue()[-2000:]}")
        if "\x1b" in out.getvalue() + err.getvalue() or "Traceback" in err.getvalue():
            raise AssertionError(f"{line} printed {out.getvalue()!r} {err.getvalue()!r}")
        if status == 2:
            raise InputError(" ".join(refused))

    return by_properties(rng, st.data(), accept, lambda data, accepted: None)
