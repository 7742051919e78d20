"""Where models come from, without a network: hub caches, directories and GGUF files made here."""

import importlib.util
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import huggingface_hub.constants
import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, LlamaForCausalLM

from contamination.errors import InputError
from contamination.scoring import loading
from contamination.scoring import local as here
from contamination.scoring.loading import ModelSource
from contamination.scoring.local import TransformersScorer
from fakes.hub_server import HubServer, Repository, put_in_cache
from fakes.made_up_registry import hub_at
from fakes.tiny_models import grouped, save_model

CONTEXT = 16
IDS = np.random.default_rng(0).integers(1, 300, 40, dtype=np.int32)
COMMITS = ("a" * 40, "b" * 40)


@pytest.fixture
def directory(model_directory, tmp_path) -> Path:
    """Return a copy of the model that a test may change."""
    return shutil.copytree(model_directory, tmp_path / "model")


@pytest.fixture(scope="session")
def expected(model_directory) -> np.ndarray:
    """Return the log-probabilities of IDS under the model in float32."""
    return logprobs(model_directory)


def open_model(name: Path | str, **options) -> TransformersScorer:
    return TransformersScorer(ModelSource(str(name), **({"precision": "float32"} | options)))


def logprobs(model: TransformersScorer | Path | str, **options) -> np.ndarray:
    scorer = model if isinstance(model, TransformersScorer) else open_model(model, **options)
    ((_, values),) = scorer.token_logprobs([IDS])
    return values


def refusal(name: Path | str, **options) -> str:
    """Return the message with which the model is refused; it is one line that names the model."""
    with pytest.raises(InputError) as caught:
        logprobs(name, **options)
    message = str(caught.value)
    assert "\n" not in message
    assert str(name.source.name if isinstance(name, TransformersScorer) else name) in message
    return message


def change_weights(directory: Path, name: str, by: float) -> None:
    """Add a number to the first of the weights of that name."""
    weights = load_file(directory / "model.safetensors")
    weights[name].view(-1)[0] += by
    save_file(weights, directory / "model.safetensors", {"format": "pt"})


def configure(directory: Path, name: str = "config.json", **changes) -> None:
    """Change what one of the model's JSON files says."""
    file = directory / name
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


class TestHub:
    """The hub's own code on a cache in the hub's own format."""

    @pytest.fixture(autouse=True)
    def cache(self, monkeypatch, tmp_path) -> Path:
        path = tmp_path / "hub"
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(path))
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
        return path

    def put(self, cache: Path, directory: Path, commit: str, ref: str) -> None:
        """Store a directory as a commit of org/name."""
        files = {file.name: file.read_bytes() for file in directory.iterdir()}
        put_in_cache(cache / "models--org--name", files, commit, ref)

    def test_a_model_is_named_by_its_commit(self, cache, model_directory, expected):
        self.put(cache, model_directory, COMMITS[0], "main")
        self.put(cache, model_directory, COMMITS[1], "later")
        scorer = open_model("org/name")
        assert scorer.source.revision == COMMITS[0]
        assert scorer.context == CONTEXT
        np.testing.assert_array_equal(logprobs(scorer), expected)
        assert open_model("org/name", revision=COMMITS[0]).revision == scorer.revision
        later = open_model("org/name", revision="later")
        assert later.source.revision == COMMITS[1]
        assert later.revision != scorer.revision

    def test_weights_come_from_the_commit_of_the_configuration(self, cache, directory, expected):
        """The branch moves on after the scorer was made and before its weights are loaded."""
        self.put(cache, directory, COMMITS[0], "main")
        scorer = open_model("org/name")
        change_weights(directory, "transformer.ln_f.bias", 2.0)
        self.put(cache, directory, COMMITS[1], "main")
        np.testing.assert_array_equal(logprobs(scorer), expected)
        assert np.abs(logprobs("org/name") - expected).max() > 0.01

    @pytest.mark.parametrize(
        ("file", "commit", "message"),
        [
            ("model.safetensors", COMMITS[0], "give a complete model"),
            (None, None, "fetch it with `hf download` where there is a network"),
        ],
    )
    def test_a_cache_with_a_part_or_nothing(self, cache, directory, file, commit, message):
        if file is not None:
            (directory / file).unlink()
        if commit is not None:
            self.put(cache, directory, commit, "main")
        assert message in refusal("org/name")


