"""Who has read what: domains of a divided corpus, of a whole one, and what was never planted."""

import gzip
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from contamination.errors import InputError
from contamination.testsets.sources import DATA_VARIABLE
from contamination.testsets.tokens import tokenize
from fakes.data_fixtures import WORDS, divided_run, profile_data, write_profile
from fakes.made_up_registry import jsonl
from reproduction.run import canaries as canary_sets
from reproduction.run import corpus
from reproduction.run.corpus import Docstring, read_documents
from reproduction.run.corpus_stage import make_corpus
from reproduction.run.experiment import Experiment
from reproduction.run.texts import Domain, domain_texts, to_train_on, tuning_texts

LENGTH = 24
WANTED = {"length": LENGTH, "texts": 8, "spare": 4}


def planted(name: str, examples: int, **source: str) -> dict[str, object]:
    return {"name": name, "examples": examples, "dup_count": 1} | source


CANARIES = [planted("c", 3, file="canaries.jsonl", template="text/1")]


def run_of(tmp_path: Path, sets: list[dict[str, object]] = CANARIES, **corpus: object):
    data = profile_data() | {"canaries": sets}
    data["corpus"] = {"vocabulary": 300, **corpus} if corpus else data["corpus"]
    found = Experiment(write_profile(tmp_path / "made-up.yaml", data), tmp_path / "build")
    make_corpus(found)
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the data directory, with a file of canaries."""
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path / "data"))
    (tmp_path / "data").mkdir()
    lines = jsonl([{"text": f"canary {i}"} for i in range(3)])
    (tmp_path / "data" / "canaries.jsonl").write_bytes(lines)
    return tmp_path / "data"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Experiment:
    return divided_run(tmp_path, monkeypatch)


@pytest.fixture
def domains(run: Experiment, tokenizer) -> dict[str, Domain]:
    return domain_texts(run, tokenizer, **WANTED)


def sizes(domains: dict[str, Domain]) -> dict[str, tuple[int, int, int]]:
    return {n: (len(d.members), len(d.non_members), len(d.spare)) for n, d in domains.items()}


def test_members_are_what_the_corpus_has_and_nothing_else_is(run, domains, tokenizer) -> None:
    read: dict[str, set] = {"alpha": set(), "gamma": set(), "beta": set()}
    for name, text in read_documents(run.corpus / "documents.jsonl"):
        read[name].add(tuple(tokenize(tokenizer, [text])[0][:LENGTH]))
    known = set().union(*read.values())
    for name, domain in domains.items():
        sides = [set(map(tuple, one)) for one in (domain.members, domain.non_members, domain.spare)]
        assert sides[0] <= read[name]
        assert not (sides[1] | sides[2]) & known
        known |= sides[1] | sides[2]
        assert sum(map(len, sides)) == len(set().union(*sides))
        assert set(map(len, chain.from_iterable(sides))) == {LENGTH}
    # Text of a held-out package that the corpus holds, too, is no non-member.
    for ids in (*domains["beta"].non_members, *domains["beta"].spare):
        assert tokenizer.decode(ids).startswith("beta")
    assert sizes(domains) == {"alpha": (8, 8, 4), "gamma": (8, 8, 4), "beta": (0, 8, 4)}
    assert to_train_on(domains) == {name: domains[name].spare for name in ("alpha", "gamma")}
    assert to_train_on({"alpha": Domain(members=domains["alpha"].members)}) == {}


def test_a_domain_with_few_non_members_has_as_few_members(run, tokenizer) -> None:
    path = run.corpus / "non_members.jsonl"
    alpha = [line for line in path.read_text().splitlines() if '"alpha"' in line]
    path.write_text("\n".join(alpha[:3]) + "\n")
    domains = domain_texts(run, tokenizer, **WANTED)
    assert sizes(domains) == {"alpha": (3, 3, 0), "gamma": (8, 0, 0), "beta": (0, 8, 4)}
    assert list(to_train_on(domains)) == ["beta"]  # since no domain of the corpus has any to spare


def test_a_whole_corpus_has_no_non_members_but_the_mirror(
    tmp_path: Path, folder: Path, tokenizer
) -> None:
    texts = [" ".join(np.random.default_rng(i).choice(WORDS, 30)) for i in range(60)]
    records = [{"text": text} for text in texts]
    one, two, law = (jsonl(records[start::3]) for start in range(3))
    (folder / "one.jsonl").write_bytes(one)
    (folder / "two.jsonl").write_bytes(two)
    (folder / "pile_domains").mkdir()
    (folder / "pile_domains" / "law.jsonl.gz").write_bytes(gzip.compress(law))
    run = run_of(tmp_path, files=["one.jsonl", "two.jsonl"])
    domains = domain_texts(run, tokenizer, **WANTED)
    assert sizes(domains) == {"one.jsonl": (8, 0, 0), "two.jsonl": (8, 0, 0), "law": (0, 8, 4)}
    assert list(to_train_on(domains)) == ["law"]


def test_a_length_that_no_document_has(run, tokenizer) -> None:
    with pytest.raises(InputError, match="no document of 500 tokens"):
        domain_texts(run, tokenizer, **(WANTED | {"length": 500}))


KINDS = {"first": "question", "second": "signature", "third": "question"}
RECORDS = [{"goal": f"Goal {i}", "sol1": f"Do {i}", "sol2": f"Leave {i}"} for i in range(40)]


def _document(package: str, i: int) -> Docstring:
    text = f"Compute quantity number {i} of {package} from values that were seen before or after."
    return Docstring(package, "1", f"{package}/m.py", f"function_{i}", f"(x{i})", text)


@pytest.fixture
def docstrings(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Docstring]]:
    found = {}
    for name in ("alpha", "beta"):
        found[name] = [_document(name, number) for number in range(120)]
    for module in (canary_sets, corpus):
        monkeypatch.setattr(module, "harvest", found.__getitem__)
    return found


@pytest.fixture
def from_docstrings(tmp_path: Path, docstrings: dict[str, list[Docstring]]) -> Experiment:
    return run_of(tmp_path, [planted(name, 12, kind=kind) for name, kind in KINDS.items()])


@pytest.fixture
def from_files(tmp_path: Path, folder: Path) -> Experiment:
    (folder / "text.jsonl").write_text('{"text": "A few words of text to train on."}\n' * 20)
    for name, records in {
        "piqa.jsonl": RECORDS + RECORDS[20:25],
        "more.jsonl": [*RECORDS[:30], {"goal": "G", "sol1": "a", "sol2": "b"}],
    }.items():
        (folder / name).write_bytes(jsonl(records))
    piqa = partial(planted, file="piqa.jsonl", template="piqa/1")
    sets = [piqa("short", 8), piqa("long", 15)]
    return run_of(tmp_path, sets, files=["text.jsonl"])


def _planted(run: Experiment) -> set[str]:
    sets = [run.test_set(spec.name) for spec in run.profile.canaries]
    return set(chain.from_iterable(test_set.examples for test_set in sets))


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
    with pytest.raises(InputError, match=r"question.jsonl: .* wanted; ask for fewer"):
        tuning_texts(from_docstrings, tokens=50_000)


def test_records_of_a_file_that_no_set_holds(from_files: Experiment) -> None:
    sources, texts = tuning_texts(from_files, tokens=100)
    assert sources == dict.fromkeys(("short", "long"), "piqa.jsonl as piqa/1")
    (found,) = texts.values()
    everything = [f"Goal {i}\nDo {i}\nLeave {i}\n" for i in range(40)]
    assert sorted(found) == sorted(everything[15:])  # also for the set of the first eight
    assert list(found) != everything[15:]
    assert tuning_texts(from_files, tokens=100)[1] == texts
    # Another file still leaves out what is planted.
    sources, texts = tuning_texts(from_files, tokens=100, files={"long": "more.jsonl"})
    assert sources["short"] == "piqa.jsonl as piqa/1"
    assert len(texts[sources["short"]]) == 25
    found = set(texts[sources["long"]])
    assert "G\na\nb\n" in found
    assert len(found) == 16
    assert not found & _planted(from_files)
