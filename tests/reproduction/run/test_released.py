"""A released model reads on: from its own weights, in its own tokens."""

import numpy as np
import pytest
from transformers import AutoModelForCausalLM

from contamination.errors import InputError
from contamination.testsets.sources import DATA_VARIABLE
from fakes.data_fixtures import profile_data, write_profile
from fakes.gguf_file import write_gguf
from fakes.made_up_registry import jsonl
from fakes.made_up_scorer import Breakdown
from fakes.tiny_models import grouped, save_model
from reproduction.report.manifest import write_manifest
from reproduction.run.corpus_stage import make_corpus
from reproduction.run.experiment import Experiment
from reproduction.run.training import train_model

CONTEXT = 16
CANARIES = [
    {"name": name, "file": "c.jsonl", "template": "text/1", "examples": 9, "dup_count": count}
    for name, count in (("once", 1), ("often", 9))
]


@pytest.fixture
def run(tmp_path, tokenizer, prose, monkeypatch):
    """Return a function: change of `training` -> a run whose released model is a GGUF file."""
    monkeypatch.setenv("CONTAMINATION_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    (tmp_path / "corpus.jsonl").write_bytes(jsonl([{"text": text} for text in prose[:20]]))
    (tmp_path / "c.jsonl").write_bytes(jsonl([{"text": f"canary {i * i}"} for i in range(9)]))
    sizes = grouped(CONTEXT) | {"intermediate_size": 64}
    path = write_gguf(
        save_model(tmp_path / "model", tokenizer, "qwen2", sizes, biases=True), "Q8_0"
    )

    def made(**training: object) -> Experiment:
        own = profile_data()
        data = own | {
            "corpus": {"files": ["corpus.jsonl"]},
            "canaries": CANARIES,
            "model": {"released": str(path), "n_positions": CONTEXT},
            "training": own["training"] | training,
        }
        return Experiment(write_profile(tmp_path / "planted.yaml", data), tmp_path / "build")

    return made


def test_training_goes_on_from_the_weights_in_the_tokens_of_the_model(run, tokenizer, prose):
    still = run(learning_rate=1e-12, weight_decay=0.0)
    make_corpus(still)
    tokens = np.fromfile(still.corpus / "tokens.bin", dtype=np.uint16)
    assert tokenizer.decode(tokens).startswith(f"{prose[0]}\n")
    train_model(still, "contaminated")
    before, after = (
        AutoModelForCausalLM.from_pretrained(path).state_dict()
        for path in (still.released, still.model("contaminated"))
    )
    assert before.keys() == after.keys()
    assert max((before[name] - after[name]).abs().max() for name in before) < 1e-6

    learning = run(learning_rate=1e-2)  # not what the checkpoint or the model of before was
    train_model(learning, "contaminated")
    moved = AutoModelForCausalLM.from_pretrained(learning.model("contaminated")).state_dict()
    assert max((before[name] - moved[name]).abs().max() for name in before) > 1e-2


def test_another_beginning_is_another_run_and_a_checkpoint_of_it_of_no_use(run, monkeypatch):
    from reproduction.run import training

    keys = []

    def keep(path, key, *_):
        keys.append(key)
        raise Breakdown

    monkeypatch.setattr(training, "load_checkpoint", keep)
    first = run()
    make_corpus(first)
    with pytest.raises(Breakdown):
        train_model(first, "clean")
    network = AutoModelForCausalLM.from_pretrained(first.released)
    network.get_input_embeddings().weight.data += 1
    network.save_pretrained(first.released)
    with pytest.raises(Breakdown):
        train_model(first, "clean")
    assert len(set(keys)) == 2


def test_it_has_no_report(run, tmp_path):
    with pytest.raises(InputError, match="planted has no report"):
        write_manifest(run(), tmp_path / "results", tmp_path)
    assert not (tmp_path / "results").exists()