class TestDownload:
    """A hub over HTTP, with a gate, large files, and layouts of several kinds."""

    @pytest.fixture
    def server(self, monkeypatch, tmp_path, directory) -> Iterator[HubServer]:
        for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr(huggingface_hub.constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
        with hub_at(monkeypatch, tmp_path) as running:
            # Transformers keeps a client that was made before.
            monkeypatch.setattr(transformers.utils.hub.hf_api(), "endpoint", running.url)
            running.models["org/name"] = Repository()
            self.push(running, directory)
            yield running

    def push(self, server: HubServer, directory: Path) -> None:
        files = {file.name: file.read_bytes() for file in directory.iterdir()}
        server.models["org/name"].push(files)

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

    def test_that_is_gated(self, server, monkeypatch, expected):
        server.models["org/name"].gated, server.token = True, "hf_right"
        for token in (None, "hf_other"):
            if token is not None:
                monkeypatch.setenv("HF_TOKEN", token)
            assert "it is gated: ask for access on its page" in refusal("org/name")
        assert not server.downloaded() & {"model.safetensors"}
        monkeypatch.setenv("HF_TOKEN", "hf_right")
        np.testing.assert_array_equal(logprobs("org/name"), expected)


class TestRoom:
    """Made-up devices: their memory in units of what a model may take to fit exactly."""

    @pytest.fixture
    def place(self, directory, monkeypatch) -> Callable[..., str | None]:
        """Return a function: kind of device, memories, options -> where the model is placed."""

        def placed(kind: str, *devices: float, local: int = 1, **options) -> str | None:
            source = ModelSource(str(directory), precision="float32", **options)
            config = loading.load_config(source)
            unit = loading.count_parameters(config) * 4 / here.ROOM
            monkeypatch.setattr(here, "memories", lambda _: [int(unit * d) for d in devices])
            monkeypatch.setenv("LOCAL_WORLD_SIZE", str(local))
            return here.place(source, config, torch.float32, torch.device(kind)).device_map

        return placed

    @pytest.mark.parametrize(
        ("kind", "devices", "options", "expected"),
        [
            ("cuda", [1.01], {}, None),
            ("cuda", [0.9, 0.9], {}, "auto"),
            ("cuda", [0.9, 0.9], {"local": 2}, "auto"),
            ("cuda", [9.0, 0.9], {"local": 2}, "auto"),  # else the processes would not agree
            ("cuda", [0.24, 0.24], {"bits": "8"}, "auto"),
            ("cuda", [0.1], {"device_map": "balanced"}, "balanced"),  # the rest waits elsewhere
            ("cpu", [1.9], {"local": 2}, "auto"),  # one process has it, the others wait
            ("cpu", [2.01], {"local": 2}, None),
        ],
    )
    def test_a_model_is_placed_where_there_is_room(self, place, kind, devices, options, expected):
        assert place(kind, *devices, **options) == expected

    @pytest.mark.parametrize(
        ("kind", "devices", "options", "where"),
        [
            ("cuda", [0.99], {}, "1 GPU has"),
            ("cuda", [0.49, 0.49], {"local": 2}, "2 GPUs have"),
            ("cpu", [0.99], {}, "this machine has"),
        ],
    )
    def test_one_that_exceeds_all_devices_is_refused(self, place, kind, devices, options, where):
        with pytest.raises(InputError, match=where) as caught:
            place(kind, *devices, **options)
        assert "its weights take" in str(caught.value)
        assert " in float32, and " in str(caught.value)


def config(**changes) -> Callable[[Path], None]:
    """Change the configuration."""
    return lambda directory: configure(directory, **changes)


def tokens(**changes) -> Callable[[Path], None]:
    """Change the tokenizer."""
    return lambda directory: configure(directory, "tokenizer.json", **changes)


def words(*vocabulary: str) -> Callable[[Path], None]:
    """Make the tokenizer one of whole words."""
    model = {"type": "WordLevel", "vocab": {w: i for i, w in enumerate(vocabulary)}}
    white = {"type": "Whitespace"}
    return tokens(
        model=model | {"unk_token": "?"},
        pre_tokenizer=white,
        decoder=None,
        post_processor=None,
        added_tokens=[],
    )


def weights(change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Path], None]:
    """Change every weight."""

    def hostile(directory: Path) -> None:
        file = directory / "model.safetensors"
        found = {name: change(w).contiguous() for name, w in load_file(file).items()}
        save_file(found, file, {"format": "pt"})

    return hostile


