"""Places of models, without a network: hub caches, directories and GGUF files made here."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import huggingface_hub.constants
import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from contamination.errors import InputError
from contamination.scoring import loading, room
from contamination.scoring import local as here
from contamination.scoring.endpoint import EndpointScorer
from contamination.scoring.loading import ModelSource
from contamination.scoring.local import TransformersScorer
from contamination.testsets.tokens import tokenize
from fakes import made_up_registry as registry
from fakes.gguf_file import write_gguf
from fakes.hub_server import HubServer, Repository
from fakes.tiny_models import configure, grouped, save_model

CONTEXT = 16
IDS = np.random.default_rng(0).integers(1, 300, 40, dtype=np.int32)


@pytest.fixture
def directory(model_directory, tmp_path) -> Path:
    return shutil.copytree(model_directory, tmp_path / "model")


@pytest.fixture(scope="session")
def expected(model_directory) -> np.ndarray:
    return logprobs(model_directory)


def open_model(name: Path | str, **options) -> TransformersScorer:
    return TransformersScorer(ModelSource(str(name), **({"precision": "float32"} | options)))


def logprobs(model: TransformersScorer | Path | str, **options) -> np.ndarray:
    scorer = model if isinstance(model, TransformersScorer) else open_model(model, **options)
    ((_, values),) = scorer.token_logprobs([IDS])
    return values


def refusal(name: Path | str, **options) -> str:
    """Return the message with which the model is refused; it is one line that names the model."""
    message = registry.refusal(logprobs, name, **options)
    assert str(name.source.name if isinstance(name, TransformersScorer) else name) in message
    return message


def rewrite(directory: Path, change: Callable[[dict], dict]) -> None:
    file = directory / "model.safetensors"
    save_file(change(load_file(file)), file, {"format": "pt"})


class TestDownload:
    """A hub over HTTP, with a gate, large files, and layouts of several kinds."""

    @pytest.fixture
    def server(self, monkeypatch, tmp_path, directory) -> Iterator[HubServer]:
        for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr(huggingface_hub.constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
        with registry.hub_at(monkeypatch, tmp_path) as running:
            # Transformers keeps a client that was made before.
            monkeypatch.setattr(transformers.utils.hub.hf_api(), "endpoint", running.url)
            running.models["org/name"] = Repository()
            self.push(running, directory)
            yield running

    def push(self, server: HubServer, directory: Path) -> str:
        files = {file.name: file.read_bytes() for file in directory.iterdir()}
        return server.models["org/name"].push(files)

    def test_of_the_commit_that_names_the_model(self, server, directory, expected):
        """The branch moves on after the scorer was made and before its weights are loaded."""
        first = self.push(server, directory)
        scorer = open_model("org/name")
        assert scorer.source.revision == first
        assert scorer.context == CONTEXT
        bias = "transformer.ln_f.bias"
        rewrite(directory, lambda found: found | {bias: found[bias] + torch.arange(32.0)})
        second = self.push(server, directory)
        np.testing.assert_array_equal(logprobs(scorer), expected)
        assert np.abs(logprobs("org/name") - expected).max() > 0.01
        assert open_model("org/name").source.revision == second
        assert open_model("org/name", revision=first).revision == scorer.revision
        assert open_model("org/name").revision != scorer.revision

    @pytest.mark.parametrize("layout", ["one file", "shards", "pickle", "all"])
    def test_of_what_is_read_and_nothing_else(self, server, directory, expected, layout):
        model = AutoModelForCausalLM.from_pretrained(directory)
        weights = directory / "model.safetensors"
        if layout in ("pickle", "all"):
            torch.save(load_file(weights), directory / "pytorch_model.bin")
            (directory / "flax_model.msgpack").write_bytes(b"another format")
        if layout in ("pickle", "shards"):
            weights.unlink()
        if layout == "shards":
            model.save_pretrained(directory, max_shard_size="40KB")
        self.push(server, directory)
        np.testing.assert_array_equal(logprobs("org/name"), expected)
        kinds = {Path(name).suffix for name in server.downloaded()} - {".json", ".jinja"}
        assert kinds == {".bin" if layout == "pickle" else ".safetensors"}
        before = len(server.seen)
        np.testing.assert_array_equal(logprobs("org/name"), expected)
        assert not [line for line in server.seen[before:] if line.startswith("GET /lfs/")]

    @pytest.mark.parametrize("complete", [False, True])
    def test_of_an_adapter_is_refused(self, server, directory, complete):
        """Whether or not there is a model beside it."""
        (directory / "adapter_config.json").write_text("{}")
        if not complete:
            (directory / "config.json").unlink()
        self.push(server, directory)
        assert '.from_pretrained("org/name").merge_and_unload()' in refusal("org/name")
        assert not server.downloaded() & {"model.safetensors"}

    def test_that_is_gated(self, server, monkeypatch, expected):
        server.models["org/name"].gated, server.token = True, "hf_right"
        for token in (None, "hf_other"):
            if token is not None:
                monkeypatch.setenv("HF_TOKEN", token)
            assert "it is gated: ask for access on its page" in refusal("org/name")
        assert not server.downloaded() & {"model.safetensors"}
        monkeypatch.setenv("HF_TOKEN", "hf_right")
        np.testing.assert_array_equal(logprobs("org/name"), expected)


@pytest.mark.parametrize(
    ("kind", "devices", "local", "expected"),
    [
        ("cuda", [1.01], 1, False),
        ("cuda", [0.9, 0.9], 2, True),
        ("cuda", [9.0, 0.9], 2, True),  # else the processes would not agree
        ("cpu", [1.9], 2, True),  # one process has it, the others wait
        ("cpu", [2.01], 2, False),
        ("cuda", [0.99], 1, "refused"),
        ("cuda", [0.49, 0.49], 2, "refused"),
        ("cpu", [0.99], 1, "refused"),
    ],
)
def test_a_model_is_placed_where_there_is_room_or_refused(
    model_directory, monkeypatch, kind, devices, local, expected
):
    """Made-up devices: their memory in units of what a model may take to fit exactly."""
    source = ModelSource(str(model_directory), precision="float32")
    config = loading.load_config(source)
    unit = loading.count_parameters(config) * 4 / room.ROOM
    monkeypatch.setattr(room, "memories", lambda _: [int(unit * d) for d in devices])
    monkeypatch.setenv("LOCAL_WORLD_SIZE", str(local))
    spread = partial(room.must_spread, source, config, torch.float32, torch.device(kind))
    if expected == "refused":
        with pytest.raises(InputError, match=rf"its weights take .* \({kind}\) have"):
            spread()
    else:
        assert spread() == expected


UNASKED = "transformer.h.0.attn.q.bias"
KERNELS = "kernels-community/flash-attn"
# What is done to a directory, and what the one line that refuses it must name.
HOSTILE: dict[str, tuple[Callable[[Path], None], str]] = {
    "no weights": (lambda d: (d / "model.safetensors").unlink(), "no *.safetensors in it"),
    "weights that lack some": (
        lambda d: rewrite(d, lambda w: {name: w[name] for name in w if ".ln_1." not in name}),
        "the weights lack transformer.h.0.ln_1.bias, ",
    ),
    "weights of zeros": (
        lambda d: rewrite(d, lambda w: {name: torch.zeros_like(w[name]) for name in w}),
        "its logits are the same whatever it reads",
    ),
    "brackets": (lambda d: (d / "config.json").write_bytes(b"[" * 5000), "RecursionError"),
    "a layer less": (lambda d: configure(d, n_layer=1), "the weights have transformer.h.1."),
    "a bias that nothing adds": (
        lambda d: rewrite(d, lambda w: w | {UNASKED: torch.ones(3)}),
        f"the weights have {UNASKED}, for which config.json has no place",
    ),
    "layers": (lambda d: configure(d, n_layer=10**9), "describes 1,000,000,000 layers"),
    "kernels": (
        lambda d: configure(d, attn_implementation=KERNELS),
        f"attention '{KERNELS}' is a program",
    ),
    "a pipe": (lambda d: os.mkfifo(d / "chat_template.jinja"), "jinja: no regular file"),
    "a pipe that the index names": (
        lambda d: [
            (d / "parts").mkdir(),
            os.mkfifo(d / "parts/pipe"),
            (d / "model.safetensors.index.json").write_text('{"weight_map": {"a": "parts/pipe"}}'),
        ],
        "parts/pipe: no regular file",
    ),
    "an adapter beside its model": (
        lambda d: (d / "adapter_model.safetensors").write_bytes(b""),
        'merge_and_unload().save_pretrained("model-merged")',
    ),
    "an adapter alone": (
        lambda d: [
            (d / "config.json").unlink(),
            (d / "model.safetensors").rename(d / "adapter_model.safetensors"),
            (d / "adapter_config.json").write_text('{"peft_type": "LORA"}'),
        ],
        "which is not applied here; merge it (python -c",
    ),
    "no tokenizer": (
        lambda d: [file.unlink() for file in d.glob("tokenizer*")],
        "no tokenizer.json in it",
    ),
}


@pytest.mark.parametrize(("change", "message"), HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_directories_are_refused_in_one_line(directory, change, message, capfd):
    change(directory)
    assert message in refusal(directory)
    assert "LOAD REPORT" not in capfd.readouterr().err  # our line is the first and the last


def test_tuples_by_default_and_tables_and_heads_of_others_change_nothing(directory, expected):
    configure(directory, return_dict=False)
    others = ("transformer.h.0.attn.masked_bias", "h.1.attn.bias", "score.weight", "vision.x")
    rewrite(directory, lambda w: w | {name: torch.ones(3) for name in others})
    np.testing.assert_array_equal(logprobs(directory), expected)


class TestCodeThatComesWithAModel:
    """A configuration that asks for Python files, which tell by a mark that they ran."""

    @pytest.fixture
    def planted(self, directory, tmp_path, monkeypatch) -> tuple[Path, Path]:
        monkeypatch.setattr(
            transformers.dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path / "modules")
        )
        mark = tmp_path / "mark"
        leave = f"open({str(mark)!r}, 'a').write(__name__)\n"
        (directory / "planted.py").write_text(
            "from transformers import GPT2Config, GPT2LMHeadModel\n" + leave + "\n\n"
            "class PlantedConfig(GPT2Config):\n    model_type = 'planted'\n\n\n"
            "class PlantedModel(GPT2LMHeadModel):\n    config_class = PlantedConfig\n"
        )
        classes = {"AutoConfig": "Config", "AutoModelForCausalLM": "Model"}
        auto_map = {name: f"planted.Planted{ours}" for name, ours in classes.items()}
        configure(
            directory, model_type="planted", auto_map=auto_map, architectures=["PlantedModel"]
        )
        return directory, mark

    def test_it_is_run_when_asked_for_and_part_of_the_revision(self, planted, expected):
        directory, mark = planted
        assert "read the code that comes with it" in refusal(directory)
        configure(directory, model_type="gpt2")  # known: the code of transformers runs instead
        np.testing.assert_array_equal(logprobs(directory), expected)
        assert not mark.exists()
        configure(directory, model_type="planted")
        np.testing.assert_array_equal(logprobs(directory, trust_remote_code=True), expected)
        assert mark.exists()
        before = open_model(directory, trust_remote_code=True).revision
        with (directory / "planted.py").open("a") as file:
            file.write("# changed\n")
        assert open_model(directory, trust_remote_code=True).revision != before


class TestWeights:
    @pytest.fixture
    def malicious(self, tmp_path) -> tuple[bytes, Path]:
        """Return a pickle of weights that runs a command when unpickled, and what it makes."""
        mark = tmp_path / "mark"

        class Payload:
            def __reduce__(self):
                return os.system, (f"touch {mark}",)

        filled = torch.zeros(10_000)
        torch.save({"transformer.wte.weight": Payload(), "x": filled}, tmp_path / "payload")
        return (tmp_path / "payload").read_bytes(), mark

    def test_pickles_are_data_only_and_safetensors_taken_before_them(
        self, directory, expected, malicious
    ):
        (directory / "pytorch_model.bin").write_bytes(malicious[0])
        np.testing.assert_array_equal(logprobs(directory), expected)
        (directory / "model.safetensors").unlink()
        message = refusal(directory)
        assert "UnpicklingError" in message
        assert "weights_only" not in message
        assert not malicious[1].exists()
        torch.load(directory / "pytorch_model.bin", weights_only=False)
        assert malicious[1].exists()  # the plant works

    @pytest.mark.parametrize("folder", ["", "parts/"])
    def test_every_file_that_is_loaded_is_part_of_the_revision(self, directory, expected, folder):
        """Several files with an index, wherever that says they are."""
        model = AutoModelForCausalLM.from_pretrained(directory)
        (directory / "model.safetensors").unlink()
        model.save_pretrained(directory, max_shard_size="40KB")
        files = sorted(directory.glob("model-*.safetensors"))
        assert len(files) > 1
        (directory / folder).mkdir(exist_ok=True)
        index = directory / "model.safetensors.index.json"
        index.write_text(index.read_text().replace(': "model-', f': "{folder}model-'))
        files = [file.rename(directory / folder / file.name) for file in files]
        np.testing.assert_array_equal(logprobs(directory), expected)
        before = TransformersScorer(directory).revision
        changed = {name: weight + 1 for name, weight in load_file(files[-1]).items()}
        save_file(changed, files[-1], {"format": "pt"})
        assert TransformersScorer(directory).revision != before
        files[-1].unlink()
        assert "give a complete model" in refusal(directory)

    def test_a_configuration_of_other_sizes_is_named(self, directory):
        configure(directory, n_embd=64)
        message = refusal(directory)
        assert "config.json" in message
        assert "complete model" not in message


def test_the_revision_names_precision_context_and_every_file(directory, monkeypatch):
    def revision(**options) -> str:
        return TransformersScorer(ModelSource(str(directory), **options)).revision

    found = [revision(), revision(context=CONTEXT // 2)]
    assert revision(context=CONTEXT, attention="eager") == found[0]
    available = here.has_bfloat16(torch.device("cpu"))
    monkeypatch.setattr(here, "has_bfloat16", lambda _: not available)
    found += [revision(), revision(precision="float16")]
    for file in ("special_tokens_map.json", "added_tokens.json", "spiece.model", "vocab.json"):
        (directory / file).write_text("{}")
        found.append(revision())
    configure(directory, note="changed")
    found.append(revision())
    source = ModelSource(str(directory))
    config = loading.read_config(source)
    found += [loading.identity(source, config, torch.float32, start) for start in (1, 2)]
    assert len(set(found)) == len(found)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"precision": "half"}, "precision is 'half': give one of auto, float32, bfloat16"),
        ({"revision": "main"}, "lies on this machine"),
        ({"context": 17}, "context is 17: .* reads 2 to 16 tokens at once"),
        ({"context": 1}, "context is 1: .* reads 2 to 16 tokens at once"),
        ({"attention": KERNELS}, "is a program from the hub, which is not run"),
        ({"name": __file__}, "no model; give a directory"),
        ({"name": "no/such/directory"}, "no model; give a directory"),
    ],
)
def test_values_and_names_that_are_refused(directory, options, message):
    with pytest.raises(InputError, match=message):
        logprobs(TransformersScorer(ModelSource(**{"name": str(directory)} | options)))


def _here(directory: Path):
    return open_model(directory).tokenizer


def _behind_an_endpoint(directory: Path):
    return EndpointScorer("http://127.0.0.1:1/v1", "m", directory, context=64).tokenizer


@pytest.mark.parametrize("opened", [_here, _behind_an_endpoint])
def test_dropout_that_was_left_on_gives_the_tokens_of_a_model_without(directory, prose, opened):
    expected = tokenize(opened(directory), prose[:5])
    rules = json.loads((directory / "tokenizer.json").read_text())["model"]
    configure(directory, "tokenizer.json", model=rules | {"dropout": 0.3})
    for ids, without in zip(tokenize(opened(directory), prose[:5]), expected, strict=True):
        np.testing.assert_array_equal(ids, without)


def test_a_gguf_file_scores_as_its_weights_and_is_unpacked_once(
    tokenizer, tmp_path, prose, monkeypatch, capfd
):
    """In F32 it is the model itself; Q8_0 has eight bits of each weight."""
    monkeypatch.setenv("CONTAMINATION_CACHE", str(tmp_path / "cache"))
    sizes = grouped(CONTEXT) | {"intermediate_size": 64}  # blocks of 32 can be quantised
    twin = open_model(save_model(tmp_path / "model", tokenizer, "qwen2", sizes, biases=True))
    (ids,) = tokenize(twin.tokenizer, prose[:1])
    ((_, reference),) = twin.token_logprobs([ids])
    revisions = []
    for kind, nats in {"F32": 1e-5, "Q8_0": 0.2}.items():
        path = write_gguf(tmp_path / "model", kind)
        scorer = open_model(path)
        assert scorer.context == CONTEXT
        assert scorer.start == twin.start
        np.testing.assert_array_equal(tokenize(scorer.tokenizer, prose[:1])[0], ids)
        ((_, values),) = scorer.token_logprobs([ids])
        assert np.abs(values - reference).mean() <= nats
        assert (np.abs(values - reference).max() > 1e-3) == (kind != "F32")
        assert {type(m) for m in scorer.model.modules() if hasattr(m, "weight")} == {
            type(m) for m in twin.model.modules() if hasattr(m, "weight")
        }
        revisions.append(scorer.revision)
    assert revisions[0] != revisions[1]
    assert "de-quantizing" not in capfd.readouterr().err
    interrupted = Mock(side_effect=RuntimeError("interrupted"))
    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", interrupted)
    assert refusal(shutil.copy(path, tmp_path / "again.gguf"))  # of another name: unpacked anew
    monkeypatch.undo()
    monkeypatch.setenv("CONTAMINATION_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(transformers, "GgufConfig", interrupted)  # what unpacking needs
    assert open_model(path).revision == revisions[-1]
