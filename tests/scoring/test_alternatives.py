"""Scoring all arrangements of items: the numbers of plain scoring, resumed to the same bytes."""

from contextlib import suppress

import numpy as np
import pytest

from contamination.errors import InputError
from contamination.scoring import score as scoring
from contamination.scoring.alternatives import (
    alternative_workload,
    score_alternatives,
    token_groups,
)
from contamination.scoring.loading import ModelSource
from contamination.scoring.local import TransformersScorer
from contamination.scoring.store import open_store
from contamination.scoring.store_sums import SummedStore, sum_store
from contamination.testsets.alternatives import AlternativeSet, option_alternatives
from contamination.testsets.example_set import make_test_set
from contamination.testsets.tokens import tokenize
from fakes.made_up_processes import one_after_the_other
from fakes.made_up_scorer import Breakdown, MadeUpScorer, log_probs_of
from fakes.made_up_store import contents

WORDS = ["apple", "river", "stone", "cloud", "lamp", "green", "tower", "quiet", "orbit", "maple"]


def quiz(items: int = 8) -> AlternativeSet:
    """Items of two, three and four options, and a last one that does not move."""
    records = [
        {
            "question": f"Which {WORDS[i % 10]}?",
            "choices": [f"{WORDS[(i + 3 * j) % 10]} {WORDS[i % 7]}" for j in range(2 + i % 3)],
            "answer": i % 2,
        }
        for i in range(items)
    ]
    records.append({"question": "How many?", "choices": ["1", "2"], "answer": 0})
    test_set = make_test_set("quiz", [("", r) for r in records], "{{}}", "quiz.jsonl")
    return option_alternatives(test_set, seed=0, permutations=5)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Cut a run into many parts, so that there is something to interrupt."""
    monkeypatch.setattr(scoring, "SMALLEST_PART", 100)


def run(scorer, directory, alternatives: AlternativeSet | None = None, **changes):
    settings = {"model": "m", "seed": 1} | changes
    return score_alternatives(alternatives or quiz(), scorer, directory, **settings)


@pytest.fixture
def whole(tokenizer, tmp_path) -> dict[str, bytes]:
    """Return what a run without any interruption leaves in its directory."""
    return contents(run(MadeUpScorer(tokenizer), tmp_path / "whole").directory)


def centred(values: np.ndarray) -> np.ndarray:
    return values - values.mean(axis=1, keepdims=True)


def plain(scorer, alternatives: AlternativeSet) -> np.ndarray:
    """Log-probabilities of all texts of the records that move, each scored by itself."""
    rows = [row for row, n in zip(alternatives.texts, alternatives.distinct, strict=True) if n > 1]
    sums = []
    for row in rows:
        ids = tokenize(scorer.tokenizer, row)
        values = dict(scorer.token_logprobs(ids))
        sums.append([values[i].sum(dtype=np.float64) for i in range(len(row))])
    return np.array(sums)


def test_alternatives_are_compared_as_whole_texts_scored_one_by_one(tokenizer, tmp_path) -> None:
    """The beginning that a record's alternatives share adds the same to each."""
    store = run(MadeUpScorer(tokenizer), tmp_path)
    assert len(store.parts()) > 3
    found = store.alternatives()
    assert found.shape == (8, 6)
    expected = plain(MadeUpScorer(tokenizer), quiz())
    np.testing.assert_allclose(centred(found), centred(expected), atol=1e-3)
    assert np.ptp(found, axis=1).min() > 1


def test_a_network_gives_the_numbers_of_plain_scoring(make_model, tmp_path) -> None:
    source = ModelSource(str(make_model(128)), precision="float32")  # wherever it is run
    scorer = TransformersScorer(source)
    found = run(scorer, tmp_path).alternatives()
    expected = plain(scorer, quiz())
    np.testing.assert_allclose(centred(found), centred(expected), atol=1e-3)


def test_equal_alternatives_are_read_once_and_tie_exactly(tokenizer, tmp_path) -> None:
    """Two options have two arrangements: of six columns, three and three are the same number."""
    scorer = MadeUpScorer(tokenizer)
    found = run(scorer, tmp_path).alternatives()
    for row, texts in zip(found, quiz().texts, strict=False):
        assert len(set(zip(texts, row, strict=True))) == len(set(texts))
    assert scorer.scored == sum([2, 6, 6, 2, 6, 6, 2, 6])
    work = alternative_workload(token_groups(tokenizer, quiz()))
    assert work.sequences == work.windows == scorer.scored


def test_the_cost_is_that_of_each_beginning_once_and_each_rest(tokenizer) -> None:
    alternatives = quiz()
    groups = token_groups(tokenizer, alternatives)
    read = scored = attended = 0
    for group in groups:
        texts = list(dict.fromkeys(alternatives.texts[group.record]))
        ids = [list(i) for i in tokenize(tokenizer, texts)]
        common = len(group.prefix)
        assert all(i[:common] == list(group.prefix) for i in ids)
        assert len({tuple(i[: common + 1]) for i in ids}) > 1 or common + 1 == min(map(len, ids))
        read += common + sum(len(i) - common for i in ids)
        scored += sum(len(i) - common for i in ids)
        attended += sum(range(common + 2))
        attended += sum(sum(range(common + 2, len(i) + 2)) for i in ids)
    work = alternative_workload(groups)
    assert (work.read, work.scored, work.attended) == (read, scored, attended)
    assert work.read < sum(len(i) for i in tokenize(tokenizer, alternatives.texts[0])) * 9