def replaced(file: str, content: bytes | None) -> Callable[[Path], None]:
    """Put other contents, or a pipe, in the place of a file."""

    def hostile(directory: Path) -> None:
        (directory / file).unlink()
        if content is None:
            os.mkfifo(directory / file)
        else:
            (directory / file).write_bytes(content)

    return hostile


def removed(pattern: str) -> Callable[[Path], None]:
    def hostile(directory: Path) -> None:
        for file in directory.glob(pattern):
            file.unlink()

    return hostile


def endless(directory: Path) -> None:
    (directory / "tokenizer.json").unlink()
    (directory / "tokenizer.json").symlink_to("/dev/zero")


def a_norm_missing(directory: Path) -> None:
    found = load_file(directory / "model.safetensors")
    kept = {name: weight for name, weight in found.items() if ".ln_1." not in name}
    save_file(kept, directory / "model.safetensors", {"format": "pt"})


PANIC = {"type": "Split", "pattern": {"Regex": "(a?){64}(a+)+$b"}}
KERNELS = "kernels-community/flash-attn"
# What is done to a directory, and what the one line that refuses it must name.
HOSTILE: dict[str, tuple[Callable[[Path], None], str]] = {
    "no weights": (removed("model.*"), "no *.safetensors in it"),
    "half a file": (replaced("model.safetensors", b"{" * 90_000), "SafetensorError"),
    "weights that lack some": (a_norm_missing, "the weights lack transformer.h.0.ln_1.bias, "),
    "weights of zeros": (weights(torch.zeros_like), "its logits are the same whatever it reads"),
    "weights from a pipe": (replaced("model.safetensors", None), "model.safetensors: a pipe"),
    "brackets": (replaced("config.json", b"[" * 5000), "RecursionError"),
    "unknown architecture": (config(model_type="odd"), "does not recognize this architecture"),
    "layers": (config(n_layer=3_000), "num_hidden_layers = 3000, and a model has 1 to 2,000"),
    "a width": (config(n_embd=10**9), "hidden_size = 1000000000, and a model has 1 to 1,000,000"),
    "a context": (config(n_positions=1), "states a context of 1 tokens"),
    "kernels": (config(attn_implementation=KERNELS), f"attention '{KERNELS}' is a program"),
    "no tokenizer": (removed("tokenizer*"), "no tokenizer.json in it"),
    "a tokenizer without end": (endless, "tokenizer.json: a pipe or a device"),
    "a tokenizer without words": (words("apple"), "Missing [UNK] token from the vocabulary"),
    "a tokenizer that panics": (
        tokens(pre_tokenizer=PANIC | {"behavior": "Isolated", "invert": False}),
        "PanicException",
    ),
    "text for a length": (
        lambda directory: configure(directory, "tokenizer_config.json", model_max_length="x"),
        "TypeError",
    ),
}


