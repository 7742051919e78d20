"""Who has read what: the domains of a divided corpus, of a whole one, and of text beside it."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from contamination.errors import InputError
from contamination.testsets.sources import DATA_VARIABLE
from contamination.testsets.tokens import tokenize
from fakes.data_fixtures import WORDS, make_distribution, profile_data, write_profile
from fakes.made_up_registry import jsonl
from reproduction.run.corpus_stage import make_corpus
from reproduction.run.domain_texts import Domain, domain_texts, to_train_on
from reproduction.run.experiment import Experiment
from reproduction.run.members import read_documents

LENGTH = 24
WANTED = {"length": LENGTH, "texts": 8, "spare": 4}


def sentence(name: str, number: int) -> str:
    words = np.random.default_rng(number).choice(WORDS, 30)
    return f"{name} number {number} about {' '.join(words)} and nothing else."


def module(name: str, documents: int) -> str:
    texts = [sentence(name, i) for i in range(documents)]
    return "".join(f'def f{i}():\n    """{text}"""\n' for i, text in enumerate(texts))


def run_of(tmp_path: Path, canaries: Path, **corpus: object) -> Experiment:
    data = profile_data() | {"corpus": {"vocabulary": 300, **corpus}}
    data["canaries"] = [
        {"name": "c", "file": canaries.name, "template": "text/1", "examples": 3, "dup_count": 1}
    ]
    found = Experiment(write_profile(tmp_path / "made-up.yaml", data), tmp_path / "build")
    make_corpus(found)
    return found


@pytest.fixture
def canaries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path / "data"))
    (tmp_path / "data").mkdir()
    path = tmp_path / "data" / "canaries.jsonl"
    path.write_bytes(jsonl([{"text": f"canary {i}"} for i in range(3)]))
    return path


@pytest.fixture
def run(tmp_path: Path, canaries: Path, monkeypatch: pytest.MonkeyPatch) -> Experiment:
    """Two packages of which about half is the corpus, and one that is held out."""
    site = tmp_path / "site"
    for name, documents in (("alpha", 60), ("gamma", 60), ("beta", 30)):
        source = module(name, documents)
        if name == "beta":  # what the corpus holds, too, is no non-member
            source = module("alpha", 60).replace("def f", "def g") + source
        make_distribution(site, name, {f"{name}.py": source})
    monkeypatch.syspath_prepend(str(site))
    corpus = {"packages": ["alpha", "gamma"], "held_out": ["beta"], "characters": 10_000}
    return run_of(tmp_path, canaries, **corpus)


@pytest.fixture
def domains(run: Experiment, tokenizer) -> dict[str, Domain]:
    return domain_texts(run, tokenizer, **WANTED)


def mirror(tmp_path: Path, name: str, lines: list[str]) -> Path:
    path = tmp_path / "data" / "pile_domains" / f"{name}.jsonl.gz"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress("".join(line + "\n" for line in lines).encode()))
    return path


def test_members_are_what_the_corpus_has_and_nothing_else_is(run, domains, tokenizer) -> None:
    documents = list(read_documents(run.corpus / "documents.jsonl"))
    read = {
        name: {
            tuple(ids[:LENGTH])
            for ids in tokenize(tokenizer, [t for s, t in documents if s == name])
        }
        for name in ("alpha", "gamma")
    }
    everything = set().union(*read.values())
    known = set()
    for name, domain in domains.items():
        sides = [
            {tuple(ids) for ids in side}
            for side in (domain.members, domain.non_members, domain.spare)
        ]
        assert sides[0] <= read.get(name, set())
        assert not (sides[1] | sides[2]) & everything
        assert sum(map(len, sides)) == len(set().union(*sides))
        assert not known & set().union(*sides)
        known |= set().union(*sides)


def test_text_of_a_package_that_the_corpus_holds_is_no_non_member(domains, tokenizer) -> None:
    for ids in (*domains["beta"].non_members, *domains["beta"].spare):
        text = tokenizer.decode(ids)
        number = int(text.split(" number ")[1].split()[0])
        assert sentence("beta", number).startswith(text)


def test_a_domain_with_few_non_members_has_as_few_members(run, tokenizer) -> None:
    path = run.corpus / "non_members.jsonl"
    lines = path.read_text().splitlines()
    alpha = [line for line in lines if '"alpha"' in line]
    path.write_text("\n".join(alpha[:3]) + "\n")
    domains = domain_texts(run, tokenizer, **WANTED)
    assert [len(domains["alpha"].members), len(domains["alpha"].non_members)] == [3, 3]
    assert (len(domains["gamma"].members), domains["gamma"].non_members) == (8, ())
    assert list(to_train_on(domains)) == ["beta"]  # since no domain of the corpus has any to spare


def test_each_domain_has_texts_of_one_length_and_the_corpus_is_trained_on_first(domains) -> None:
    sizes = {n: (len(d.members), len(d.non_members), len(d.spare)) for n, d in domains.items()}
    assert sizes == {"alpha": (8, 8, 4), "gamma": (8, 8, 4), "beta": (0, 8, 4)}
    for domain in domains.values():
        lengths = {len(ids) for ids in (*domain.members, *domain.non_members, *domain.spare)}
        assert lengths == {LENGTH}
    assert list(to_train_on(domains)) == ["alpha", "gamma"]
    assert to_train_on(domains)["alpha"] is domains["alpha"].spare
    assert to_train_on({"alpha": Domain(members=domains["alpha"].members)}) == {}


def test_a_whole_corpus_has_no_non_members_but_the_mirror(
    tmp_path: Path, canaries: Path, tokenizer
) -> None:
    for name in ("one", "two"):
        lines = jsonl([{"text": sentence(name, i)} for i in range(20)])
        (canaries.parent / f"{name}.jsonl").write_bytes(lines)
    mirror(tmp_path, "law", [json.dumps({"text": sentence("law", i)}) for i in range(20)])
    run = run_of(tmp_path, canaries, files=["one.jsonl", "two.jsonl"])
    domains = domain_texts(run, tokenizer, **WANTED)
    sizes = {n: (len(d.members), len(d.non_members), len(d.spare)) for n, d in domains.items()}
    assert sizes == {"one.jsonl": (8, 0, 0), "two.jsonl": (8, 0, 0), "law": (0, 8, 4)}
    assert list(to_train_on(domains)) == ["law"]


def test_arguments_that_cannot_be_and_no_corpus(run, tokenizer) -> None:
    for wrong in ({"length": 1}, {"texts": 0}, {"spare": 0}):
        with pytest.raises(InputError, match="give at least 2 tokens and 1 text each"):
            domain_texts(run, tokenizer, **(WANTED | wrong))
    with pytest.raises(InputError, match="no document of 500 tokens; lower `length`"):
        domain_texts(run, tokenizer, **(WANTED | {"length": 500}))
    (run.corpus / "corpus.json").unlink()
    with pytest.raises(InputError, match="the corpus stage first"):
        domain_texts(run, tokenizer, **WANTED)
