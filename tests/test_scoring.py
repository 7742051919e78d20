import os

import numpy as np
import pyarrow as pa
import pytest

from contamination import files, scoring
from contamination.errors import InputError
from contamination.orderings import ordering, shard_bounds
from contamination.scorer import TransformersScorer
from contamination.scoring import score
from contamination.test_set import TestSet
from contamination.tokenizer import tokenize
from made_up_scorer import Breakdown, MadeUpScorer, log_probs_of

EXAMPLES = tuple(f"{word} {'stone ' * (i % 4)}№{i}\n" for i, word in enumerate(["lamp", "é"] * 7))
SET = TestSet("made-up", EXAMPLES, "text/1", "data-1")
SHARDS = 3


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Cut a run into many parts, so that there is something to interrupt."""
    monkeypatch.setattr(scoring, "PART_TOKENS", 100)


def run(scorer, directory, permutations: int = 5, **changes):
    arguments = {"model": "m", "shards": SHARDS, "permutations": permutations, "seed": 1}
    return score(SET, scorer, directory, **(arguments | changes))


def contents(directory) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in sorted(directory.iterdir())}


def expected_sums(tokenizer, permutations: int) -> np.ndarray:
    """Take every ordering by hand through the scorer's formula."""
    ids = tokenize(tokenizer, EXAMPLES)
    bounds = shard_bounds(len(ids), SHARDS)
    sums = np.zeros((SHARDS, permutations + 1))
    for shard, index in np.ndindex(sums.shape):
        order = ordering(bounds[shard], index, seed=1, dataset="data-1", shard=shard)
        values = log_probs_of(np.concatenate([ids[e] for e in order]))
        sums[shard, index] = values.astype(np.float64).sum()
    return sums


def test_the_store_holds_every_ordering_of_every_shard(tokenizer, tmp_path):
    store = run(MadeUpScorer(tokenizer), tmp_path)
    assert len(store.parts()) > 3
    np.testing.assert_allclose(store.log_probs(5), expected_sums(tokenizer, 5), rtol=1e-14)


def test_each_row_names_the_token_it_belongs_to(tokenizer, tmp_path):
    """From example and position alone, each stored log-probability can be worked out again."""
    store = run(MadeUpScorer(tokenizer), tmp_path)
    ids = tokenize(tokenizer, EXAMPLES)
    table = pa.concat_tables(store.tokens()).to_pandas()
    for _, rows in table.groupby(["shard", "ordering"]):
        places = zip(rows["example"], rows["position"], strict=True)
        sequence = np.array([ids[e][p] for e, p in places])
        np.testing.assert_array_equal(rows["logprob"], log_probs_of(sequence))


def test_every_ordering_scores_the_same_tokens_and_no_start_token(tokenizer, tmp_path):
    scorer = MadeUpScorer(tokenizer)
    run(scorer, tmp_path, permutations=5)
    by_shard = [scorer.sequences[s * 6 : (s + 1) * 6] for s in range(SHARDS)]
    for (start, stop), sequences in zip(shard_bounds(len(EXAMPLES), SHARDS), by_shard, strict=True):
        assert len({s.tobytes() for s in sequences}) > 1
        assert len({np.sort(s).tobytes() for s in sequences}) == 1
        assert tokenizer.decode(sequences[0]) == "".join(EXAMPLES[start:stop])
        for sequence in sequences:
            # Whole examples in another order: decoded, they are the same lines.
            assert sorted(tokenizer.decode(sequence).splitlines(keepends=True)) == sorted(
                EXAMPLES[start:stop]
            )
            assert tokenizer.bos_token_id not in sequence


@pytest.mark.parametrize("survives", [0, 1, 3, 7, 12, 17])
def test_an_interrupted_run_ends_with_the_bytes_of_an_uninterrupted_one(
    tokenizer, tmp_path, survives
):
    run(MadeUpScorer(tokenizer), tmp_path / "whole")
    broken = MadeUpScorer(tokenizer, survives=survives)
    with pytest.raises(Breakdown):
        run(broken, tmp_path / "store")
    kept = contents(tmp_path / "store")
    assert kept.items() < contents(tmp_path / "whole").items()  # whole parts or none
    second = MadeUpScorer(tokenizer)
    run(second, tmp_path / "store")
    assert contents(tmp_path / "store") == contents(tmp_path / "whole")
    # Work is lost for less than one part, never for what was finished.
    assert second.scored < 18 or len(kept) == 1


