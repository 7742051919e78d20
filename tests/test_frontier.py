"""The candidates of the study of the frontier: each treats the orderings alike; and its tables."""

import importlib
import itertools
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from contamination.scoring.store_format import Header
from contamination.statistics import centred_successors, successor_scores
from fakes.data_fixtures import ROOT

ORDERS = np.array(list(itertools.permutations(range(5))))


@pytest.fixture(scope="module")
def study() -> Iterator[SimpleNamespace]:
    """Return the modules of benchmarks/frontier by name."""
    folder = str(ROOT / "benchmarks" / "frontier")
    sys.path.insert(0, folder)
    try:
        names = ("candidates", "scored", "tables", "white_box")
        yield SimpleNamespace(**{name: importlib.import_module(name) for name in names})
    finally:
        sys.path.remove(folder)


def relabelled(values: np.ndarray, names: np.ndarray) -> np.ndarray:
    """The same numbers when record i of the shard is called names^-1[i]."""
    return values[np.ix_(*[names] * values.ndim)]


@pytest.mark.parametrize("seed", range(5))
def test_relabelling_the_records_permutes_the_scores_of_pairs(study, seed: int) -> None:
    """Score of ordering o among the relabelled is that of names[o] before: for every o."""
    rng = np.random.default_rng(seed)
    models, names = rng.normal(size=(2, 5, 5)), rng.permutation(5)

    def scores(matrices: np.ndarray, orders: np.ndarray) -> np.ndarray:
        centred = study.candidates.added_sizes(list(matrices), [0.0, 0.0])
        return successor_scores(centred, orders)

    moved = np.stack([relabelled(each, names) for each in models])
    np.testing.assert_allclose(scores(moved, ORDERS), scores(models, names[ORDERS]), atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_relabelling_the_records_permutes_the_scores_of_triples(study, seed: int) -> None:
    rng = np.random.default_rng(seed)
    triples, names = rng.normal(size=(5, 5, 5)), rng.permutation(5)
    place = {tuple(order): i for i, order in enumerate(ORDERS)}
    before = study.candidates.triple_scores(triples)
    after = study.candidates.triple_scores(relabelled(triples, names))
    moved = [place[tuple(names[order])] for order in ORDERS]
    np.testing.assert_allclose(after, before[moved], atol=1e-12)


def test_a_triple_is_worth_what_it_says_beyond_its_last_record(study) -> None:
    """What x_c is worth after any pair plays no role; entries with a record twice neither."""
    values = np.full((4, 4, 4), np.nan)
    for a, b, c in itertools.permutations(range(4), 3):
        values[a, b, c] = 10 * c + (3.0 if (a, b, c) == (0, 1, 2) else 0.0)
    scores = study.candidates.triple_scores(values)
    # x_2 has six pairs before it, whose mean is half a nat.
    assert scores[0] == pytest.approx(3 - 0.5)
    assert scores.max() == scores[0]


def test_models_count_alike_whatever_their_scale(study) -> None:
    rng = np.random.default_rng(1)
    one, other = rng.normal(size=(2, 6, 6))
    added = study.candidates.added_sizes([one, 50 * other], [0.0, 0.0])
    alike = study.candidates.added_sizes([one, other], [0.0, 0.0])
    np.testing.assert_allclose(added, alike)
    silent = study.candidates.added_sizes([one, 1e-9 * other], [0.0, 1e-3])
    centred = centred_successors(one)
    np.testing.assert_allclose(silent, centred / np.nanstd(centred))


def test_companions_follow_the_content_wherever_a_record_stands(study) -> None:
    """Shuffle a shard: each of its records keeps its two companions, none from the shard."""
    texts = [f"record {i}" for i in range(30)]
    bounds = 10, 20
    found = {texts[a]: study.candidates.companions(texts, *bounds, a) for a in range(*bounds)}
    order = [*range(10), *np.random.default_rng(2).permutation(range(10, 20)), *range(20, 30)]
    shuffled = [texts[i] for i in order]
    again = {shuffled[a]: study.candidates.companions(shuffled, *bounds, a) for a in range(*bounds)}
    assert again == found
    assert all(not 10 <= i < 20 for pair in found.values() for i in pair)
    assert all(len(set(pair)) == 2 for pair in found.values())
    assert len({tuple(pair) for pair in found.values()}) > 5  # not the same for all


@pytest.fixture(scope="module")
def network() -> GPT2LMHeadModel:
    torch.manual_seed(0)
    shape = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 8}
    return GPT2LMHeadModel(GPT2Config(vocab_size=20, **shape)).eval()


def test_white_box_scores_by_hand(study, network) -> None:
    """The loss in blocks, the norm by a difference quotient, and a step that lowers the loss."""
    tokens = np.random.default_rng(3).integers(20, size=13)
    before = {name: p.clone() for name, p in network.state_dict().items()}
    negative, flat, after = study.white_box.white_box_scores(network, tokens, 0, 8)
    assert all(torch.equal(p, before[name]) for name, p in network.state_dict().items())
    blocks = [np.concatenate([[0], tokens[:8]]), tokens[7:]]
    total = 0.0
    for block in map(torch.from_numpy, blocks):
        logits = network(block[None, :-1]).logits[0].detach().log_softmax(1)
        total += float(logits.gather(1, block[1:, None]).sum())
    assert negative == pytest.approx(total / 13, abs=1e-5)
    # A short step down the gradient gains the norm times its length.
    assert after > negative
    step, study.white_box.STEP = study.white_box.STEP, 1e-3
    try:
        _, _, near = study.white_box.white_box_scores(network, tokens, 0, 8)
    finally:
        study.white_box.STEP = step
    assert (near - negative) / 1e-3 == pytest.approx(np.exp(-flat), rel=0.02)


