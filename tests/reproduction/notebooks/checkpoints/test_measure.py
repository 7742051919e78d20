"""The passes over released checkpoints: what they score, and what becomes of what cannot be had."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from contamination.randomness import random_stream
from contamination.scoring.store import open_store
from contamination.testsets.sources import open_lines
from fakes.checkpoint_run import SEED, SETS
from fakes.made_up_scorer import log_probs_of
from reproduction.notebooks.checkpoints import measure as passes
from reproduction.notebooks.checkpoints.measure import ABLATION, STORES, TABLE

ONLY_SPANS = {"sets": [], "ablation_sets": []}


def test_every_cell_has_a_store_of_what_the_paper_asks_for_once(made_up, monkeypatch) -> None:
    rendered = {made_up.sets["often"]: SimpleNamespace(template="t")}  # by record as well
    monkeypatch.setattr(passes, "entries", lambda: rendered)
    tables = made_up.measure()
    cells = tables["cells"]
    assert made_up.opened == ["reader", "old"]
    assert len(cells[cells["purpose"] == TABLE]) == 2 * (3 + 1) * 4
    assert set(cells.loc[cells["segmentation"] == "record", "dataset"]) == set(rendered)
    for cell in cells.to_dict("records"):
        store = open_store(made_up.folder / "build" / STORES / cell["store"])
        by_line = cell["segmentation"] == "line"
        opened = made_up.open_set(cell["dataset"], max_records=None, lines=by_line)
        header, kind = store.header, "line/1" if by_line else "{t}\n"
        assert (header.template, header.dataset_revision) == (kind, opened.revision)
        if cell["test"] == "successor":
            assert (header.kind, header.shards) == ("successors", len(opened.examples) // 10)
            continue
        whole = cell["test"] == "permutation"
        assert header.shards == (1 if whole else cell["shards"])
        assert cell["permutations"] == (19 if whole else 9)
        assert np.isfinite(store.log_probs(cell["permutations"])).all()
    ablation = cells[cells["purpose"] == ABLATION]
    assert set(ablation["model"]) == {"reader"}  # the control has no part in it
    assert sorted(ablation["shards"]) == [3, 3, 6, 6, 12, 12]
    assert tables["sets"]["dataset"].tolist() == [*(made_up.sets[name] for name in SETS), *rendered]
    assert tables["sets"]["examples"].tolist() == [24] * 5
    assert all(scorer.scored for scorer in made_up.scorers.values())
    again = made_up.measure()
    assert not any(scorer.scored for scorer in made_up.scorers.values())
    for name, table in tables.items():
        pd.testing.assert_frame_equal(table, again[name])


def test_min_k_of_every_span_by_brute_force(made_up) -> None:
    """Of the control, whose numbers are known without a network."""
    spans = made_up.measure(**ONLY_SPANS)["spans"]
    assert (spans["status"] == "ok").all()
    for path in made_up.sets.values():
        lines = open_lines(path)
        stream = np.concatenate([made_up.tokenizer(one)["input_ids"] for one in lines.examples])
        rng = random_stream(SEED, "spans of a set", lines.revision)
        starts = sorted(rng.choice(len(stream) - 47, 8, replace=False))
        drawn = [stream[i : i + 48] for i in starts]
        expected = [np.sort(log_probs_of(ids)[1:])[:9].mean() for ids in drawn]
        own = spans[(spans["model"] == "old") & (spans["dataset"] == path)]
        assert own["score"].tolist() == pytest.approx(expected, rel=1e-6)
