"""Books with known truth: no document on two sides, validation apart from audit, and verdicts."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from contamination.membership.books import SCORES
from contamination.testsets.sources import DATA_VARIABLE
from fakes.data_fixtures import WORDS, make_distribution, profile_data, write_profile
from reproduction.notebooks.books.measure import made_books
from reproduction.notebooks.books.tables import (
    AGAIN,
    BOOK_COLUMNS,
    ELSEWHERE,
    ONCE,
    UNREAD,
    audit_made_books,
    validation_layout,
    validations,
    verdicts,
)
from reproduction.run.corpus_stage import make_corpus
from reproduction.run.experiment import Experiment
from reproduction.run.members import MEMBERS, NON_MEMBERS


def sentence(name: str, number: int) -> str:
    words = np.random.default_rng(number).choice(WORDS, 30)
    return f"{name}{number} is about {' '.join(words)} and nothing else."


def source_of(name: str, documents: int) -> str:
    texts = [sentence(name, i) for i in range(documents)]
    return "".join(f'def f{i}():\n    """{text}"""\n' for i, text in enumerate(texts))


def run_of(tmp_path: Path, **corpus: object) -> Experiment:
    folder = tmp_path / "data"
    folder.mkdir(exist_ok=True)
    (folder / "c.jsonl").write_text("".join(f'{{"text": "canary {i}"}}\n' for i in range(3)))
    data = profile_data() | {"corpus": {"vocabulary": 300, **corpus}}
    data["canaries"] = [
        {"name": "c", "file": "c.jsonl", "template": "text/1", "examples": 3, "dup_count": 1}
    ]
    found = Experiment(write_profile(tmp_path / "made-up.yaml", data), tmp_path / "build")
    make_corpus(found)
    return found


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Experiment:
    """Two packages of which about half is the corpus, and one that is held out."""
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path / "data"))
    site = tmp_path / "site"
    for name, documents in (("alpha", 60), ("gamma", 60), ("beta", 30)):
        make_distribution(site, name, {f"{name}.py": source_of(name, documents)})
    monkeypatch.syspath_prepend(str(site))
    return run_of(tmp_path, packages=["alpha", "gamma"], held_out=["beta"], characters=10_000)


def test_books_are_bundles_of_one_source_and_one_side(run: Experiment) -> None:
    books = made_books(run, words=50, each=2)
    expected = {(ONCE, s, False): 2 for s in ("alpha", "gamma")}
    for use in (True, False):
        expected |= {(t, s, use): 2 for t in (AGAIN, UNREAD) for s in ("alpha", "gamma")}
        expected |= {(ELSEWHERE, "beta", use): 2}
    assert books.groupby(["truth", "source", "validation"]).size().to_dict() == expected
    assert list(dict.fromkeys(books["truth"])) == [AGAIN, ONCE, UNREAD, ELSEWHERE]
    assert books["book"].is_unique
    assert {len(text.split()) for text in books["text"]} == {50}
    files = {MEMBERS: {AGAIN, ONCE}, NON_MEMBERS: {UNREAD}}
    for name, truths in files.items():
        text = (run.corpus / name).read_text(encoding="utf-8")
        for book in books.itertuples():
            first = book.text.split()[0]  # a name of its own, such as alpha17
            assert first.startswith(book.source)
            assert (f'"{first} ' in text) == (book.truth in truths)
    firsts = [word for text in books["text"] for word in text.split() if word[-1].isdigit()]
    assert len(firsts) == len(set(firsts))  # no document in two books


LEVELS = {AGAIN: 4.0, ONCE: 2.2, UNREAD: 2.0, ELSEWHERE: -3.0}


@pytest.fixture(scope="module")
def made() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two domains that score alike by themselves: what is elsewhere is less likely as a whole."""
    rng = np.random.default_rng(0)
    books = pd.DataFrame(
        [(f"{t} {i}", "s", t, t != ONCE and i % 2 == 0) for t in LEVELS for i in range(20)],
        columns=["book", "source", "truth", "validation"],
    )
    rows = [
        (book.book, i, *rng.normal(LEVELS[book.truth], 1, len(SCORES)))
        for book in books.itertuples()
        for i in range(12)
    ]
    return books, pd.DataFrame(rows, columns=["book", "snippet", *SCORES])


def test_foreign_validation_books_accuse_the_unread(made) -> None:
    """The lesson of the notebook, on scores that are made up to have it."""
    books, scored = made
    table = audit_made_books(books, scored, validations(books, scored))
    assert list(table) == list(BOOK_COLUMNS)
    assert not table.isna().any(axis=None)
    assert not set(table["book"]) & set(books.loc[books["validation"], "book"])
    assert len(table) == 2 * (~books["validation"]).sum()
    found = verdicts(table, accused=0.5, alpha=0.1).set_index(["validation", "truth"])
    assert found.loc[("same packages", AGAIN), "accused"] == "10/10"
    assert found.loc[("same packages", UNREAD), "accused"] == "0/10"
    assert found.loc[("other packages", AGAIN), "accused"] == "10/10"
    assert int(found.loc[("other packages", UNREAD), "accused"].partition("/")[0]) >= 8
    assert found.loc[("other packages", UNREAD), "rejected"] == "10/10"
    elsewhere = found.loc[("same packages", ELSEWHERE), ["books", "rate", "rejected"]]
    assert elsewhere.tolist() == [10, "0%", "0/10"]
    assert found.loc[("same packages", ONCE), "books"] == 20
    thresholds = table.groupby("validation")["threshold"].first()
    assert thresholds["other packages"] < thresholds["same packages"]


def test_the_layout_of_the_validations() -> None:
    values = {"near": 0.5, "far": 0.6}
    rows = [(kind, score, auc, 0.4, 0.9) for kind, auc in values.items() for score in SCORES]
    aucs = pd.DataFrame(rows, columns=["validation", "score", "auc", "auc_low", "auc_high"])
    rows = [("Figure 3", "Min-20% Prob", 0.88), ("Figure 3", "Zlib", 0.8), ("Table 1", "PPL", 0.6)]
    shown = validation_layout(aucs, pd.DataFrame(rows, columns=["table", "method", "value"]))
    near, far = "0.50 (0.40 to 0.90)", "0.60 (0.40 to 0.90)"
    published = {"Min-20%": "0.88", "PPL": "—", "Zlib": "0.80", "Lowercase": "—"}
    assert shown.values.tolist() == [[name, near, far, one] for name, one in published.items()]
    assert list(shown) == ["Score", "Unread: near", "Unread: far", "Published"]