def test_smaller_shards_are_blocks_of_the_pairs_that_were_scored(study) -> None:
    """The same pairs, and the tokens that a store of such shards would count."""
    rng = np.random.default_rng(4)
    lengths = tuple(rng.integers(5, 90, size=40).tolist())
    names = ("model", "revision", "set", "revision", "text/1", 0)
    header = Header(*names, 2, lengths, "successors", study.scored.FIRST)
    whole = rng.normal(size=(2, 20, 20))
    store = SimpleNamespace(header=header, successors=lambda shard, b: whole[shard])
    small = study.tables._matrices(store, 32, 10)
    assert len(small) == 4
    np.testing.assert_array_equal(small[3], whole[1, 10:, 10:])
    for b, size in study.tables.PLAIN.values():
        asked = Header(*names, 40 // size, lengths, "successors", b)
        assert study.tables._plain_tokens(store, b, size) == asked.tokens_of(0)


def made_up(study) -> pd.DataFrame:
    """Four sets a count, the default 1 lower with each doubling, `context` another 0.5 below it."""
    rows = []
    for count, number in itertools.product((1, 2, 4), range(4)):
        for candidate, less, passes in ((study.tables.DEFAULT, 0.0, 6.0), ("context", 0.5, 20.0)):
            value = -count - 0.1 * number - less
            rows.append(("choosing", 256, count, candidate, f"{count}-{number}", passes, value))
    columns = [*study.tables.KEYS, "dataset", "passes", "log10_p"]
    return pd.DataFrame(rows, columns=columns)


def test_the_table_has_every_candidate_and_says_what_was_not_run(study) -> None:
    table = study.tables.measured(made_up(study), [("frontier", 256), ("frontier-2", 64)])
    done = table[table["status"] == "ok"].set_index(["candidate", "dup_count"])
    assert set(done.index) == set(itertools.product([study.tables.DEFAULT, "context"], (1, 2, 4)))
    row = done.loc[("context", 4)]
    assert row["mean_log10_p"] == pytest.approx(-4.65)
    assert (row["rejected_05"], row["rejected_001"], row["sets"]) == (1.0, 1.0, 4)
    assert done.loc[(study.tables.DEFAULT, 1), "rejected_05"] == 0.0  # log10 0.05 is -1.30
    missing = table[table["status"] == "not run here"]
    assert set(missing["candidate"]) == set(study.tables.CANDIDATES)
    assert "sizes" not in set(table.loc[table["width"] == 64, "candidate"])


def test_decisions_pair_the_sets(study) -> None:
    found = study.tables.decisions(made_up(study)).set_index(["candidate", "comparison", "copies"])
    row = found.loc[("context", "baseline", "2 and 4")]
    assert (row["against"], row["sets"]) == (study.tables.DEFAULT, 8)
    assert row["difference"] == pytest.approx(-0.5)
    assert row["se"] == pytest.approx(0)
    assert (row["low"], row["high"]) == (pytest.approx(-0.5), pytest.approx(-0.5))


def test_sizes_are_compared_on_the_same_sets(study) -> None:
    rows = [
        (part, width, 4, study.tables.DEFAULT, f"set-{i}", 6.0, -i - less)
        for part in ("choosing", "confirming")
        for width, less in ((64, 0.0), (256, 1.0 if part == "choosing" else 3.0))
        for i in range(3)
    ]
    columns = [*study.tables.KEYS, "dataset", "passes", "log10_p"]
    found = study.tables.size_differences(pd.DataFrame(rows, columns=columns)).set_index("part")
    assert found["sets"].to_dict() == {"both": 6, "choosing": 3, "confirming": 3}
    assert found["difference"].to_dict() == {"both": -2.0, "choosing": -1.0, "confirming": -3.0}
    assert found.loc["choosing", "se"] == 0
    assert found.loc["both", "se"] == pytest.approx(np.std([1, 1, 1, 3, 3, 3], ddof=1) / 6**0.5)
    assert {"smaller", "larger", "dup_count"} <= set(found)


def test_equal_cost_is_the_dearest_plain_test_within_reach(study) -> None:
    one, two, three, four = study.tables.PLAIN
    passes = {one: 6.0, two: 9.0, three: 12.0, four: 19.0, "context": 18.0, "triples": 5.0}
    assert study.tables.equal_cost(passes, "context") == three
    assert study.tables.equal_cost(passes, four) == three
    assert study.tables.equal_cost(passes, "triples") is None


def test_a_run_stands_beside_others_and_takes_the_place_of_itself(study) -> None:
    def rows(*found: tuple[str, str]) -> pd.DataFrame:
        keys = {"part": "choosing", "width": 256, "dup_count": 1}
        return pd.DataFrame([keys | {"candidate": c, "status": s} for c, s in found])

    before = rows(("plain", "ok"), ("triples", "not run here"), ("sizes", "not run here"))
    before = pd.concat([before.assign(run="a"), rows(("plain", "ok")).assign(run="b")])
    new = rows(("plain", "ok"), ("triples", "ok"), ("sizes", "not run here"))
    table = study.tables.beside(before, new, "b")
    assert table[["run", "candidate", "status"]].to_numpy().tolist() == [
        ["a", "plain", "ok"],
        ["a", "sizes", "not run here"],
        ["b", "plain", "ok"],
        ["b", "triples", "ok"],
    ]
