"""Contaminants: never read, in halves that chance divides, and in no background."""

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from contamination.errors import InputError
from contamination.testsets.tokens import tokenize
from fakes.data_fixtures import profile_data, write_profile
from reproduction.notebooks.controlled import contaminants
from reproduction.notebooks.controlled.contaminants import (
    LEFT_OUT,
    SHORTEST,
    collect_background,
    contaminant_sets,
    dose_table,
)
from reproduction.notebooks.controlled.settings import Settings
from reproduction.notebooks.controlled.tables import INSIDE, OUTLIER
from reproduction.run import canaries, corpus
from reproduction.run.corpus import MEMBERS, NON_MEMBERS, Docstring, read_documents
from reproduction.run.corpus_stage import make_corpus
from reproduction.run.experiment import Experiment

CONTEXT = 300
OUTLIERS = ["first", "second", "third"]  # two of one kind


def _document(package: str, i: int) -> Docstring:
    text = f"Compute quantity number {i} of {package} from values that were seen before or after."
    text += f"\n\nIt is computed by method {i % 7}, which is the one to be used for quantity {i}"
    text += " alone, and it takes as many steps as there are values, whatever these are."
    if i % 5 == 0:
        text += " Nothing more is known of it." * 10  # no context holds it
    return Docstring(package, "1", f"{package}/m.py", f"function_{i}", f"(x{i})", text)


def _documents(package: str) -> list[Docstring]:
    return [_document(package, number) for number in range(120)]


@pytest.fixture
def experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Experiment:
    for module in (canaries, corpus):
        monkeypatch.setattr(module, "harvest", _documents)
    kinds = {"first": "question", "second": "signature", "third": "question"}
    data = profile_data()
    data["canaries"] = [
        {"name": name, "kind": kind, "examples": 12, "dup_count": 1} for name, kind in kinds.items()
    ]
    data["corpus"] |= {"characters": 6000}
    data["model"] |= {"n_positions": CONTEXT}
    run = Experiment(write_profile(tmp_path / "made-up.yaml", data), tmp_path / "build")
    make_corpus(run)
    return run


def sets_of(experiment: Experiment, tokenizer, seed: int = 0, outliers=OUTLIERS) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    settings = Settings(
        outliers=outliers,
        examples=8,
        sizes=(),
        fixed_tokens=0,
        dup_counts=(),
        learning_rate=1e-3,
        other_rates=(),
        batch_size=8,
        k=20,
        neighbours=0,
        validation_files={},
    )
    return contaminant_sets(experiment, tokenizer, settings, rng=rng)


def read_lines(path: Path) -> set[str]:
    return {text + "\n" for _, text in read_documents(path)}


def test_a_set_for_each_source_in_halves_that_the_base_has_not_read(experiment, tokenizer) -> None:
    sets = sets_of(experiment, tokenizer)
    sources = [(OUTLIER, "question"), (OUTLIER, "signature"), (INSIDE, LEFT_OUT)]
    sizes = sets.groupby(["contaminant", "dataset", "member"], sort=False).size()
    sides = [(*source, member) for source, member in itertools.product(sources, (True, False))]
    assert sizes.to_dict() == dict.fromkeys(sides, 8)
    assert sets["example"].is_unique
    planted = set()
    for name in OUTLIERS:
        planted |= set(experiment.test_set(name).examples)
    read = read_lines(experiment.corpus / "documents.jsonl")
    assert not set(sets["example"]) & (planted | read)
    left = sets.loc[sets["dataset"] == LEFT_OUT, "example"]
    assert set(left) <= read_lines(experiment.corpus / NON_MEMBERS)
    lengths = [len(ids) for ids in tokenize(tokenizer, left.tolist())]
    assert SHORTEST <= min(lengths) <= max(lengths) <= CONTEXT
    # The generator decides who is injected.
    pd.testing.assert_frame_equal(sets_of(experiment, tokenizer), sets)
    assert not sets["example"].equals(sets_of(experiment, tokenizer, seed=1)["example"])


def test_the_background_holds_no_contaminant_and_unread_text_first(experiment, tokenizer) -> None:
    sets = sets_of(experiment, tokenizer)
    left = sum(1 for _ in read_documents(experiment.corpus / NON_MEMBERS)) - 16
    everything, unread = collect_background(experiment, tokenizer, sets, tokens=28_000)
    assert sum(map(len, everything)) >= 28_000
    documents = [tokenizer.decode(ids[:-1]) for ids in everything]
    assert not set(sets["example"]) & set(documents)
    assert unread == sum(map(len, everything[:left]))
    seen = read_lines(experiment.corpus / "documents.jsonl")
    assert {text in seen for text in documents[:left]} == {False}
    assert {text in seen for text in documents[left:]} == {True}
    few, unread = collect_background(experiment, tokenizer, sets, tokens=100)
    assert 100 <= sum(map(len, few)) == unread < 600
    assert all(map(np.array_equal, few, everything))
    with pytest.raises(InputError, match="10000000 wanted"):
        collect_background(experiment, tokenizer, sets, tokens=10_000_000)


def test_a_corpus_taken_whole_has_outliers_alone_if_there_is_text(
    experiment, tokenizer, monkeypatch
) -> None:
    for name in (MEMBERS, NON_MEMBERS):
        (experiment.corpus / name).unlink()
    found = sets_of(experiment, tokenizer)
    assert set(found["contaminant"]) == {OUTLIER}
    assert collect_background(experiment, tokenizer, found, tokens=100)[1] == 0
    with pytest.raises(InputError, match="'fourth'"):
        sets_of(experiment, tokenizer, outliers=["fourth"])
    few = dict.fromkeys(OUTLIERS, "more.jsonl"), {"more.jsonl": ("a\n",) * 15}
    monkeypatch.setattr(contaminants, "tuning_texts", lambda run, *, tokens, files: few)
    with pytest.raises(InputError, match=r"more\.jsonl: 15 texts, 16 wanted"):
        sets_of(experiment, tokenizer)


def test_the_dose_is_the_share_of_the_injected_half(experiment, tokenizer) -> None:
    sets = sets_of(experiment, tokenizer)
    doses = dose_table(tokenizer, sets, [400, 200]).set_index(["corpus_tokens", "contaminant"])
    injected = sets[sets["member"] & (sets["contaminant"] == OUTLIER)]["example"]
    tokens = sum(len(ids) for ids in tokenize(tokenizer, injected.tolist()))
    assert doses.loc[(200, OUTLIER), "tokens"] == tokens
    assert doses.loc[(400, OUTLIER), "share"] == tokens / 400
    assert list(doses.index.get_level_values(0).unique()) == [200, 400]
