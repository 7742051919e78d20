"""The stand-ins of `make rehearse`: what the hub serves is read as the real things are."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import huggingface_hub.constants
import pandas as pd
import pytest
import transformers

from contamination.errors import InputError
from contamination.membership.dated_pages import LENGTHS
from contamination.scoring.local import TransformersScorer
from contamination.scoring.models import find_model
from contamination.testsets import registry
from contamination.testsets.lines import open_lines
from contamination.testsets.sources import open_test_set
from fakes.data_fixtures import ROOT
from fakes.hub_server import HubServer, Repository
from fakes.made_up_registry import hub_at
from reproduction.notebooks.assumptions.measure import SETS, load_public
from reproduction.notebooks.wikimia.benchmark import load_wikimia

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
            ("biomedlm", "GPT2", "Ġ", "pytorch_model.bin"),
            ("opt-66b", "OPT", "Ġ", "pytorch_model.bin.index.json"),
            ("llama-7b", "Llama", "▁", "model.safetensors.index.json"),
            ("olmo-2-7b", "Olmo2", "Ġ", "model.safetensors.index.json"),
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

    def test_two_of_one_family_are_not_one(self):
        first, second = (
            model_files(find_model(name), prose())["model.safetensors"]
            for name in ("pythia-70m", "pythia-160m")
        )
        assert first != second


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

    @pytest.mark.parametrize(
        ("name", "count"),
        [("arc_easy", 100), ("piqa", 100), ("mmlu/anatomy", 24), ("canaries/mnli", 100)],
    )
    def test_a_set_is_fetched_and_verified(self, served, name, count):
        found = open_test_set(name)
        assert len(found.examples) == len(set(found.examples)) == count

    def test_the_names_are_those_of_the_registry(self, served):
        real = registry.REGISTRY.read_text(encoding="utf-8")
        assert len(registry.entries()) > 70
        assert all(name.rpartition("/")[2] in real for name in registry.entries())

    def test_planted_sets_are_lines(self, served):
        assert json.loads(open_lines("canaries/boolq").examples[0])["passage"]

    def test_one_has_another_checksum(self, served):
        with pytest.raises(InputError, match=r"gsm8k.*checksum"):
            open_test_set("gsm8k")

    def test_texts_of_known_membership(self, served):
        parts = load_wikimia(LENGTHS, network=True)
        assert {part.status for part in parts} == {"ok"}
        assert {len(text.split()) for part in parts for text in part.texts} == set(LENGTHS)
        for name in SETS:
            domains = [d for d in load_public(name) if not d.status.startswith("not asked")]
            assert {(d.status, len(d.members)) for d in domains} == {("ok", 30)}


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
        statuses = [
            "ok",
            "failed: org/model: there is no token",
            "not asked: too large",
            "not pooled: 0 sets",
        ]
        pd.DataFrame({"status": statuses}).to_csv(tmp_path / "tables" / "papers.csv")
        row = {"model": "learnt", "dataset": "canaries/piqa", "test": "successor", "p": 1e-9}
        pd.DataFrame([row]).to_csv(tmp_path / "tables" / "checkpoints.csv", index=False)
        return tmp_path

    def test_what_is_as_it_has_to_be(self, results, capsys):
        check(results, **WANTED)
        shown = capsys.readouterr().out
        for part in (
            "papers.csv",
            "1 ok",
            "1 failed",
            "1 not asked",
            "1 not pooled",
            "canaries/piqa: p = 1e-09",
        ):
            assert part in shown

    @pytest.mark.parametrize(
        ("file", "old", "new", "problem"),
        [
            ("notebooks/03_audit.ipynb", None, "", "notebook 03_audit was not executed"),
            ("report/report.html", "rehearsal", "", "does not say that it is a rehearsal"),
            ("tables/papers.csv", "no token", "none", "no status says of org/model: no token"),
            ("tables/papers.csv", "not asked: too large", "", "papers.csv: 1 rows do not say why"),
            ("tables/papers.csv", "0,ok", "0,failed: x", "papers.csv: not one row is ok"),
            ("tables/checkpoints.csv", "1e-09", "0.2", "learnt canaries/piqa, and p is 0.2"),
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


def test_an_interrupt_ends_what_was_started(tmp_path) -> None:
    """A grandchild waits on a FIFO; when all have ended, nobody reads it any more."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    shell = shutil.which("sh") or "sh"
    program = f"from rehearsal import run; run.run([{shell!r}, '-c', 'cat {fifo}; true'], {{}})"
    started = subprocess.Popen(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "scripts"), *sys.path])},
        stderr=subprocess.DEVNULL,
        # A shell lets what it starts in the background ignore interrupts, and that is inherited.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    writer = os.open(fifo, os.O_WRONLY)  # waits for the reader
    started.send_signal(signal.SIGINT)
    assert started.wait(60) != 0
    with pytest.raises(BrokenPipeError):
        os.write(writer, b"x")
    os.close(writer)


def test_a_command_that_fails_ends_the_rehearsal() -> None:
    with pytest.raises(SystemExit, match="error: false ended with status 1"):
        run.run(["false"], dict(os.environ))


def test_the_profile_keeps_its_notebooks_and_models(tmp_path, monkeypatch) -> None:
    """What is run is `open`, with smaller numbers."""
    small, whole = run.shortened()["notebooks"], run.Experiment(run.PROFILE, tmp_path).profile
    assert list(small) == list(whole.notebooks)
    for name, given in whole.notebooks.items():
        kept = {key: value for key, value in small[name].items() if key not in run.LIMITS}
        assert kept == {key: value for key, value in given.items() if key not in run.LIMITS}
    assert small["03_open_model_audit"]["permutations"] == 3
    assert small["12_released_checkpoints"]["ablation_shards"] == [10, 20, 50]
