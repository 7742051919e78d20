"""Models that fit beyond doubt are opened uncounted, and counted before they are loaded."""

import shutil

import pytest
import torch

from contamination.errors import InputError
from contamination.scoring import loading, room
from contamination.scoring.loading import ModelSource
from contamination.scoring.local import TransformersScorer
from contamination.scoring.room import fits_surely
from fakes.tiny_models import configure

CPU = torch.device("cpu")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("processes", [1, 2])
def test_what_fits_surely_takes_at_most_its_share_of_the_memory(
    model_directory, monkeypatch, dtype, processes
):
    source = ModelSource(str(model_directory))
    weights = loading.count_parameters(loading.load_config(source)) * dtype.itemsize
    monkeypatch.setenv("LOCAL_WORLD_SIZE", str(processes))
    answers = []
    for times in (0.5, 1, 2, 4, 100):  # of what the weights take
        memory = int(times * weights)
        monkeypatch.setattr(room, "memories", lambda _, memory=memory: [10**15, memory])
        fits = fits_surely(source, dtype, CPU)
        answers.append(fits)
        assert not fits or weights <= room.SURE_SHARE * memory / processes
    assert answers[-1]


def test_the_files_of_a_hub_id_are_not_here():
    assert not fits_surely(ModelSource("owner/name"), torch.float32, CPU)


def test_more_weights_than_the_files_hold_are_refused_before_they_take_memory(
    model_directory, tmp_path
):
    directory = shutil.copytree(model_directory, tmp_path / "model")
    configure(directory, vocab_size=10**12)
    scorer = TransformersScorer(directory)
    with pytest.raises(InputError, match=f"{directory}: its weights take"):
        scorer.load()
