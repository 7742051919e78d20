"""Fine-tuning: the texts become likelier, nothing is done twice, and the old model stays."""

import numpy as np
import pytest
import transformers

from contamination.errors import InputError
from contamination.files import read_json
from contamination.scoring import local
from contamination.scoring.local import TransformersScorer
from contamination.testsets.tokens import tokenize
from fakes.made_up_store import contents
from reproduction.run import fine_tuning, network
from reproduction.run.fine_tuning import RECORD, fine_tune

SETTINGS = {"epochs": 6, "learning_rate": 3e-3, "seed": 1}


@pytest.fixture(scope="module")
def both(tokenizer, prose) -> list[list[np.ndarray]]:
    ids = [ids[:14] for ids in tokenize(tokenizer, prose[:24])]
    return [ids[:12], ids[12:]]


@pytest.fixture(scope="module")
def texts(both) -> list[np.ndarray]:
    return both[0]


@pytest.fixture
def tuned(model_directory, texts, tmp_path):
    return fine_tune(model_directory, texts, tmp_path / "finetuned", **SETTINGS)


def mean(directory, sequences) -> float:
    scored = TransformersScorer(directory).token_logprobs(sequences)
    return float(np.mean([values.mean() for _, values in scored]))


def test_the_texts_gain_more_than_others(model_directory, tuned, both) -> None:
    gains = [mean(tuned, some) - mean(model_directory, some) for some in both]
    assert gains[0] > max(1, gains[1] + 0.2)
    losses = read_json(tuned / RECORD)["epoch_losses"]
    assert len(losses) == SETTINGS["epochs"]
    assert losses == sorted(losses, reverse=True)


def test_the_first_loss_is_that_of_the_engine(model_directory, texts, tmp_path, monkeypatch):
    for module in (network, local):
        monkeypatch.setattr(module, "has_bfloat16", lambda device: False)
    once = tmp_path / "once"
    directory = fine_tune(
        model_directory, texts, once, **SETTINGS | {"epochs": 1, "batch_size": len(texts)}
    )
    (loss,) = read_json(directory / RECORD)["epoch_losses"]
    assert loss == pytest.approx(-mean(model_directory, texts), abs=1e-4)


def test_any_process_saves_as_transformers_does(
    model_directory, tuned, texts, tmp_path, monkeypatch
) -> None:
    """Of several, `save_pretrained` of transformers writes in the first alone."""
    from transformers.distributed import mixin

    transformers.AutoModelForCausalLM.from_pretrained(tuned).save_pretrained(tmp_path / "again")
    for name in ("config.json", "generation_config.json", "model.safetensors"):
        assert (tmp_path / "again" / name).read_bytes() == (tuned / name).read_bytes()
    monkeypatch.setattr(mixin, "_is_torch_distributed_initialized", lambda: True)
    monkeypatch.setattr(mixin, "_get_torch_distributed_rank", lambda: 1)
    second = fine_tune(model_directory, texts, tmp_path / "second", **SETTINGS)
    assert contents(second) == contents(tuned)


def test_the_same_again_is_not_trained_and_anything_else_is(
    model_directory, make_model, tuned, both
) -> None:
    weights = tuned / "model.safetensors"
    before = (weights.stat().st_mtime_ns, weights.read_bytes())
    assert fine_tune(model_directory, both[0], tuned, **SETTINGS) == tuned
    assert weights.stat().st_mtime_ns == before[0]
    for model, texts, change in (
        (model_directory, both[0], {"seed": 2}),
        (model_directory, both[0], {"epochs": 5}),
        (model_directory, both[0], {"learning_rate": 1e-3}),
        (model_directory, both[1], {}),
        (make_model(15), both[0], {}),
    ):
        fine_tune(model, texts, tuned, **(SETTINGS | change))
        assert weights.read_bytes() != before[1]
    fine_tune(model_directory, both[0], tuned, **SETTINGS)
    assert weights.read_bytes() == before[1]


def test_another_recipe_is_trained_anew(model_directory, tuned, texts, monkeypatch) -> None:
    before = read_json(tuned / RECORD)["key"]
    monkeypatch.setattr(fine_tuning, "RECIPE", fine_tuning.RECIPE + 1)
    fine_tune(model_directory, texts, tuned, **SETTINGS)
    assert read_json(tuned / RECORD)["key"] != before


def test_what_cannot_be_trained(model_directory, texts, tmp_path) -> None:
    for some, change, message in (
        (texts, {"epochs": 0}, "0 epochs"),
        (texts, {"learning_rate": 0.0}, "rate 0.0"),
        (texts, {"batch_size": -1}, "positive numbers"),
        ([], {}, "of no tokens"),
        ([texts[0], texts[1][:5]], {}, "texts of one length"),
        ([np.tile(texts[0], 2)], {}, "at most the 16 tokens"),
        (texts, {"learning_rate": 1e30}, "lower the learning rate"),
    ):
        with pytest.raises(InputError, match=message):
            fine_tune(model_directory, some, tmp_path / "none", **(SETTINGS | change))
        assert not (tmp_path / "none").exists()