@pytest.mark.parametrize(("change", "message"), HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_directories_are_refused_in_one_line(directory, change, message, capfd):
    change(directory)
    assert message in refusal(directory)
    if "panics" not in str(change):
        assert "LOAD REPORT" not in capfd.readouterr().err  # our line is the first and the last


def test_a_network_that_gives_tuples_by_default_is_read_all_the_same(directory, expected):
    configure(directory, return_dict=False)
    np.testing.assert_array_equal(logprobs(directory), expected)


class TestCodeThatComesWithAModel:
    """A configuration that asks for Python files, which tell by a mark that they ran."""

    @pytest.fixture
    def planted(self, directory, tmp_path, monkeypatch) -> tuple[Path, Path]:
        """Return the directory of the model, and the path of the mark."""
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

    def test_it_is_not_run(self, planted):
        directory, mark = planted
        message = refusal(directory)
        assert "read the code that comes with it" in message
        assert "--trust-remote-code" in message
        assert not mark.exists()

    def test_it_is_run_when_asked_for(self, planted, expected):
        directory, mark = planted
        np.testing.assert_array_equal(logprobs(directory, trust_remote_code=True), expected)
        assert mark.exists()

    def test_the_files_are_part_of_the_revision(self, planted):
        directory, _ = planted
        before = open_model(directory, trust_remote_code=True).revision
        with (directory / "planted.py").open("a") as file:
            file.write("# changed\n")
        assert open_model(directory, trust_remote_code=True).revision != before

    def test_known_architectures_run_the_code_of_transformers_instead(self, planted, expected):
        directory, mark = planted
        configure(directory, model_type="gpt2")
        np.testing.assert_array_equal(logprobs(directory), expected)
        assert not mark.exists()


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

    def test_safetensors_are_taken_before_pickles(self, directory, expected, malicious):
        (directory / "pytorch_model.bin").write_bytes(malicious[0])
        np.testing.assert_array_equal(logprobs(directory), expected)
        assert not malicious[1].exists()

    def test_pickles_are_data_only(self, directory, malicious):
        (directory / "model.safetensors").unlink()
        (directory / "pytorch_model.bin").write_bytes(malicious[0])
        message = refusal(directory)
        assert "UnpicklingError" in message
        assert "weights_only" not in message
        assert not malicious[1].exists()
        torch.load(directory / "pytorch_model.bin", weights_only=False)
        assert malicious[1].exists()  # the plant works

    @pytest.mark.parametrize("layout", ["beside it", "in a folder", "named by the configuration"])
    def test_every_file_that_is_loaded_is_part_of_the_revision(self, directory, expected, layout):
        """Several files with an index, wherever that says they are."""
        model = AutoModelForCausalLM.from_pretrained(directory)
        whole = directory / "model.safetensors"
        if layout == "named by the configuration":
            whole = whole.rename(directory / "named.safetensors")
            configure(directory, transformers_weights=whole.name)
            files = [whole]
        else:
            whole.unlink()
            model.save_pretrained(directory, max_shard_size="40KB")
            files = sorted(directory.glob("model-*.safetensors"))
            assert len(files) > 1
        if layout == "in a folder":
            (directory / "parts").mkdir()
            index = directory / "model.safetensors.index.json"
            index.write_text(index.read_text().replace(': "model-', ': "parts/model-'))
            files = [file.rename(directory / "parts" / file.name) for file in files]
        np.testing.assert_array_equal(logprobs(directory), expected)
        before = TransformersScorer(directory).revision
        weights = load_file(files[-1])
        name = sorted(weights)[0]
        save_file(weights | {name: weights[name] + 1}, files[-1], {"format": "pt"})
        assert TransformersScorer(directory).revision != before
        files[-1].unlink()
        assert "no such file; fetch all files" in refusal(directory)


class TestRevision:
    def test_it_names_the_precision_the_context_and_every_file(self, directory, monkeypatch):
        def revision(**options) -> str:
            return TransformersScorer(ModelSource(str(directory), **options)).revision

        found = [revision(bits=bits) for bits in (None, "8", "4")]
        found += [revision(context=CONTEXT // 2)]
        same = {"device_map": "auto", "attention": "eager", "compile": True}
        assert revision(context=CONTEXT, **same) == found[0]
        available = loading.has_bfloat16(torch.device("cpu"))
        monkeypatch.setattr(loading, "has_bfloat16", lambda _: not available)
        found += [revision(), revision(precision="float16")]
        for file in ("special_tokens_map.json", "added_tokens.json", "spiece.model", "vocab.json"):
            (directory / file).write_text("{}")
            found.append(revision())
        configure(directory, note="changed")
        found.append(revision())
        assert len(set(found)) == len(found)


class TestOptions:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"precision": "half"}, "precision is 'half': give one of auto, float32, bfloat16"),
            ({"revision": "two words"}, "revision is 'two words': give a branch"),
            ({"revision": "main"}, "lies on this machine, where revision main has no meaning"),
            ({"context": 17}, "context is 17: .* reads 2 to 16 tokens at once"),
            ({"attention": KERNELS}, "is a program from the hub, which is not run"),
            ({"name": __file__}, "is a file; give the directory that holds the model"),
        ],
    )
    def test_values_and_names_that_are_refused(self, directory, options, message):
        with pytest.raises(InputError, match=message):
            TransformersScorer(ModelSource(**{"name": str(directory)} | options))

    @pytest.mark.parametrize("bits", ["8", "4"])
    def test_quantised_loading_needs_its_library(self, directory, monkeypatch, bits):
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
        with pytest.raises(InputError, match="needs bitsandbytes: pip install bitsandbytes"):
            logprobs(directory, bits=bits)

    @pytest.mark.parametrize("precision", ["float32", "bfloat16"])
    def test_weights_that_wait_on_disk(self, directory, monkeypatch, precision):
        """Accelerate's placement: of a model that fits, and of one larger than all devices."""
        plain = logprobs(directory, precision=precision)
        placed = logprobs(directory, precision=precision, device_map="auto")
        np.testing.assert_array_equal(placed, plain)
        load = AutoModelForCausalLM.from_pretrained
        monkeypatch.setattr(
            loading.AutoModelForCausalLM,
            "from_pretrained",
            lambda *args, **options: load(*args, **options, max_memory={"cpu": 1000}),
        )
        scorer = open_model(directory, precision=precision, device_map="auto")
        assert set(scorer.model.hf_device_map.values()) == {"disk"}
        atol = 1e-5 if precision == "float32" else 0.1  # no exact logit: its weights are away
        np.testing.assert_allclose(logprobs(scorer), plain, rtol=0, atol=atol)

    def test_compilation_captures_one_graph_for_batches_of_all_shapes(self, directory, monkeypatch):
        """The graph is run as it is captured; making machine code of it takes half a minute."""
        compile_module = torch.nn.Module.compile
        graphs = []

        def backend(graph, _):
            graphs.append(graph)
            return graph

        monkeypatch.setattr(
            torch.nn.Module,
            "compile",
            lambda self, **options: compile_module(self, backend=backend, **options),
        )
        sequences = [IDS[:length] for length in (40, 16, 12, 9, 5, 30, 2)]
        plain, compiled = (
            TransformersScorer(
                ModelSource(str(directory), precision="float32", compile=compile), batch_tokens=40
            )
            for compile in (False, True)
        )
        reference = dict(plain.token_logprobs(sequences))
        for index, values in compiled.token_logprobs(sequences):
            np.testing.assert_allclose(values, reference[index], rtol=0, atol=1e-4)
        assert 1 <= len(graphs) <= 2


