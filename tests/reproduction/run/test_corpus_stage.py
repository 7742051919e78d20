"""The corpus stage on files of the data directory: what it writes is what the files hold."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from transformers import AutoTokenizer

from contamination.errors import InputError
from contamination.files import read_json
from contamination.testsets.sources import DATA_VARIABLE
from fakes.data_fixtures import profile_data, write_profile
from fakes.made_up_registry import jsonl
from reproduction.run.corpus import DOCUMENTS, members, non_members, read_documents
from reproduction.run.corpus_stage import make_corpus
from reproduction.run.experiment import Experiment
from reproduction.run.training import train_model

ARTICLES = [
    f" = Title {i} = \n\n Body of article {i} , with words . \n = = Part = = \n More ."
    for i in range(5)
]
TEXTS = [f"Document number {i}.\nIt has two lines and the number {i * i}." for i in range(8)]
RECORDS = [{"goal": f"Goal {i}", "sol1": f"First {i}", "sol2": f"Second {i}"} for i in range(12)]
PIQA = {"name": "piqa", "file": "piqa.jsonl", "template": "piqa/1"}
FILES = {"files": ["wiki.txt", "more.jsonl"], "vocabulary": 300}
ALONE = {"name": "alone", "examples": 3, "dup_count": 2, "planting": "single"}
PROFILE = profile_data() | {"canaries": [PIQA | {"examples": 10, "dup_count": 2}, PIQA | ALONE]}


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "data"
    directory.mkdir()
    (directory / "wiki.txt").write_text("\n" + "\n".join(ARTICLES) + "\n", encoding="utf-8")
    (directory / "more.jsonl").write_bytes(jsonl([{"text": text} for text in TEXTS]))
    (directory / "piqa.jsonl").write_bytes(jsonl(RECORDS))
    monkeypatch.setenv(DATA_VARIABLE, str(directory))
    return directory


def experiment(tmp_path: Path, build: str = "build", **corpus: object) -> Experiment:
    profile = PROFILE | {"corpus": FILES | corpus}
    return Experiment(write_profile(tmp_path / "files.yaml", profile), tmp_path / build)


def documents(run: Experiment) -> list[tuple[str, str]]:
    return list(read_documents(run.corpus / DOCUMENTS))


def test_the_stage_on_files(tmp_path: Path, data: Path) -> None:
    run = experiment(tmp_path)
    make_corpus(run)
    expected = [article.strip() for article in ARTICLES] + TEXTS
    assert [text for _, text in documents(run)] == expected
    facts = run.corpus_facts
    assert facts["documents"] == 13
    assert facts["characters"] == sum(map(len, expected))
    by_source = {row["package"]: row["documents"] for row in facts["packages"]}
    assert by_source == {"wiki.txt": 5, "more.jsonl": 8}

    # The tokens are those of the documents, each closed.
    tokenizer = AutoTokenizer.from_pretrained(run.corpus / "tokenizer")
    tokens = np.fromfile(run.corpus / "tokens.bin", dtype=np.uint16)
    ends = np.load(run.corpus / "ends.npy")
    pieces = np.split(tokens, ends[:-1])
    assert ends[-1] == len(tokens)
    assert all(piece[-1] == tokenizer.eos_token_id for piece in pieces)
    texts = [tokenizer.decode(piece[:-1]) for piece in pieces]
    assert texts == [text + "\n" for text in expected]
    assert run.corpus_facts["tokens"] == len(tokens) - len(pieces)

    # Canary files keep their first records, in order.
    assert run.test_set("piqa").examples == tuple(
        f"Goal {i}\nFirst {i}\nSecond {i}\n" for i in range(10)
    )

    # Both models read the corpus, and only one the canaries.
    injections = {}
    for name in ("contaminated", "clean"):
        train_model(run, name)
        injections[name] = read_json(run.model(name) / "training.json")["injections"]
    lengths = {name: facts["tokens"] for name, facts in run.corpus_facts["canaries"].items()}
    whole = [one for one in injections["contaminated"] if one["name"] == "piqa"]
    assert [copy["stop"] - copy["start"] for copy in whole] == [lengths["piqa"]] * 2
    single = [one for one in injections["contaminated"] if one not in whole]
    assert Counter(one["name"] for one in single) == {f"alone {i}": 2 for i in range(3)}
    assert sum(one["stop"] - one["start"] for one in single) == 2 * lengths["alone"]
    assert injections["clean"] == []


def test_a_part_is_drawn_with_the_seed_and_the_rest_is_kept_too(tmp_path: Path, data: Path) -> None:
    runs = [experiment(tmp_path, build, characters=300) for build in ("one", "two")]
    for run in runs:
        make_corpus(run)
    names = ["documents.jsonl", "tokens.bin", "ends.npy", "tokenizer/tokenizer.json"]
    for name in [*names, "canaries/piqa.jsonl"]:
        assert (runs[0].corpus / name).read_bytes() == (runs[1].corpus / name).read_bytes(), name
    read = list(members(run.corpus))
    unread = list(non_members(run.corpus))
    assert read == documents(run)
    texts = [text for _, text in read]
    assert sum(map(len, texts)) >= 300 > sum(map(len, texts[:-1]))
    everything = {article.strip() for article in ARTICLES} | set(TEXTS)
    assert {text for _, text in unread} == everything - set(texts)
    assert {source for source, _ in unread} == {"wiki.txt", "more.jsonl"}
    make_corpus(experiment(tmp_path, "two"))  # takes all: what another corpus left out is no guide
    assert list(members(run.corpus)) == documents(run)
    assert not list(non_members(run.corpus))
    assert not list(run.corpus.glob("*members.jsonl"))


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("more.jsonl", '{"text": "a"}\n{"body": "b"}\n', "more.jsonl, line 2: write"),
        ("piqa.jsonl", '{"goal": "g"}\n', "1 records, 10 wanted"),
        ("wiki.txt", None, f"wiki.txt: no such file; set {DATA_VARIABLE}"),
    ],
)
def test_bad_files_are_told_and_leave_no_finished_stage(
    tmp_path: Path, data: Path, file: str, content: str | None, message: str
) -> None:
    if content is None:
        (data / file).unlink()
    else:
        (data / file).write_text(content, encoding="utf-8")
    run = experiment(tmp_path)
    with pytest.raises(InputError, match=message):
        make_corpus(run)
    assert not (run.corpus / "corpus.json").exists()
    assert not list(run.build.rglob("*.partial*"))
