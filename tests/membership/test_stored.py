"""Scores on disk: those of one pass, scored once, by however many processes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from contamination.membership import stored
from contamination.membership.api import membership_scores, score_tokens
from contamination.membership.stored import stored_scores, stored_token_scores
from contamination.scoring import score as scoring
from contamination.testsets.tokens import tokenize
from fakes import measuring_run
from fakes.made_up_scorer import MadeUpScorer

COLUMNS = ("loss", "zlib", "lowercase", "min_k_20")
TEXTS = measuring_run.texts()


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "SMALLEST_PART", measuring_run.SMALLEST_PART)


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
    assert sorted(row for part in parts for row in part) == list(range(len(TEXTS)))
    halves = [{row < len(TEXTS) // 2 for row in part} for part in parts]
    assert sum(len(half) == 2 for half in halves) > len(parts) / 2


def test_tokens_are_scored_as_they_are(scorer, tmp_path) -> None:
    sequences = tokenize(scorer.tokenizer, TEXTS)
    found = stored_token_scores(tmp_path, scorer, sequences, ["loss", "min_k_20"])
    pd.testing.assert_frame_equal(found, score_tokens(scorer, sequences, ["loss", "min_k_20"]))
    count = scorer.scored
    sequences[5] = sequences[5][::-1]
    stored_token_scores(tmp_path, scorer, sequences, ["loss", "min_k_20"])
    assert scorer.scored == count + len(TEXTS)


def test_what_is_stored_is_not_scored_again(scorer, tmp_path) -> None:
    first = stored_scores(tmp_path, scorer, TEXTS, columns=("loss",))
    before, count = stored_at(tmp_path), scorer.scored
    assert count == len(TEXTS)
    again = stored_scores(tmp_path, scorer, TEXTS, columns=("loss",))
    pd.testing.assert_frame_equal(first, again)
    assert (stored_at(tmp_path), scorer.scored) == (before, count)
    # One part is lost and one is damaged: these alone are scored again.
    lost, damaged, *kept = sorted(before)
    rows = sum(map(len, rows_of(tmp_path)[:2]))
    (tmp_path / lost).unlink()
    (tmp_path / damaged).write_bytes(b"PAR1 and no more")
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


@pytest.mark.parametrize("change", ["texts", "model", "columns", "seed", "neighbours"])
def test_parts_of_something_else_are_made_anew(scorer, tokenizer, tmp_path, change) -> None:
    settings = {"columns": ("loss",), "neighbours": 1, "seed": 1}
    stored_scores(tmp_path, scorer, [*TEXTS, *TEXTS], **settings)
    other = MadeUpScorer(tokenizer, batch_tokens=64)
    texts = TEXTS[1:] if change == "texts" else TEXTS
    if change == "model":
        other.revision = "another"
    settings |= {"columns": {"columns": ("min_k_20",)}, "seed": {"seed": 2}}.get(change, {})
    settings |= {"neighbours": 2} if change == "neighbours" else {}
    found = stored_scores(tmp_path, other, texts, **settings)
    pd.testing.assert_frame_equal(found, membership_scores(other, texts, **settings))
    assert sum(map(len, rows_of(tmp_path))) == len(texts)


def test_two_processes_give_what_one_gives(model_directory, tmp_path) -> None:
    """Real processes, a real network: the same bytes; a failure of one is everybody's."""
    one, two = tmp_path / "one", tmp_path / "two"
    (tmp_path / "two").mkdir()
    alone = json.loads(json.dumps(measuring_run.run(model_directory, one)))
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    launched = subprocess.run(
        [*launcher, "--nproc-per-node", "2", measuring_run.__file__, model_directory, two],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert launched.returncode == 0, launched.stderr
    first, second = (json.loads((two / f"seen-{rank}.json").read_text()) for rank in range(2))
    assert first["table"] == second["table"] == alone["table"]
    for folder in ("parts", "spread", "large"):
        contents = {path.name: path.read_bytes() for path in (one / folder).iterdir()}
        assert {path.name: path.read_bytes() for path in (two / folder).iterdir()} == contents
    assert len(contents) > 3
    squares = [i * i for i in range(measuring_run.TASKS)]
    assert first["dealt"] == second["dealt"]
    assert first["dealt"] == [[value, i % 2] for i, value in enumerate(squares)]
    assert alone["dealt"] == [[value, 0] for value in squares]
    assert second["problems"] == alone["problems"] == ["no such model"] * 2
    assert first["problems"] == ["process 1 failed: no such model"] * 2
    assert (first["spread"], second["spread"]) == (alone["spread"], 0)
    assert alone["large"] == [None, True]
    assert (first["large"], second["large"]) == (["auto", True], ["auto", False])
    assert np.isfinite(alone["table"]["neighbour"]).all()
