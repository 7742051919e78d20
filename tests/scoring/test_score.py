import json
import os
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from importlib.metadata import version
from unittest.mock import DEFAULT, Mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from contamination import files
from contamination.device import describe
from contamination.errors import InputError
from contamination.scoring import score as scoring
from contamination.scoring.local import TransformersScorer
from contamination.scoring.processes import processes
from contamination.scoring.score import score
from contamination.scoring.store import Store
from contamination.testsets.orderings import ordering, shard_bounds
from contamination.testsets.tokens import tokenize
from fakes.made_up_processes import one_after_the_other
from fakes.made_up_scorer import Breakdown, MadeUpScorer, log_probs_of
from fakes.made_up_store import HEADER, contents, units
from fakes.scoring_run import EXAMPLES, SET

SHARDS = 3
ORDERINGS, SUCCESSORS = {}, {"kind": "successors", "tokens_per_example": 2}


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Cut a run into many parts, so that there is something to interrupt."""
    monkeypatch.setattr(scoring, "SMALLEST_PART", 100)


def run(scorer, directory, permutations: int = 5, **changes):
    arguments = {"model": "m", "shards": SHARDS, "permutations": permutations, "seed": 1}
    return score(SET, scorer, directory, **(arguments | changes))


@pytest.fixture
def whole(tokenizer, tmp_path) -> dict[str, bytes]:
    """Return what a run without any interruption leaves in its directory."""
    return contents(run(MadeUpScorer(tokenizer), tmp_path / "whole").directory)


def test_the_store_holds_every_ordering_of_every_shard(tokenizer, tmp_path):
    """From example and position alone, each stored log-probability can be worked out again."""
    store = run(MadeUpScorer(tokenizer), tmp_path)
    assert len(store.parts()) > 3
    ids = tokenize(tokenizer, EXAMPLES)
    table = pa.concat_tables(map(pq.read_table, store.parts())).to_pandas()
    stored = dict(iter(table.groupby(["shard", "ordering"])))
    expected = np.zeros((SHARDS, 6))
    for shard, bounds in enumerate(shard_bounds(len(ids), SHARDS)):
        for index in range(6):
            order = ordering(bounds, index, seed=1, dataset="data-1", shard=shard)
            values = log_probs_of(np.concatenate([ids[e] for e in order]))
            expected[shard, index] = values.astype(np.float64).sum()
            rows = stored.pop((shard, index))
            assert rows["example"].drop_duplicates().tolist() == order.tolist()
            places = zip(rows["example"], rows["position"], strict=True)
            sequence = np.array([ids[e][p] for e, p in places])
            np.testing.assert_array_equal(rows["logprob"], log_probs_of(sequence))
    assert not stored
    np.testing.assert_allclose(store.log_probs(5), expected, rtol=1e-14)


@pytest.mark.parametrize(
    ("survives", "kind"), [*((n, ORDERINGS) for n in (0, 1, 3, 7, 12, 17)), (25, SUCCESSORS)]
)
def test_an_interrupted_run_ends_with_the_bytes_of_an_uninterrupted_one(
    tokenizer, tmp_path, survives, kind
):
    uninterrupted = MadeUpScorer(tokenizer)
    whole = contents(run(uninterrupted, tmp_path / "whole", **kind).directory)
    with pytest.raises(Breakdown):
        run(MadeUpScorer(tokenizer, survives=survives), tmp_path / "store", **kind)
    kept = contents(tmp_path / "store")
    assert kept.items() < whole.items()  # whole parts or none
    second = MadeUpScorer(tokenizer)
    run(second, tmp_path / "store", **kind)
    assert contents(tmp_path / "store") == whole
    # Work is lost for less than one part, never for what was finished.
    assert second.scored < uninterrupted.scored or len(kept) == 1
    assert len(kept) > 1 or survives < 25


def test_interruptions_in_every_part_still_end_with_the_same_bytes(tokenizer, tmp_path, whole):
    """A machine that never survives more than one part gets there all the same."""
    for _ in range(30):
        with suppress(Breakdown):
            run(MadeUpScorer(tokenizer, survives=4), tmp_path / "store")
            break
    assert contents(tmp_path / "store") == whole


def test_more_permutations_score_only_what_is_missing(tokenizer, tmp_path):
    store = run(MadeUpScorer(tokenizer), tmp_path / "store", permutations=5)
    before, sums = contents(tmp_path / "store"), store.log_probs(5)
    more = MadeUpScorer(tokenizer)
    store = run(more, tmp_path / "store", permutations=10)
    assert more.scored == SHARDS * (5 + 1)  # one stored ordering of each shard again
    assert before.items() < contents(tmp_path / "store").items()
    np.testing.assert_array_equal(store.log_probs(10)[:, :6], sums)
    # ... and hold the numbers of a run that asked for ten at once.
    at_once = run(MadeUpScorer(tokenizer), tmp_path / "at once", permutations=10)
    np.testing.assert_allclose(store.log_probs(10), at_once.log_probs(10), rtol=1e-14)


@pytest.mark.parametrize(("shift", "refused"), [(-0.05, True), (1e-6, False)])
def test_orderings_are_not_added_where_the_numbers_have_shifted(
    tokenizer, tmp_path, shift, refused
):
    """Later orderings, each lower by the same shift, would make the canonical one stand out."""
    run(MadeUpScorer(tokenizer), tmp_path, permutations=5)
    before, later = contents(tmp_path), MadeUpScorer(tokenizer)
    real = later.token_logprobs
    later.token_logprobs = lambda *asked: ((i, v + np.float32(shift)) for i, v in real(*asked))
    if not refused:
        assert run(later, tmp_path, permutations=10).log_probs(10).shape == (SHARDS, 11)
        return
    with pytest.raises(InputError, match="nats there and"):
        run(later, tmp_path, permutations=10)
    assert contents(tmp_path) == before


@settings(max_examples=20)
@given(data=st.data())
def test_whichever_parts_are_missing_are_scored_to_the_same_bytes(
    tokenizer, tmp_path_factory, data
):
    """Several processes finish their parts in any order, and then the power fails."""
    directory = tmp_path_factory.mktemp("store")
    store = run(MadeUpScorer(tokenizer), directory)
    before = contents(directory)
    lost = data.draw(st.sets(st.sampled_from(store.parts())))
    for path in lost:
        path.unlink()
    repair = MadeUpScorer(tokenizer)
    run(repair, directory)
    assert contents(directory) == before
    assert len(lost) <= len(repair.calls) <= len(lost) + 1  # what is compared with the store


@pytest.mark.parametrize("which", [0, 2, -1])
def test_a_damaged_part_is_scored_again_with_the_same_bytes(tokenizer, tmp_path, which):
    store = run(MadeUpScorer(tokenizer), tmp_path)
    before = contents(tmp_path)
    path = store.parts()[which]
    path.write_bytes(path.read_bytes()[:100])
    repair = MadeUpScorer(tokenizer)
    run(repair, tmp_path)
    damaged = {path.with_suffix(".damaged").name: before[path.name][:100]}
    assert contents(tmp_path) == before | damaged
    assert 0 < repair.scored < 18


@pytest.mark.parametrize(
    ("name", "scorer", "changes"),
    [
        ("model revision", {"revision": "weights-2"}, {}),
        ("seed", {}, {"seed": 2}),
        ("shards", {}, {"shards": 2}),
        ("tokens per example", {}, {"tokens_per_example": 2}),
    ],
)
def test_a_store_of_something_else_is_refused_before_any_scoring(
    tokenizer, tmp_path, name, scorer, changes
):
    run(MadeUpScorer(tokenizer), tmp_path)
    before = contents(tmp_path)
    other = MadeUpScorer(tokenizer, **scorer)
    with pytest.raises(InputError, match=f"another {name} "):
        run(other, tmp_path, **changes)
    assert other.scored == 0
    assert contents(tmp_path) == before
    run(other, tmp_path, replace=True, **changes)
    assert other.scored == changes.get("shards", SHARDS) * 6


@pytest.mark.parametrize(
    ("examples", "shards", "message"),
    [
        (EXAMPLES, 8, "at most 7 shards"),
        ((*EXAMPLES[:3], "", *EXAMPLES[4:]), 2, r"made-up: example 3 has no token.*separator"),
    ],
)
def test_what_cannot_be_scored_leaves_nothing_behind(
    tokenizer, tmp_path, examples, shards, message
):
    settings = {"model": "m", "shards": shards, "permutations": 1, "seed": 1}
    with pytest.raises(InputError, match=message):
        score(replace(SET, examples=examples), MadeUpScorer(tokenizer), tmp_path, **settings)
    assert list(tmp_path.iterdir()) == []


class TestFirstTokens:
    @pytest.mark.parametrize("first", [1, 3, 1000])
    def test_they_are_those_of_the_full_store(self, tokenizer, tmp_path, first):
        whole = run(MadeUpScorer(tokenizer), tmp_path / "whole")
        store = run(MadeUpScorer(tokenizer), tmp_path / "first", tokens_per_example=first)
        for shard in range(SHARDS):
            few, all_of_them = store.shard_tokens(shard, 5), whole.shard_tokens(shard, 5)
            kept = all_of_them.position < first
            np.testing.assert_array_equal(few.logprobs, all_of_them.logprobs[:, kept])
            np.testing.assert_array_equal(few.leading, all_of_them.leading[:, kept])
            np.testing.assert_array_equal(few.example, all_of_them.example[kept])


class TestSuccessors:
    @pytest.mark.parametrize("first", [2, None])
    def test_every_example_follows_every_other(self, tokenizer, tmp_path, first):
        store = run(MadeUpScorer(tokenizer), tmp_path, kind="successors", tokens_per_example=first)
        ids = tokenize(tokenizer, EXAMPLES)
        for shard, (start, stop) in enumerate(shard_bounds(len(ids), SHARDS)):
            expected = np.full((stop - start, stop - start), np.nan)
            for a, b in np.ndindex(expected.shape):
                if a != b:
                    tokens = ids[start + b][:first]
                    both = log_probs_of(np.concatenate([ids[start + a], tokens]))
                    expected[a, b] = both[-len(tokens) :].astype(np.float64).sum()
            found = store.successors(shard, first or 1000)
            np.testing.assert_allclose(found, expected, rtol=1e-12)


class TestParts:
    @given(
        work=st.lists(st.integers(1, 400), min_size=1, max_size=60), batch_tokens=st.integers(1, 90)
    )
    def test_they_hold_every_unit_once_and_enough_work(self, work, batch_tokens):
        parts = list(scoring.cut_into_parts(work, batch_tokens))
        assert [index for part in parts for index in part] == list(range(len(work)))
        size = max(100, 4 * batch_tokens)
        for part in parts[:-1]:
            assert sum(work[i] for i in part[:-1]) < size <= sum(work[i] for i in part)
        assert sum(work[i] for i in parts[-1][:-1]) < size


def test_what_process_0_does_not_agree_to_is_refused(tokenizer, tmp_path, monkeypatch):
    run(MadeUpScorer(tokenizer), tmp_path)
    monkeypatch.setattr(processes(), "process_index", 3)
    monkeypatch.setattr(scoring, "share", lambda work: [work()])
    monkeypatch.setattr(scoring, "together", lambda work: work())
    with pytest.raises(InputError, match="process 3 was to score something else than process 0"):
        run(MadeUpScorer(tokenizer), tmp_path, seed=2)
    with pytest.raises(InputError, match=r"no such store.*several nodes"):
        run(MadeUpScorer(tokenizer), tmp_path / "not shared")


@pytest.mark.parametrize("size", [2, 3, 50])
def test_the_shares_of_several_processes_are_the_store_of_one(
    tokenizer, tmp_path, whole, monkeypatch, size
):
    scored = []
    for _ in one_after_the_other(monkeypatch, size):
        scorer = MadeUpScorer(tokenizer)
        run(scorer, tmp_path / "several")
        scored.append(scorer.scored)
    assert sum(scored) == SHARDS * 6
    assert size > 9 or min(scored) > 0
    assert contents(tmp_path / "several") == whole


def test_a_full_disk_keeps_the_finished_parts_and_the_run_resumes(
    tokenizer, tmp_path, whole, monkeypatch
):
    flush, flushed = os.fsync, []

    def fills_up(descriptor: int) -> None:
        flushed.append(descriptor)
        if len(flushed) > 8:  # the header, the record of the run and two parts fit, with folders
            raise OSError(28, os.strerror(28))
        flush(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(files.os, "fsync", fills_up)
        with pytest.raises(InputError, match="no space left"):
            run(MadeUpScorer(tokenizer), tmp_path / "store")
    kept = contents(tmp_path / "store")
    assert len(kept) == 3
    assert kept.items() < whole.items()
    run(MadeUpScorer(tokenizer), tmp_path / "store")
    assert contents(tmp_path / "store") == whole


def test_a_network_that_breaks_down_leaves_the_same_bytes_too(
    model_directory, tmp_path, monkeypatch
):
    """As above with a real model, in the precision of this machine."""
    scorer = TransformersScorer(model_directory, batch_tokens=25)
    whole = contents(run(scorer, tmp_path / "whole").directory)
    broken = Mock(wraps=scorer._forward, side_effect=[DEFAULT] * 50 + [Breakdown])
    with monkeypatch.context() as patch:
        patch.setattr(scorer, "_forward", broken)
        with pytest.raises(Breakdown):
            run(scorer, tmp_path / "store")
    assert 1 < len(contents(tmp_path / "store")) < len(whole)
    run(TransformersScorer(model_directory, batch_tokens=25), tmp_path / "store")
    assert contents(tmp_path / "store") == whole


def records(store) -> list[dict]:
    return [json.loads(path.read_text()) for path in sorted(store.directory.glob("run-*.json"))]


class TestRecords:
    """What `run-*.json` says of a run."""

    @pytest.fixture
    def store(self, tmp_path) -> Store:
        return Store(tmp_path / "store", HEADER)

    @pytest.fixture
    def scorer(self, tokenizer) -> MadeUpScorer:
        scorer = MadeUpScorer(tokenizer)
        scorer.device, scorer.dtype = torch.device("cpu"), torch.bfloat16
        return scorer

    def test_a_record_says_what_ran_and_what_came_of_it(self, store, scorer):
        store.append(units(2)[:1])
        with scoring.recorded(store, scorer):
            (begun,) = records(store)  # all that a kill would leave
            added = store.append(units(2)[1:4])
        (record,) = records(store)
        assert begun == record | {"seconds": None, "parts": [], "tokens": 0}
        assert record.pop("seconds") > 0
        started = datetime.fromisoformat(record.pop("started"))
        assert started.utcoffset().total_seconds() == 0
        assert record.pop("packages")["torch"] == version("torch")
        assert record.pop("python")
        assert record == {
            "processes": 1,
            "devices": [describe(scorer.device)],
            "precision": "bfloat16",
            "parts": [added.name],
            "tokens": 6 + 6 + 6,
            "noise": None,
        }


def test_every_ordering_scores_the_same_tokens_and_no_start_token(tokenizer, tmp_path):
    scorer = MadeUpScorer(tokenizer)
    run(scorer, tmp_path, permutations=5)
    for start, stop in shard_bounds(len(EXAMPLES), SHARDS):
        sequences = [s for s in scorer.sequences if EXAMPLES[start] in tokenizer.decode(s)]
        assert len({s.tobytes() for s in sequences}) > 1
        assert len({np.sort(s).tobytes() for s in sequences}) == 1
        assert "".join(EXAMPLES[start:stop]) in map(tokenizer.decode, sequences)
        for sequence in sequences:
            # Whole examples in another order: decoded, they are the same lines.
            lines = tokenizer.decode(sequence).splitlines(keepends=True)
            assert sorted(lines) == sorted(EXAMPLES[start:stop])
            assert tokenizer.bos_token_id not in sequence


@pytest.mark.parametrize(("kind", "permutations"), [(ORDERINGS, (5, 3)), (SUCCESSORS, (5, 77))])
def test_a_complete_store_needs_no_model(tokenizer, tmp_path, kind, permutations):
    """The number of permutations means nothing to successors."""
    run(MadeUpScorer(tokenizer), tmp_path, **kind)
    before = contents(tmp_path)
    for number in permutations:
        run(MadeUpScorer(tokenizer, survives=0), tmp_path, permutations=number, **kind)
    assert contents(tmp_path) == before


def test_the_canonical_orderings_are_not_always_scored_first(tokenizer, tmp_path):
    """An endpoint may drift in the meantime."""
    scorer = MadeUpScorer(tokenizer)
    run(scorer, tmp_path, permutations=9)
    texts = [tokenizer.decode(sequence) for sequence in scorer.sequences]
    canonical_first = []
    for start, stop in shard_bounds(len(EXAMPLES), SHARDS):
        first = next(text for text in texts if EXAMPLES[start] in text)
        canonical_first.append(first == "".join(EXAMPLES[start:stop]))
    assert not all(canonical_first)