def test_interruptions_at_every_sequence_still_end_with_the_same_bytes(tokenizer, tmp_path):
    """A machine that never survives more than one part gets there all the same."""
    run(MadeUpScorer(tokenizer), tmp_path / "whole")
    for _ in range(30):
        try:
            run(MadeUpScorer(tokenizer, survives=4), tmp_path / "store")
        except Breakdown:
            continue
        break
    assert contents(tmp_path / "store") == contents(tmp_path / "whole")


def test_a_complete_store_needs_no_model(tokenizer, tmp_path):
    run(MadeUpScorer(tokenizer), tmp_path)
    before = contents(tmp_path)
    store = run(MadeUpScorer(tokenizer, survives=0), tmp_path)
    assert store.log_probs(5).shape == (SHARDS, 6)
    run(MadeUpScorer(tokenizer, survives=0), tmp_path, permutations=3)
    assert contents(tmp_path) == before


def test_more_permutations_score_only_what_is_missing(tokenizer, tmp_path):
    store = run(MadeUpScorer(tokenizer), tmp_path / "store", permutations=5)
    before, sums = contents(tmp_path / "store"), store.log_probs(5)
    more = MadeUpScorer(tokenizer)
    store = run(more, tmp_path / "store", permutations=10)
    assert more.scored == SHARDS * 5
    assert before.items() < contents(tmp_path / "store").items()
    np.testing.assert_array_equal(store.log_probs(10)[:, :6], sums)
    # ... and hold the numbers of a run that asked for ten at once.
    at_once = run(MadeUpScorer(tokenizer), tmp_path / "at once", permutations=10)
    np.testing.assert_allclose(store.log_probs(10), at_once.log_probs(10), rtol=1e-14)


@pytest.mark.parametrize("which", [0, 2, -1])
def test_a_damaged_part_is_scored_again_with_the_same_bytes(tokenizer, tmp_path, which):
    store = run(MadeUpScorer(tokenizer), tmp_path)
    before = contents(tmp_path)
    path = store.parts()[which]
    path.write_bytes(path.read_bytes()[:100])
    repair = MadeUpScorer(tokenizer)
    run(repair, tmp_path)
    after = contents(tmp_path)
    assert len(after.pop(path.with_suffix(".damaged").name)) == 100
    assert after == before
    assert 0 < repair.scored < 18


@pytest.mark.parametrize(
    ("name", "scorer", "changes"),
    [
        ("model revision", {"revision": "weights-2"}, {}),
        ("seed", {}, {"seed": 2}),
        ("shards", {}, {"shards": 2}),
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


def test_too_few_examples_leave_nothing_behind(tokenizer, tmp_path):
    with pytest.raises(InputError, match="at most 7 shards"):
        run(MadeUpScorer(tokenizer), tmp_path / "store", shards=8)
    assert not (tmp_path / "store").exists()


def test_a_full_disk_keeps_the_finished_parts_and_the_run_resumes(tokenizer, tmp_path, monkeypatch):
    run(MadeUpScorer(tokenizer), tmp_path / "whole")
    flush, flushed = os.fsync, []

    def fills_up(descriptor: int) -> None:
        flushed.append(descriptor)
        if len(flushed) > 3:  # the header and two parts fit
            raise OSError(28, os.strerror(28))
        flush(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(files.os, "fsync", fills_up)
        with pytest.raises(InputError, match="no space left"):
            run(MadeUpScorer(tokenizer), tmp_path / "store")
    kept = contents(tmp_path / "store")
    assert len(kept) == 3
    assert kept.items() < contents(tmp_path / "whole").items()
    run(MadeUpScorer(tokenizer), tmp_path / "store")
    assert contents(tmp_path / "store") == contents(tmp_path / "whole")


def test_a_network_that_breaks_down_leaves_the_same_bytes_too(
    model_directory, tmp_path, monkeypatch
):
    """As above with a real model, in the precision of this machine."""
    run(TransformersScorer(model_directory), tmp_path / "whole")
    broken, calls = TransformersScorer(model_directory, batch_tokens=8192), []
    network = broken._score

    def breaks_down(*arguments):
        calls.append(arguments)
        if len(calls) > 3:
            raise Breakdown
        return network(*arguments)

    monkeypatch.setattr(broken, "_score", breaks_down)
    with pytest.raises(Breakdown):
        run(broken, tmp_path / "store")
    assert 1 < len(contents(tmp_path / "store")) < len(contents(tmp_path / "whole"))
    run(TransformersScorer(model_directory), tmp_path / "store")
    assert contents(tmp_path / "store") == contents(tmp_path / "whole")
