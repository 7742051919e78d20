"""Fine-tuning: the texts become likelier, nothing is done twice, and the old model stays."""

import math

import numpy as np
import pytest
import transformers

from contamination.errors import InputError
from contamination.files import read_json
from contamination.scoring.local import TransformersScorer
from contamination.testsets.tokens import tokenize
from reproduction.run.fine_tuning import RECORD, fine_tune, fine_tune_on_texts

SETTINGS = {"epochs": 6, "learning_rate": 3e-3, "seed": 1}


@pytest.fixture(scope="module")
def texts(tokenizer, prose) -> list[np.ndarray]:
    return [ids[:14] for ids in tokenize(tokenizer, prose[:12])]


@pytest.fixture(scope="module")
def others(tokenizer, prose) -> list[np.ndarray]:
    return [ids[:14] for ids in tokenize(tokenizer, prose[12:24])]


@pytest.fixture
def tuned(model_directory, texts, tmp_path):
    return fine_tune(model_directory, texts, tmp_path / "finetuned", **SETTINGS)


def mean(directory, sequences) -> float:
    scored = TransformersScorer(directory).token_logprobs(sequences)
    return float(np.mean([values.mean() for _, values in scored]))


def test_the_texts_gain_more_than_others(model_directory, tuned, texts, others) -> None:
    gains = [mean(tuned, some) - mean(model_directory, some) for some in (texts, others)]
    assert gains[0] > 1
    assert gains[0] > gains[1] + 0.2
    losses = read_json(tuned / RECORD)["epoch_losses"]
    assert len(losses) == SETTINGS["epochs"]
    assert losses == sorted(losses, reverse=True)


def test_the_first_loss_is_that_of_the_engine(model_directory, texts, tmp_path, monkeypatch):
    """One step over all texts, so that the loss is the model's own: after the start token."""
    from contamination.scoring import loading
    from reproduction.run import network

    for module in (network, loading):
        monkeypatch.setattr(module, "has_bfloat16", lambda device: False)
    settings = SETTINGS | {"epochs": 1, "batch_size": len(texts)}
    directory = fine_tune(model_directory, texts, tmp_path / "once", **settings)
    (loss,) = read_json(directory / RECORD)["epoch_losses"]
    assert math.isclose(loss, -mean(model_directory, texts), abs_tol=1e-4)


def test_any_process_saves_what_it_has_tuned(
    model_directory, tuned, texts, tmp_path, monkeypatch
) -> None:
    """Of several, `save_pretrained` of transformers writes in the first alone."""
    from transformers.distributed import mixin

    monkeypatch.setattr(mixin, "_is_torch_distributed_initialized", lambda: True)
    monkeypatch.setattr(mixin, "_get_torch_distributed_rank", lambda: 1)
    second = fine_tune(model_directory, texts, tmp_path / "second", **SETTINGS)
    names = sorted(path.name for path in second.iterdir())
    assert names == sorted(path.name for path in tuned.iterdir())
    for name in names:
        assert (second / name).read_bytes() == (tuned / name).read_bytes()


def test_the_same_again_is_not_trained_and_other_texts_are(
    model_directory, tuned, texts, others, monkeypatch
) -> None:
    weights = tuned / "model.safetensors"
    before = (weights.stat().st_mtime_ns, weights.read_bytes())
    assert fine_tune(model_directory, texts, tuned, **SETTINGS) == tuned
    assert weights.stat().st_mtime_ns == before[0]
    for change in ({"seed": 2}, {"epochs": 5}, {"learning_rate": 1e-3}):
        fine_tune(model_directory, texts, tuned, **(SETTINGS | change))
        assert weights.read_bytes() != before[1]
    fine_tune(model_directory, texts, tuned, **SETTINGS)
    assert weights.read_bytes() == before[1]
    fine_tune(model_directory, others, tuned, **SETTINGS)
    assert weights.read_bytes() != before[1]


def test_texts_of_any_length_are_cut_into_pieces(
    model_directory, tokenizer, prose, texts, tmp_path
) -> None:
    """Whatever their ends: the same pieces give the same key, and the model given stays."""
    original = (model_directory / "model.safetensors").read_bytes()
    stream = np.concatenate(tokenize(tokenizer, prose[:4]))
    assert len(stream) % 16
    pieces = np.split(stream[: -(len(stream) % 16)], len(stream) // 16)
    tuned = fine_tune_on_texts(model_directory, prose[:4], tmp_path / "texts", **SETTINGS)
    assert (model_directory / "model.safetensors").read_bytes() == original
    assert mean(tuned, texts[:4]) - mean(model_directory, texts[:4]) > 0.5
    before = (tuned / "model.safetensors").stat().st_mtime_ns
    assert fine_tune(model_directory, pieces, tuned, **SETTINGS) == tuned
    assert (tuned / "model.safetensors").stat().st_mtime_ns == before


def test_what_cannot_be_trained(model_directory, texts, tmp_path) -> None:
    for some, change, message in (
        (texts, {"epochs": 0}, "give texts of one length and positive numbers"),
        (texts, {"learning_rate": 0.0}, "one length and positive numbers"),
        (texts, {"batch_size": -1}, "one length and positive numbers"),
        ([], {}, "give texts of one length"),
        ([texts[0], texts[1][:5]], {}, "give texts of one length"),
        ([np.tile(texts[0], 2)], {}, r"texts of 28 tokens, and .* reads 16: shorten them"),
        (texts, {"learning_rate": 1e30}, "lower the learning rate"),
    ):
        with pytest.raises(InputError, match=message):
            fine_tune(model_directory, some, tmp_path / "none", **(SETTINGS | change))
        assert not (tmp_path / "none").exists()


def test_a_saved_model_is_as_transformers_saves_it(tuned, tmp_path) -> None:
    transformers.AutoModelForCausalLM.from_pretrained(tuned).save_pretrained(tmp_path / "again")
    for name in ("config.json", "generation_config.json", "model.safetensors"):
        assert (tmp_path / "again" / name).read_bytes() == (tuned / name).read_bytes()


def test_another_model_is_trained_again(make_model, tuned, texts) -> None:
    key = read_json(tuned / RECORD)["key"]
    fine_tune(make_model(15), texts, tuned, **SETTINGS)
    assert read_json(tuned / RECORD)["key"] != key
