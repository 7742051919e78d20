"""A model that is written or replaced while a run uses it: refused, and nothing is stored."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from contamination.audit import Request
from contamination.audit.generation import audit_generation
from contamination.audit.generation_plan import GenerationAudit
from contamination.audit.many import audit_pairs
from contamination.audit.plan import Work
from contamination.membership.api import membership_scores
from contamination.scoring import checkpoint, loading
from contamination.scoring.generation import LocalGenerator
from contamination.scoring.loading import ModelSource
from contamination.scoring.local import TransformersScorer
from contamination.testsets.sources import open_test_set
from fakes.gguf_file import write_gguf
from fakes.made_up_registry import refusal
from fakes.tiny_models import configure, grouped, save_model

IDS = np.random.default_rng(0).integers(1, 300, 40, dtype=np.int32)


@pytest.fixture
def directory(model_directory, tmp_path) -> Path:
    return shutil.copytree(model_directory, tmp_path / "checkpoint")


@pytest.fixture
def test_set(prose, tmp_path):
    path = tmp_path / "prose.jsonl"
    path.write_text("".join(json.dumps({"text": text[:40]}) + "\n" for text in prose[:20]))
    return open_test_set(path)


def open_model(directory: Path) -> TransformersScorer:
    return TransformersScorer(ModelSource(str(directory), precision="float32"))


def logprobs(scorer: TransformersScorer) -> np.ndarray:
    ((_, values),) = scorer.token_logprobs([IDS])
    return values


def train_on(directory: Path, name: str = "model.safetensors") -> None:
    """Replace a file of weights as a training run does: another file of the same name."""
    weights = {key: value * 1.5 for key, value in load_file(directory / name).items()}
    save_file(weights, directory / "new", {"format": "pt"})
    (directory / "new").replace(directory / name)


def write_over(directory: Path) -> None:
    """Write other weights into the file itself, as `cp` does."""
    weights = {
        key: value * 1.5 for key, value in load_file(directory / "model.safetensors").items()
    }
    save_file(weights, directory / "new", {"format": "pt"})
    shutil.copyfile(directory / "new", directory / "model.safetensors")
    (directory / "new").unlink()


def other_tokenizer(directory: Path) -> None:
    file = directory / "tokenizer.json"
    rules = json.loads(file.read_text())
    rules["model"]["merges"].pop()
    file.write_text(json.dumps(rules))


def other_config(directory: Path) -> None:
    configure(directory, layer_norm_epsilon=0.1)


def in_parts(directory: Path) -> None:
    model = AutoModelForCausalLM.from_pretrained(directory)
    (directory / "model.safetensors").unlink()
    model.save_pretrained(directory, max_shard_size="40KB")


def named_by_config(directory: Path) -> None:
    (directory / "best").mkdir()
    (directory / "model.safetensors").rename(directory / "best/weights.safetensors")
    configure(directory, transformers_weights="best/weights.safetensors")


def pickled(directory: Path) -> None:
    """Leave the weights in a pickle, beside safetensors that no loader looks at."""
    weights = load_file(directory / "model.safetensors")
    torch.save(weights, directory / "pytorch_model.bin")
    (directory / "model.safetensors").rename(directory / "consolidated.safetensors")


def other_pickle(directory: Path) -> None:
    file = directory / "pytorch_model.bin"
    torch.save({key: 1.5 * value for key, value in torch.load(file).items()}, file)


def other_last_part(directory: Path) -> None:
    train_on(directory, max(file.name for file in directory.glob("model-*.safetensors")))


def nothing(directory: Path) -> None:
    """Leave the directory as it is."""


CHANGES = {
    "weights": (nothing, train_on),
    "weights, in place": (nothing, write_over),
    "tokenizer": (nothing, other_tokenizer),
    "configuration": (nothing, other_config),
    "a part of the weights": (in_parts, other_last_part),
    "weights that config.json names": (
        named_by_config,
        lambda directory: train_on(directory, "best/weights.safetensors"),
    ),
    "pickled weights": (pickled, other_pickle),
    "all of it": (nothing, shutil.rmtree),
}


@pytest.mark.parametrize(("layout", "change"), CHANGES.values(), ids=CHANGES)
def test_a_checkpoint_that_is_replaced_between_plan_and_scoring_is_refused(
    directory, test_set, tmp_path, monkeypatch, layout, change
):
    """Planned under the weights of the morning, and scored under those of the evening."""
    monkeypatch.setattr(checkpoint, "COARSEST_CLOCK", 0)  # else files so new are hashed anyway
    layout(directory)
    request = Request(["sharded_exact"], permutations=2, directory=tmp_path / "stores", name="m")
    work = Work(open_model(directory), test_set, request, timed=False)
    assert work.plan.missing
    change(directory)
    assert str(directory) in refusal(work.fill)
    assert not (tmp_path / "stores").exists()


@pytest.mark.parametrize("change", [train_on, other_tokenizer])
def test_what_was_stored_before_stays_as_it_was(directory, test_set, tmp_path, change):
    """A store that has some of it gets no more: neither a part nor a record of a run."""
    request = Request(["sharded_exact"], permutations=2, directory=tmp_path / "stores", name="m")
    Work(open_model(directory), test_set, request, timed=False).fill()
    before = sorted((tmp_path / "stores").rglob("*"))
    more = Request(["sharded_exact"], permutations=4, directory=tmp_path / "stores", name="m")
    work = Work(open_model(directory), test_set, more, timed=False)
    assert work.plan.missing
    change(directory)
    refusal(work.fill)
    refusal(work.fill, replace=True)
    assert sorted((tmp_path / "stores").rglob("*")) == before


def _generate(scorer, test_set, stores: Path) -> None:
    request = Request(directory=stores, name="m")
    audit_generation(GenerationAudit(LocalGenerator(scorer, "m"), test_set, request))


def _membership(scorer, test_set, stores: Path) -> None:
    membership_scores(scorer, test_set.examples)


def _stopping(scorer, test_set, stores: Path) -> None:
    request = Request(["sharded_exact"], permutations=2, directory=stores, name="m")
    Work(scorer, test_set, request).fill(enough=lambda store, shard: True)


def _pairs(scorer, test_set, stores: Path) -> None:
    request = Request(["successor"], directory=stores, name="m")
    work = Work(scorer, test_set, request)
    work.fill()


@pytest.mark.parametrize("use", [_generate, _membership, _stopping, _pairs])
def test_every_use_of_the_weights_refuses_others(make_model, tmp_path, test_set, use):
    directory = shutil.copytree(make_model(64), tmp_path / "checkpoint")
    scorer = open_model(directory)
    train_on(directory)
    assert str(directory) in refusal(use, scorer, test_set, tmp_path / "stores")
    assert not (tmp_path / "stores").exists()


def test_of_many_models_the_one_that_was_replaced_has_the_reason(
    directory, model_directory, test_set, tmp_path
):
    def open_one(name: str) -> TransformersScorer:
        scorer = open_model(Path(name))
        if name == str(directory):
            train_on(directory)
        return scorer

    models = [str(directory), str(model_directory)]
    request = Request(["sharded_exact"], permutations=2, directory=tmp_path / "stores")
    refused, audited = audit_pairs(models, {"prose": lambda: test_set}, request, open_one)
    assert str(directory) in refused.found
    assert audited.found.tokens_scored


def test_weights_that_come_and_go_while_they_are_loaded_are_refused(directory, monkeypatch):
    """The hash before and the hash afterwards are the same: the state of the files is not."""
    scorer = open_model(directory)
    file = directory / "model.safetensors"
    kept = directory / "kept"
    load = AutoModelForCausalLM.from_pretrained

    def swapped(**options):
        shutil.copyfile(file, kept)
        write_over(directory)
        loaded = load(**options)
        shutil.copyfile(kept, file)
        return loaded

    monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", swapped)
    assert str(directory) in refusal(logprobs, scorer)


def test_a_tokenizer_that_is_replaced_while_the_model_is_opened_is_refused(directory, monkeypatch):
    """Read before, hashed after: the name would be that of another tokenizer."""
    load = loading.load_tokenizer

    def replaced(source: ModelSource):
        tokenizer = load(source)
        other_tokenizer(directory)
        return tokenizer

    monkeypatch.setattr(loading, "load_tokenizer", replaced)
    assert str(directory) in refusal(open_model, directory)


def test_what_is_in_memory_follows_no_file(directory):
    """Loaded weights may be a map of their file, which `cp` writes into."""
    scorer = open_model(directory)
    before = logprobs(scorer)
    write_over(directory)
    np.testing.assert_array_equal(logprobs(scorer), before)
    assert not np.array_equal(logprobs(open_model(directory)), before)


@pytest.mark.parametrize("again", [os.utime, lambda file: shutil.copyfile(file, f"{file}.copy")])
def test_what_is_touched_or_copied_before_it_is_loaded_is_the_same_model(directory, again):
    scorer = open_model(directory)
    again(directory / "model.safetensors")
    assert len(logprobs(scorer)) == len(IDS)


@pytest.mark.parametrize(("clock", "times"), [(0, 1), (3600 * 10**9, 2)])
def test_files_are_hashed_again_only_if_their_state_can_hide_a_second_writing(
    directory, monkeypatch, clock, times
):
    monkeypatch.setattr(checkpoint, "COARSEST_CLOCK", clock)
    with patch.object(loading, "identity", wraps=loading.identity) as identity:
        logprobs(open_model(directory))
    assert identity.call_count == times


def test_a_gguf_file_that_is_replaced_while_it_is_unpacked_leaves_nothing(
    tokenizer, tmp_path, monkeypatch
):
    monkeypatch.setenv("CONTAMINATION_CACHE", str(tmp_path / "cache"))
    sizes = grouped(16) | {"intermediate_size": 64}
    model = save_model(tmp_path / "model", tokenizer, "qwen2", sizes, biases=True)
    path = Path(write_gguf(model, "F32"))
    load: Callable = loading.load_network

    def replaced(*arguments):
        network = load(*arguments)
        content = bytearray(path.read_bytes())
        content[-1] ^= 1
        path.write_bytes(content)
        return network

    monkeypatch.setattr(loading, "load_network", replaced)
    assert str(path) in refusal(open_model, path)
    assert not list((tmp_path / "cache").rglob("*.safetensors"))
