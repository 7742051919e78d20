"""The passes over released checkpoints: what they score, and what becomes of what cannot be had."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from contamination.errors import InputError
from contamination.randomness import random_stream
from contamination.scoring.store import open_store
from contamination.testsets.lines import open_lines
from fakes import checkpoint_run
from fakes.checkpoint_run import SEED, SETS, MadeUpCheckpoints
from fakes.made_up_scorer import log_probs_of
from reproduction.notebooks.checkpoints.measure import ABLATION, STORES, TABLE


def stores(made_up: MadeUpCheckpoints) -> Path:
    return made_up.folder / "build" / STORES


def test_every_cell_has_a_store_of_what_the_paper_asks_for(made_up) -> None:
    tables = made_up.measure()
    cells = tables["cells"]
    assert (cells["status"] == "ok").all()
    assert made_up.opened == ["reader", "old"]
    assert len(cells[cells["purpose"] == TABLE]) == 2 * 3 * 4
    for cell in cells.to_dict("records"):
        store = open_store(stores(made_up) / cell["store"])
        header = store.header
        lines = open_lines(cell["dataset"])
        assert header.template == "line/1"
        assert header.dataset_revision == lines.revision
        if cell["test"] == "successor":
            assert (header.kind, header.shards) == ("successors", len(lines.examples) // 10)
            continue
        whole = cell["test"] == "permutation"
        assert header.shards == (1 if whole else cell["shards"])
        assert cell["permutations"] == (19 if whole else 9)
        assert np.isfinite(store.log_probs(cell["permutations"])).all()
    ablation = cells[cells["purpose"] == ABLATION]
    assert set(ablation["model"]) == {"reader"}  # the control has no part in it
    assert sorted(ablation["shards"]) == [3, 3, 6, 6, 12, 12]
    kept = tables["sets"]
    assert kept["dataset"].tolist() == [made_up.sets[name] for name in SETS]
    assert kept["examples"].tolist() == [24] * 4


def test_min_k_of_every_span_by_brute_force(made_up) -> None:
    """Of the control, whose numbers are known without a network."""
    spans = made_up.measure(sets=[], ablation_sets=[])["spans"]
    assert (spans["status"] == "ok").all()
    for name in ("often", "unread", "twice", "other"):
        path = made_up.sets[name]
        stream = np.concatenate(
            [made_up.tokenizer(line)["input_ids"] for line in open_lines(path).examples]
        )
        starts = random_stream(SEED, "spans of a set", open_lines(path).revision).choice(
            len(stream) - 47, 8, replace=False
        )
        spans_of_set = [stream[i : i + 48] for i in sorted(starts)]
        expected = [np.sort(log_probs_of(ids)[1:])[:9].mean() for ids in spans_of_set]
        own = spans[(spans["model"] == "old") & (spans["dataset"] == path)]
        assert own["score"].tolist() == pytest.approx(expected, rel=1e-6)


def test_a_second_run_scores_nothing_again(made_up) -> None:
    first = made_up.measure()
    assert all(scorer.scored for scorer in made_up.scorers.values())
    again = made_up.measure()
    assert not any(scorer.scored for scorer in made_up.scorers.values())
    for name, table in first.items():
        pd.testing.assert_frame_equal(table, again[name])


# --- what goes wrong ------------------------------------------------------------------------------


def test_what_cannot_be_had_is_rows_and_the_others_go_on(made_up) -> None:
    made_up.broken["reader"] = InputError("org/reader: gated; log in")
    Path(made_up.sets["unread"]).unlink()
    tables = made_up.measure()
    assert made_up.opened == ["reader", "old"]
    for name in ("cells", "spans"):
        table = tables[name]
        gone = table["model"] == "reader"
        lost = ~gone & (table["dataset"] == made_up.sets["unread"])
        assert (table.loc[gone, "status"] == "failed: org/reader: gated; log in").all()
        assert table.loc[lost, "status"].str.contains("unread.jsonl: no such file").all()
        assert (table.loc[~gone & ~lost, "status"] == "ok").all()
        assert gone.any() and lost.any() and not (gone | lost).all()
    kept = tables["sets"].set_index("dataset")["status"] == "ok"
    assert kept.to_dict() == {path: name != "unread" for name, path in made_up.sets.items()}


def test_a_set_shorter_than_a_span_has_none(made_up) -> None:
    path = Path(made_up.sets["unread"])
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:4]))
    spans = made_up.measure(sets=[], ablation_sets=[], length=250)["spans"]
    (gone,) = spans[(spans["dataset"] == str(path)) & (spans["model"] == "old")].to_dict("records")
    assert gone["status"] == "failed: unread: it has fewer than the 250 tokens of a span"
    assert np.isnan(gone["score"])
    assert (spans.loc[spans["dataset"] != str(path), "status"] == "ok").all()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"tests": ["exakt"]}, "unknown test 'exakt': choose from permutation"),
        ({"models": "reader"}, "models is 'reader': give a list"),
        ({"controls": ["reader"]}, "models and controls name 'reader' twice"),
        ({"permutations": 0}, "permutations is 0: give"),
        ({"length": 1}, "length 1, spans 8: give at least 2 tokens"),
        ({"spans": 0}, "spans 0: give at least .* 1 span"),
    ],
)
def test_wrong_arguments(made_up, wrong, message) -> None:
    with pytest.raises(InputError, match=message):
        made_up.measure(**wrong)
    assert made_up.opened == []


# --- processes ------------------------------------------------------------------------------------


def test_two_processes_give_the_tables_of_one(made_up, model_directory, tmp_path) -> None:
    alone = made_up.measure()
    two = tmp_path / "two"
    two.mkdir()
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    (two / "sets").symlink_to(tmp_path / "sets")
    launched = subprocess.run(
        [*launcher, "--nproc-per-node", "2", checkpoint_run.__file__, model_directory, two],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert launched.returncode == 0, launched.stderr
    for name, table in alone.items():
        here = table.replace(str(tmp_path / "sets"), str(two / "sets"), regex=True)
        pd.testing.assert_frame_equal(pd.read_parquet(two / f"{name}.parquet"), here)
    shares = [json.loads((two / f"scored-{rank}").read_text()) for rank in range(2)]
    assert all(count > 0 for share in shares for count in share.values())  # both worked