def test_a_store_says_what_it_holds(tokenizer, tmp_path) -> None:
    alternatives = quiz()
    store = run(MadeUpScorer(tokenizer), tmp_path)
    header = open_store(tmp_path).header
    assert header == store.header
    assert (header.kind, header.shards, header.dataset) == ("alternatives", 8, "quiz")
    assert header.dataset_revision == alternatives.revision
    stored = sum(len(part) for part in (g.rests[n] for g in _groups(tokenizer) for n in g.which))
    assert header.tokens_stored(0) == stored
    with pytest.raises(InputError, match="the store holds alternatives, not orderings"):
        store.log_probs(1)


def _groups(tokenizer):
    return token_groups(tokenizer, quiz())


@pytest.mark.parametrize("survives", [0, 3, 11, 20, 33])
def test_an_interrupted_run_ends_with_the_bytes_of_an_uninterrupted_one(
    tokenizer, tmp_path, whole, survives
) -> None:
    with pytest.raises(Breakdown):
        run(MadeUpScorer(tokenizer, survives=survives), tmp_path / "store")
    kept = contents(tmp_path / "store")
    assert kept.items() < whole.items()
    second = MadeUpScorer(tokenizer)
    run(second, tmp_path / "store")
    assert contents(tmp_path / "store") == whole
    assert second.scored < 36 or len(kept) == 1
    third = MadeUpScorer(tokenizer, survives=0)
    run(third, tmp_path / "store")  # nothing is missing


@pytest.mark.parametrize("size", [2, 3])
def test_the_shares_of_several_processes_are_the_store_of_one(
    tokenizer, tmp_path, whole, monkeypatch, size
) -> None:
    scored = []
    for _ in one_after_the_other(monkeypatch, size):
        scorer = MadeUpScorer(tokenizer)
        run(scorer, tmp_path / "several")
        scored.append(scorer.scored)
    assert sum(scored) == 36
    assert min(scored) > 0
    assert contents(tmp_path / "several") == whole


@pytest.mark.parametrize("which", [0, 2, -1])
def test_a_damaged_part_is_scored_again_with_the_same_bytes(tokenizer, tmp_path, which) -> None:
    store = run(MadeUpScorer(tokenizer), tmp_path)
    before, values = contents(tmp_path), store.alternatives()
    path = store.parts()[which]
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(InputError, match="the part is damaged; score again"):
        store.alternatives()
    repair = MadeUpScorer(tokenizer)
    np.testing.assert_array_equal(run(repair, tmp_path).alternatives(), values)
    damaged = {path.with_suffix(".damaged").name: before[path.name][:-30]}
    assert contents(tmp_path) == before | damaged
    assert 0 < repair.scored < 36


def test_the_published_alternative_is_not_always_scored_first(tokenizer, tmp_path) -> None:
    scorer = MadeUpScorer(tokenizer)
    run(scorer, tmp_path)
    asked = [s.tobytes() for s in scorer.sequences]
    published = {
        np.concatenate([g.prefix, g.rests[0]]).astype(np.int32).tobytes(): g
        for g in _groups(tokenizer)
    }
    places = []
    for text, group in published.items():
        own = {np.concatenate([group.prefix, r]).astype(np.int32).tobytes() for r in group.rests}
        places.append([each for each in asked if each in own].index(text))
    assert len(set(places)) > 1


def test_texts_that_a_tokenizer_cannot_tell_apart_tie(tokenizer, tmp_path) -> None:
    texts = (("one lamp\n", "one lamp\n"), ("a river\n", "a stone\n"), ("x\n", "xx\n"))
    made = AlternativeSet("made", texts, "wordings/1", "r", "wordings", (2, 2, 2))
    found = run(MadeUpScorer(tokenizer), tmp_path, made).alternatives()
    assert found[0, 0] == found[0, 1]
    assert found[1, 0] != found[1, 1]
    ids = tokenize(tokenizer, texts[2])
    common = next(i for i in range(len(ids[0])) if ids[0][i] != ids[1][i])
    expected = [log_probs_of(each)[common:].sum() for each in ids]
    np.testing.assert_allclose(found[2], expected, rtol=1e-6)


def test_a_record_that_is_missing_is_named(tokenizer, tmp_path) -> None:
    store = run(MadeUpScorer(tokenizer), tmp_path)
    store.parts()[-1].unlink()
    with pytest.raises(InputError, match=r"record \d is not scored yet; score the whole store"):
        store.alternatives()


@pytest.mark.parametrize(
    ("name", "revision", "change"),
    [
        ("model revision", "weights-2", {}),
        ("seed", "weights-1", {"seed": 2}),
        ("dataset revision", "weights-1", {"alternatives": quiz(9)}),
    ],
)
def test_a_store_of_something_else_is_refused(tokenizer, tmp_path, name, revision, change) -> None:
    run(MadeUpScorer(tokenizer), tmp_path)
    other = MadeUpScorer(tokenizer, revision=revision)
    with pytest.raises(InputError, match=f"another {name} "):
        run(other, tmp_path, **change)
    assert other.scored == 0


def test_interruptions_in_every_part_still_end_with_the_same_bytes(
    tokenizer, tmp_path, whole
) -> None:
    for _ in range(30):
        with suppress(Breakdown):
            run(MadeUpScorer(tokenizer, survives=12), tmp_path / "store")
            break
    assert contents(tmp_path / "store") == whole


def test_sums_travel_without_tokens(tokenizer, tmp_path) -> None:
    store = run(MadeUpScorer(tokenizer), tmp_path / "store")
    sum_store(store, tmp_path / "sums", permutations=0)
    summed = open_store(tmp_path / "sums")
    assert isinstance(summed, SummedStore)
    np.testing.assert_array_equal(summed.alternatives(), store.alternatives())
    with pytest.raises(InputError, match="holds alternatives, not orderings"):
        summed.log_probs(1)
