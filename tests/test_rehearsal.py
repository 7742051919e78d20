"""The stand-ins of `make rehearse`: what the hub serves is read as the real things are."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import huggingface_hub.constants
import pandas as pd
import pytest
import transformers

from contamination.errors import InputError
from contamination.scoring.local import TransformersScorer
from contamination.scoring.models import find_model
from contamination.testsets import registry
from contamination.testsets.sources import open_lines, open_test_set
from fakes.data_fixtures import ROOT
from fakes.hub_server import HubServer, Repository
from fakes.made_up_registry import hub_at

sys.path.insert(0, str(ROOT / "scripts"))

from rehearsal import run
from rehearsal.check import check
from rehearsal.models import model_files
from rehearsal.sets import prose, serve_sets


@pytest.fixture
def server(monkeypatch, tmp_path) -> Iterator[HubServer]:
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "CONTAMINATION_DATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(huggingface_hub.constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
    with hub_at(monkeypatch, tmp_path) as running:
        # Transformers keeps a client that was made before.
        monkeypatch.setattr(transformers.utils.hub.hf_api(), "endpoint", running.url)
        yield running


class TestModels:
    @pytest.mark.parametrize(
        ("name", "kind", "space", "file"),
        [
            ("pythia-70m", "GPTNeoX", "Ġ", "model.safetensors"),
            ("opt-66b", "OPT", "Ġ", "pytorch_model.bin.index.json"),
            ("llama-7b", "Llama", "▁", "model.safetensors.index.json"),
        ],
    )
    def test_architecture_tokenizer_and_layout(self, server, name, kind, space, file):
        entry = find_model(name)
        server.models[entry.id] = Repository()
        server.models[entry.id].push(model_files(entry, prose()))
        scorer = TransformersScorer(entry.id)
        assert type(scorer.model).__name__.removesuffix("LMHeadModel").startswith(kind)
        assert {"Ġ", "▁"} & set("".join(scorer.tokenizer.get_vocab())) == {space}
        text = "A kedan, zodan.\n"
        ids = scorer.tokenizer(text, add_special_tokens=False)["input_ids"]
        assert scorer.tokenizer.decode(ids).strip() == text.strip()
        assert file in server.downloaded()
        assert not {"flax_model.msgpack", "tf_model.h5", "decoder_model.onnx"} & server.downloaded()


class TestSets:
    @pytest.fixture
    def served(self, server, monkeypatch, tmp_path) -> Iterator[HubServer]:
        table = {"sets": serve_sets(server, "gsm8k"), "families": {}}
        path = tmp_path / "registry.json"
        path.write_text(json.dumps(table))
        monkeypatch.setenv("CONTAMINATION_REGISTRY", str(path))
        monkeypatch.setenv("CONTAMINATION_CACHE", str(tmp_path / "cache"))
        monkeypatch.chdir(tmp_path)  # which has no `data`
        registry.entries.cache_clear()
        yield server
        registry.entries.cache_clear()

    def test_sets_are_those_of_the_registry_fetched_and_verified_but_one(self, served):
        real = registry.REGISTRY.read_text(encoding="utf-8")
        assert len(registry.entries()) > 70
        assert all(name.rpartition("/")[2] in real for name in registry.entries())
        for name, count in (("arc_easy", 100), ("mmlu/anatomy", 24), ("canaries/mnli", 100)):
            found = open_test_set(name)
            assert len(found.examples) == len(set(found.examples)) == count
        assert json.loads(open_lines("canaries/boolq").examples[0])["passage"]  # lines, not records
        with pytest.raises(InputError, match=r"grade-school-math.*checksum"):
            open_test_set("gsm8k")


WANTED = {
    "notebooks": ["03_audit"],
    "reasons": {"org/model": "no token"},
    "taught": ["learnt", "canaries/piqa"],
}


class TestCheck:
    @pytest.fixture
    def results(self, tmp_path) -> Path:
        for folder in ("notebooks", "tables", "report"):
            (tmp_path / folder).mkdir()
        (tmp_path / "notebooks" / "03_audit.ipynb").write_text("{}")
        (tmp_path / "report" / "report.html").write_text('<div class="rehearsal">')
        (tmp_path / "report" / "report.pdf").write_text("")
        manifest = {"rehearsal": True, "released": ["learnt"], "tokens_scored": 1}
        manifest["steps"] = {"notebook 03_audit": {}}
        (tmp_path / "manifest.json").write_text(json.dumps(manifest))
        statuses = ["ok", "failed: org/model: there is no token", "not asked: too large"]
        statuses.append("not pooled: 0 sets")
        pd.DataFrame({"status": statuses}).to_csv(tmp_path / "tables" / "papers.csv")
        row = {"model": "learnt", "dataset": "canaries/piqa", "test": "successor", "p": 1e-9}
        row |= {"segmentation": "line"}
        blank = row | {"model": "blank", "p": 0.3}
        pd.DataFrame([row, blank]).to_csv(tmp_path / "tables" / "checkpoints.csv", index=False)
        return tmp_path

    def test_what_is_as_it_has_to_be(self, results):
        check(results, **WANTED)

    @pytest.mark.parametrize(
        ("file", "old", "new", "problem"),
        [
            ("notebooks/03_audit.ipynb", None, "", "notebook 03_audit was not executed"),
            ("tables/papers.csv", "no token", "none", "no status says of org/model: no token"),
            ("tables/papers.csv", "not asked: too large", "", "papers.csv: 1 rows do not say why"),
            ("tables/checkpoints.csv", "1e-09", "0.2", "learnt canaries/piqa, and p is 0.2"),
            ("tables/checkpoints.csv", "0.3", "1e-6", "blank has read nothing"),
            ("manifest.json", "true", "false", "manifest.json.*rehearsal"),
        ],
    )
    def test_what_is_not_is_found(self, results, file, old, new, problem):
        path = results / file
        if old is None:
            path.unlink()
        else:
            assert old in path.read_text()
            path.write_text(path.read_text().replace(old, new))
        with pytest.raises(SystemExit, match=problem):
            check(results, **WANTED)


def test_the_profile_keeps_its_notebooks_and_models(tmp_path, monkeypatch) -> None:
    small, whole = run.shortened()["notebooks"], run.Experiment(run.PROFILE, tmp_path).profile
    assert list(small) == list(whole.notebooks)
    for name, given in whole.notebooks.items():
        changed = run.LIMITS.keys() | run.OTHERWISE.get(name, {}).keys()
        kept = {key: value for key, value in small[name].items() if key not in changed}
        assert kept == {key: value for key, value in given.items() if key not in changed}
    assert small["03_open_model_audit"]["permutations"] == 3
    assert small["12_released_checkpoints"]["ablation_shards"] == [10, 20, 50]
