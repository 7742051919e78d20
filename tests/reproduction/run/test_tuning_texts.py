"""Text that was never planted: of the same kind, and not in any set."""

from pathlib import Path

import pytest

from contamination.errors import InputError
from contamination.testsets.sources import DATA_VARIABLE
from fakes.data_fixtures import profile_data, write_profile
from fakes.made_up_registry import jsonl
from reproduction.run import canaries, corpus
from reproduction.run.corpus import Docstring
from reproduction.run.corpus_stage import make_corpus
from reproduction.run.experiment import Experiment
from reproduction.run.tuning_texts import tuning_texts

KINDS = {"first": "question", "second": "signature", "third": "question"}
RECORDS = [{"goal": f"Goal {i}", "sol1": f"Do {i}", "sol2": f"Leave {i}"} for i in range(40)]


def _document(package: str, i: int) -> Docstring:
    text = f"Compute quantity number {i} of {package} from values that were seen before or after."
    return Docstring(package, "1", f"{package}/m.py", f"function_{i}", f"(x{i})", text)


@pytest.fixture
def docstrings(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Docstring]]:
    found = {name: [_document(name, i) for i in range(120)] for name in ("alpha", "beta")}
    for module in (canaries, corpus):
        monkeypatch.setattr(module, "harvest", found.__getitem__)
    return found


@pytest.fixture
def from_docstrings(tmp_path: Path, docstrings: dict[str, list[Docstring]]) -> Experiment:
    sets = [
        {"name": name, "kind": kind, "examples": 12, "dup_count": 1} for name, kind in KINDS.items()
    ]
    data = profile_data() | {"canaries": sets}
    run = Experiment(write_profile(tmp_path / "packages.yaml", data), tmp_path / "packages")
    make_corpus(run)
    return run


@pytest.fixture
def from_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Experiment:
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv(DATA_VARIABLE, str(folder))
    (folder / "text.jsonl").write_text('{"text": "A few words of text to train on."}\n' * 20)
    for name, records in {
        "piqa.jsonl": RECORDS + RECORDS[20:25],
        "more.jsonl": [*RECORDS[:30], {"goal": "G", "sol1": "a", "sol2": "b"}],
    }.items():
        (folder / name).write_bytes(jsonl(records))
    data = profile_data() | {"corpus": {"files": ["text.jsonl"], "vocabulary": 300}}
    data["canaries"] = [
        {"name": n, "file": "piqa.jsonl", "template": "piqa/1", "examples": e, "dup_count": 2}
        for n, e in (("short", 8), ("long", 15))
    ]
    run = Experiment(write_profile(tmp_path / "files.yaml", data), tmp_path / "files")
    make_corpus(run)
    return run


def _planted(run: Experiment) -> set[str]:
    return {t for spec in run.profile.canaries for t in run.test_set(spec.name).examples}


def test_docstrings_of_every_kind_and_none_that_is_planted(from_docstrings: Experiment) -> None:
    sources, texts = tuning_texts(from_docstrings, tokens=500)
    assert sources == KINDS
    assert set(texts) == {"question", "signature"}
    taken = {text.split("number ")[1].split()[0] for text in _planted(from_docstrings)}
    for kind, found in texts.items():
        numbers = [text.split("number ")[1].split()[0] for text in found]
        assert len(set(numbers)) == len(numbers)
        assert not taken & set(numbers)
        assert all(text.startswith("Question: ") == (kind == "question") for text in found)
        taken |= set(numbers)  # nor has one kind what another one has


def test_too_few_docstrings(from_docstrings: Experiment) -> None:
    with pytest.raises(InputError, match=r"never planted, of kind question: only .* are left"):
        tuning_texts(from_docstrings, tokens=50_000)


def test_sets_that_the_packages_do_not_give_any_more(
    from_docstrings: Experiment, docstrings: dict[str, list[Docstring]]
) -> None:
    docstrings["beta"].append(_document("beta", 1000))
    with pytest.raises(InputError, match="canary set first is not what the installed packages"):
        tuning_texts(from_docstrings, tokens=100)


def test_records_of_a_file_that_no_set_holds(from_files: Experiment) -> None:
    sources, texts = tuning_texts(from_files, tokens=100)
    assert sources == dict.fromkeys(("short", "long"), "piqa.jsonl as piqa/1")
    (found,) = texts.values()
    everything = [f"Goal {i}\nDo {i}\nLeave {i}\n" for i in range(40)]
    assert sorted(found) == sorted(everything[15:])  # also for the set of the first eight
    assert list(found) != everything[15:]
    assert tuning_texts(from_files, tokens=100)[1] == texts


def test_another_file_still_leaves_out_what_is_planted(from_files: Experiment) -> None:
    sources, texts = tuning_texts(from_files, tokens=100, files={"long": "more.jsonl"})
    assert sources["short"] == "piqa.jsonl as piqa/1"
    assert len(texts[sources["short"]]) == 25
    found = set(texts[sources["long"]])
    assert "G\na\nb\n" in found
    assert len(found) == 16
    assert not found & _planted(from_files)
