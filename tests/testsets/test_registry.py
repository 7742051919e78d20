"""The registry is complete, agrees with the published sizes, and says what it does not know."""

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from contamination.errors import InputError
from contamination.testsets.records import FORMATS
from contamination.testsets.registry import FIRST, Hub, entries, registered
from contamination.testsets.templates import TEMPLATES
from fakes.data_fixtures import ROOT
from fakes.made_up_registry import described, registry_of

PUBLISHED = ROOT / "data" / "published"


def published(table: str) -> pd.DataFrame:
    return pd.read_csv(PUBLISHED / f"oren2024_{table}.csv")


def test_every_entry_is_complete() -> None:
    for entry in entries().values():
        assert entry.template in (None, *TEMPLATES)
        assert entry.licence and entry.title and entry.split
        assert (entry.records or 0) > 0
        assert Path(entry.mirror).suffix in FORMATS and not Path(entry.mirror).is_absolute()
        assert (entry.lines is None) != entry.name.startswith("canaries/")
        # What nobody has verified is absent, never made up.
        assert entry.checksum is None or re.fullmatch(r"[0-9a-f]{64}", entry.checksum)
        if isinstance(entry.source, Hub):
            assert re.fullmatch(r"[\w.-]+/[\w.-]+", entry.source.id)
            assert re.fullmatch(r"[0-9a-f]{40}", entry.source.revision or "0" * 40)
        else:
            assert entry.source.url.startswith("https://")
            assert entry.source.member or Path(entry.source.url).suffix in FORMATS
            if "github" in entry.source.url:  # a commit, no branch
                assert re.search(r"/[0-9a-f]{40}/", entry.source.url)


def test_sizes_and_order_are_those_of_the_papers_tables() -> None:
    for table, names in (
        (published("table1_canaries"), registered("canaries/")),
        (published("table2_open_models"), [name for name in registered() if "/" not in name]),
    ):
        sized = table.dropna(subset=["size"])
        found = [entries()[name] for name in names][: len(sized)]
        assert [entry.title for entry in found] == sized["dataset"].tolist()
        assert [min(entry.records or 0, FIRST) for entry in found] == sized["size"].tolist()
    table = published("table4_mmlu")
    *found, last = registered("mmlu/")
    assert found == [f"mmlu/{subset}" for subset in table["subset"]]
    assert [entries()[name].records for name in found] == table["size"].tolist()
    # Named in data/README.md: the one subset that the table leaves out.
    assert last == "mmlu/professional_law"
    assert entries()[last].records == 1534


def test_a_family_fills_in_the_name(tmp_path, monkeypatch) -> None:
    shared = described(
        hub={"id": "org/all", "config": "{name}"}, mirror="all/{name}_test.csv", title="{name}"
    )
    del shared["records"], shared["checksum"]
    members = {"b": {"records": 2, "checksum": None}, "a": {"records": 3, "template": "text/1"}}
    family = shared | {"checksum": None, "members": members}
    with registry_of(monkeypatch, tmp_path, {"x": described()}, all=family):
        assert registered() == ("x", "all/b", "all/a")
        found = entries()["all/a"]
        assert found.source == Hub("org/all", "a")
        assert found.mirror == "all/a_test.csv"
        assert found.title == "a"
        assert found.records == 3
        assert found.template == "text/1"
        assert entries()["all/b"].template == "question/1"


def test_another_registry_takes_the_place_of_this_one(tmp_path, monkeypatch) -> None:
    with registry_of(monkeypatch, tmp_path, {"x": described()}):
        table = {"sets": {"y": described(title="Other questions")}, "families": {}}
        (tmp_path / "other.yaml").write_text(yaml.safe_dump(table))
        monkeypatch.setenv("CONTAMINATION_REGISTRY", str(tmp_path / "other.yaml"))
        assert {name: entry.title for name, entry in entries().items()} == {"y": "Other questions"}
        entries.cache_clear()
        monkeypatch.setenv("CONTAMINATION_REGISTRY", str(tmp_path / "nowhere.yaml"))
        with pytest.raises(InputError, match=r"nowhere.yaml: no such file; CONTAMINATION_REGISTRY"):
            entries()


def without(name: str) -> dict[str, Any]:
    fields = described()
    del fields[name]
    return fields


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        (without("title"), "title"),
        (without("split"), "split"),
        (without("mirror"), "mirror"),
        (without("hub"), "hub"),
        (described(hub={"config": "main"}), "id"),
        (described(hub=None), "hub"),
        (described(colour="red"), "colour"),
        (described(title=["a", "b"]), "title"),
        (described(records="many"), "records"),
        (described(mirror="../test.jsonl"), "mirror"),
        (described(mirror="/test.jsonl"), "mirror"),
        (None, "wrong"),
    ],
)
def test_a_wrong_entry_is_named_with_its_field(tmp_path, monkeypatch, fields, field) -> None:
    with (
        registry_of(monkeypatch, tmp_path, {"right": described(), "wrong": fields}),
        pytest.raises(InputError) as refused,
    ):
        entries()
    message = str(refused.value)
    assert "registry.yaml" in message
    assert "wrong" in message
    assert field in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", ""),
        ("- a\n", ""),
        ("sets: [1]\n", ""),
        ("sets: {a: {\n", ""),
        ("sets:\n  b: {title: B}\n  a: {}\n  b: {title: C}\n", ", line 4: 'b'"),
    ],
)
def test_a_file_that_is_no_registry_is_named(tmp_path, monkeypatch, text, named) -> None:
    with registry_of(monkeypatch, tmp_path, {}):
        (tmp_path / "registry.yaml").write_text(text)
        with pytest.raises(InputError, match=rf"registry\.yaml{named}"):
            entries()


def test_a_member_of_a_family_without_a_field_is_named(tmp_path, monkeypatch) -> None:
    family = without("split") | {"members": {"a": {}}}
    with (
        registry_of(monkeypatch, tmp_path, {}, all=family),
        pytest.raises(InputError, match=r"all/a.*split"),
    ):
        entries()