class TestGguf:
    @pytest.fixture
    def write(self, tokenizer, tmp_path) -> Callable[[LlamaForCausalLM, str], Path]:
        """Return a function that writes a Llama as llama.cpp's converter does."""
        gguf = pytest.importorskip("gguf")

        def permuted(weight: np.ndarray, heads: int) -> np.ndarray:
            rows = weight.shape[0] // heads // 2
            return weight.reshape(heads, 2, rows, -1).swapaxes(1, 2).reshape(weight.shape)

        def to_file(model: LlamaForCausalLM, kind: str) -> Path:
            config, path = model.config, tmp_path / f"{kind}.gguf"
            writer = gguf.GGUFWriter(path, "llama")
            writer.add_context_length(config.max_position_embeddings)
            writer.add_embedding_length(config.hidden_size)
            writer.add_block_count(config.num_hidden_layers)
            writer.add_feed_forward_length(config.intermediate_size)
            writer.add_head_count(config.num_attention_heads)
            writer.add_head_count_kv(config.num_key_value_heads)
            writer.add_layer_norm_rms_eps(config.rms_norm_eps)
            writer.add_rope_dimension_count(config.head_dim)
            writer.add_vocab_size(config.vocab_size)
            names = {index: token for token, index in tokenizer.get_vocab().items()}
            writer.add_tokenizer_model("gpt2")
            writer.add_token_list([names[i] for i in range(len(names))])
            writer.add_token_types([gguf.TokenType.NORMAL] * len(names))
            merges = json.loads(tokenizer.backend_tokenizer.to_str())["model"]["merges"]
            writer.add_token_merges([" ".join(merge) for merge in merges])
            writer.add_bos_token_id(tokenizer.bos_token_id)
            writer.add_eos_token_id(tokenizer.eos_token_id)
            quantisation = gguf.GGMLQuantizationType[kind]
            tensors = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
            for name, tensor in model.state_dict().items():
                weight, raw = tensor.numpy(), None
                if "q_proj" in name:
                    weight = permuted(weight, config.num_attention_heads)
                if "k_proj" in name:
                    weight = permuted(weight, config.num_key_value_heads)
                if weight.ndim == 2 and kind != "F32":
                    weight, raw = gguf.quantize(weight, quantisation), quantisation
                writer.add_tensor(tensors.get_name(name, (".weight",)), weight, raw_dtype=raw)
            writer.write_header_to_file()
            writer.write_kv_data_to_file()
            writer.write_tensors_to_file()
            writer.close()
            return path

        return to_file

    @pytest.fixture
    def llama(self, tokenizer, tmp_path) -> tuple[LlamaForCausalLM, Path]:
        options = grouped(CONTEXT) | {"intermediate_size": 64}  # blocks of 32 can be quantised
        directory = save_model(tmp_path / "llama", tokenizer, "llama", options)
        return AutoModelForCausalLM.from_pretrained(directory), directory

    @pytest.mark.parametrize(("kind", "nats"), [("F32", 1e-5), ("Q8_0", 0.2)])
    def test_the_same_weights_give_the_same_scores(self, llama, write, prose, kind, nats):
        model, directory = llama
        scorer, twin = open_model(write(model, kind)), open_model(directory)
        assert scorer.context == CONTEXT
        assert scorer.start == twin.start
        text = prose[0]
        ids = twin.tokenizer(text, add_special_tokens=False)["input_ids"]
        assert scorer.tokenizer(text, add_special_tokens=False)["input_ids"] == ids
        sequence = np.array(ids, dtype=np.int32)
        ((_, values),) = scorer.token_logprobs([sequence])
        ((_, reference),) = twin.token_logprobs([sequence])
        error = np.abs(values - reference)
        assert error.mean() <= nats
        assert (error.max() > 1e-3) == (kind != "F32")

    def test_the_file_is_the_revision(self, llama, write):
        path = write(llama[0], "F32")
        before = TransformersScorer(path).revision
        assert TransformersScorer(shutil.copy(path, path.parent / "copy.gguf")).revision == before
        assert TransformersScorer(write(llama[0], "Q8_0")).revision != before
