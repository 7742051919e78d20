"""Scores on disk: those of one pass, scored once."""

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from contamination.errors import InputError
from contamination.membership import scores, stored
from contamination.membership.api import membership_scores
from contamination.membership.stored import stored_scores
from contamination.scoring import work
from contamination.testsets.tokens import tokenize
from fakes import measuring_run
from fakes.made_up_scorer import MadeUpScorer

COLUMNS = ("loss", "zlib", "lowercase", "min_k_20")
TEXTS = measuring_run.texts()


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "SMALLEST_PART", 100)  # tokens: several parts


@pytest.fixture
def scorer(tokenizer) -> MadeUpScorer:
    return MadeUpScorer(tokenizer, batch_tokens=64)


def stored_at(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in folder.glob("*")}


def rows_of(folder: Path) -> list[list[int]]:
    return [pd.read_parquet(path).index.tolist() for path in sorted(folder.glob("*"))]


def test_the_table_is_that_of_one_pass(scorer, tmp_path) -> None:
    found = stored_scores(tmp_path, scorer, TEXTS, columns=COLUMNS, neighbours=2, seed=7)
    expected = membership_scores(scorer, TEXTS, columns=COLUMNS, neighbours=2, seed=7)
    pd.testing.assert_frame_equal(found, expected)
    # Members and others, which stand one after the other, come into the same parts.
    parts = rows_of(tmp_path)
    assert len(parts) > 3
    assert sorted(itertools.chain.from_iterable(parts)) == list(range(len(TEXTS)))
    half = len(TEXTS) // 2
    mixed = [min(part) < half <= max(part) for part in parts]
    assert sum(mixed) > len(parts) / 2


def test_what_is_stored_is_not_scored_again(scorer, tmp_path) -> None:
    first = stored_scores(tmp_path, scorer, TEXTS, columns=("loss",))
    before = stored_at(tmp_path)
    count = scorer.scored
    assert count == len(TEXTS)
    again = stored_scores(tmp_path, scorer, TEXTS, columns=("loss",))
    pd.testing.assert_frame_equal(first, again)
    assert stored_at(tmp_path) == before
    assert scorer.scored == count
    # One part is lost, one is damaged and one is short: these alone are scored again.
    lost, damaged, short, *kept = sorted(before)
    rows = sum(map(len, rows_of(tmp_path)[:3]))
    (tmp_path / lost).unlink()
    (tmp_path / damaged).write_bytes(b"PAR1 and no more")
    pd.read_parquet(tmp_path / short)[1:].to_parquet(tmp_path / short)
    pd.testing.assert_frame_equal(first, stored_scores(tmp_path, scorer, TEXTS, columns=("loss",)))
    assert scorer.scored == count + rows
    assert {name: stored_at(tmp_path)[name] for name in kept} == {n: before[n] for n in kept}


def test_an_interrupted_run_keeps_its_finished_parts(scorer, tmp_path, monkeypatch) -> None:
    whole = stored_scores(tmp_path / "whole", scorer, TEXTS, columns=("loss",))
    scored, score = [], membership_scores

    def breaks_down(*arguments, **settings) -> pd.DataFrame:
        if len(scored) == 2:
            raise KeyboardInterrupt
        scored.append(len(settings["numbers"]))
        return score(*arguments, **settings)

    monkeypatch.setattr(stored, "membership_scores", breaks_down)
    with pytest.raises(KeyboardInterrupt):
        stored_scores(tmp_path / "parts", scorer, TEXTS, columns=("loss",))
    assert len(stored_at(tmp_path / "parts")) == 2
    monkeypatch.setattr(stored, "membership_scores", score)
    count = scorer.scored
    found = stored_scores(tmp_path / "parts", scorer, TEXTS, columns=("loss",))
    pd.testing.assert_frame_equal(found, whole)
    assert scorer.scored == count + len(TEXTS) - sum(scored)


@pytest.mark.parametrize(
    "change",
    ["texts", "tokens", "model", {"columns": ("min_k_20",)}, {"seed": 2}, {"neighbours": 2}],
)
def test_parts_of_something_else_are_made_anew(scorer, tokenizer, tmp_path, change) -> None:
    settings = {"columns": ("loss",), "neighbours": 1, "seed": 1}
    stored_scores(tmp_path, scorer, [*TEXTS, *TEXTS], **settings)
    revision = "another" if change == "model" else "weights-1"
    other = MadeUpScorer(tokenizer, batch_tokens=64, revision=revision)
    texts = TEXTS[1:] if change == "texts" else TEXTS
    if change == "tokens":
        texts = [ids[::-1] for ids in tokenize(tokenizer, TEXTS)]
    settings |= change if isinstance(change, dict) else {}
    found = stored_scores(tmp_path, other, texts, **settings)
    pd.testing.assert_frame_equal(found, membership_scores(other, texts, **settings))
    assert sum(map(len, rows_of(tmp_path))) == len(texts)


def test_another_version_of_the_scores_is_scored_anew(scorer, tmp_path, monkeypatch) -> None:
    stored_scores(tmp_path, scorer, TEXTS, columns=("loss",))
    monkeypatch.setattr(scores, "SCORES_VERSION", scores.SCORES_VERSION + 1)
    stored_scores(tmp_path, scorer, TEXTS, columns=("loss",))
    assert scorer.scored == 2 * len(TEXTS)


def test_tokens_of_some_texts_alone_are_refused(scorer, tmp_path) -> None:
    with pytest.raises(InputError, match="1 of 2 texts are given as tokens"):
        stored_scores(tmp_path, scorer, [TEXTS[0], np.array([1, 2])], columns=("loss",))


def test_a_text_that_reads_like_tokens_has_scores_of_its_own(scorer, tmp_path) -> None:
    for texts in (["[1, 2, 3]"], [np.array([1, 2, 3])]):
        found = stored_scores(tmp_path, scorer, texts, columns=("loss",))
        pd.testing.assert_frame_equal(found, membership_scores(scorer, texts, columns=("loss",)))
