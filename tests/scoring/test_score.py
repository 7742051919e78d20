import itertools
import json
import os
from copy import deepcopy
from dataclasses import replace
from datetime import datetime
from functools import partial
from importlib.metadata import version

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers.processors import TemplateProcessing

from contamination import files
from contamination.device import describe
from contamination.errors import InputError
from contamination.scoring import job, work
from contamination.scoring.loading import ModelSource
from contamination.scoring.local import TransformersScorer
from contamination.scoring.plan import StorePlan
from contamination.scoring.processes import processes
from contamination.scoring.run_record import recorded
from contamination.scoring.score import score
from contamination.scoring.store import create_store
from contamination.scoring.token_groups import token_groups
from contamination.scoring.work import cut_into_parts
from contamination.testsets.example_set import start_each
from contamination.testsets.orderings import ordering, shard_bounds
from contamination.testsets.tokens import tokenize
from contamination.testsets.variants import VariantSet, option_variants
from fakes.items import items_set
from fakes.made_up_scorer import Breakdown, MadeUpScorer, log_probs_of
from fakes.made_up_store import HEADER, contents, units
from fakes.scoring_run import EXAMPLES, SET

SHARDS = 3
PLAN = StorePlan("orderings", SHARDS)
PAIRS = StorePlan("successors", SHARDS, 2)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Cut a run into many parts, so that there is something to interrupt."""
    monkeypatch.setattr(work, "SMALLEST_PART", 100)


def run(scorer, directory, permutations: int = 5, plan=PLAN, test_set=SET, **changes):
    arguments = {"model": "m", "permutations": permutations, "seed": 1}
    return score(test_set, scorer, directory, plan, **(arguments | changes))


def test_the_store_holds_every_ordering_of_every_shard(tokenizer, tmp_path):
    store = run(MadeUpScorer(tokenizer), tmp_path)
    assert len(store.parts()) > 3
    ids = tokenize(tokenizer, EXAMPLES)
    table = pa.concat_tables(map(pq.read_table, store.parts())).to_pandas()
    stored = table.set_index(["shard", "ordering"]).to_dict("index")
    expected = np.zeros((SHARDS, 6))
    for shard, bounds in enumerate(shard_bounds(len(ids), SHARDS)):
        for index in range(6):
            order = ordering(bounds, index, seed=1, dataset="data-1", shard=shard)
            values = log_probs_of(np.concatenate([ids[e] for e in order]))
            expected[shard, index] = values.astype(np.float64).sum()
            row = stored.pop((shard, index))
            assert row["examples"].tolist() == order.tolist()
            np.testing.assert_array_equal(row["nats"], values)
    assert not stored
    np.testing.assert_allclose(store.log_probs(5), expected, rtol=1e-14)


@pytest.mark.parametrize(
    ("survives", "plan"),
    [
        *((n, PLAN) for n in (0, 7, 17)),
        (25, PAIRS),
        *((n, None) for n in (0, 33)),  # alternatives
    ],
)
def test_an_interrupted_run_ends_with_the_bytes_of_an_uninterrupted_one(
    tokenizer, tmp_path, survives, plan
):
    again = partial(run, plan=plan) if plan else run_quiz
    uninterrupted = MadeUpScorer(tokenizer)
    whole = contents(again(uninterrupted, tmp_path / "whole").directory)
    with pytest.raises(Breakdown):
        again(MadeUpScorer(tokenizer, survives=survives), tmp_path / "store")
    kept = contents(tmp_path / "store")
    assert kept.items() < whole.items()  # whole parts or none
    second = MadeUpScorer(tokenizer)
    again(second, tmp_path / "store")
    assert contents(tmp_path / "store") == whole
    # Work is lost for less than one part, never for what was finished.
    assert second.scored < uninterrupted.scored or len(kept) == 1
    assert len(kept) > 1 or survives < 25
    again(MadeUpScorer(tokenizer, survives=0), tmp_path / "store")  # nothing is missing


def test_more_permutations_score_only_what_is_missing(tokenizer, tmp_path):
    store = run(MadeUpScorer(tokenizer), tmp_path / "store", permutations=5)
    before = contents(tmp_path / "store")
    sums = store.log_probs(5)
    more = MadeUpScorer(tokenizer)
    store = run(more, tmp_path / "store", permutations=10)
    assert more.scored == SHARDS * (5 + 1)  # one stored ordering of each shard again
    assert before.items() < contents(tmp_path / "store").items()
    np.testing.assert_array_equal(store.log_probs(10)[:, :6], sums)
    run(MadeUpScorer(tokenizer, survives=0), tmp_path / "store", permutations=3)  # nothing
    # ... and hold the numbers of a run that asked for ten at once.
    at_once = run(MadeUpScorer(tokenizer), tmp_path / "at once", permutations=10)
    np.testing.assert_allclose(store.log_probs(10), at_once.log_probs(10), rtol=1e-14)


@pytest.mark.parametrize(("shift", "refused"), [(-0.05, True), (1e-6, False)])
def test_orderings_are_not_added_where_the_numbers_have_shifted(
    tokenizer, tmp_path, shift, refused
):
    """Later orderings, each lower by the same shift, would make the canonical one stand out."""
    run(MadeUpScorer(tokenizer), tmp_path, permutations=5)
    before = contents(tmp_path)
    later = MadeUpScorer(tokenizer)
    real = later.token_logprobs

    def shifted(*asked):
        for number, values in real(*asked):
            yield number, values + np.float32(shift)

    later.token_logprobs = shifted
    if not refused:
        assert run(later, tmp_path, permutations=10).log_probs(10).shape == (SHARDS, 11)
        return
    with pytest.raises(InputError, match="nats there and"):
        run(later, tmp_path, permutations=10)
    assert contents(tmp_path) == before


@settings(max_examples=20)
@given(data=st.data())
def test_whichever_parts_are_missing_or_damaged_are_scored_to_the_same_bytes(
    tokenizer, tmp_path_factory, data
):
    """Several processes finish their parts in any order, and then the power fails."""
    directory = tmp_path_factory.mktemp("store")
    store = run(MadeUpScorer(tokenizer), directory)
    expected = contents(directory)
    lost = data.draw(st.sets(st.sampled_from(store.parts())))
    for number, path in enumerate(lost):
        if number % 2:  # was not written as a whole
            path.write_bytes(path.read_bytes()[:100])
        else:
            path.unlink()
    repair = MadeUpScorer(tokenizer)
    run(repair, directory)
    assert contents(directory) == expected
    assert len(lost) <= len(repair.calls) <= len(lost) + 1  # what is compared with the store


def test_a_store_of_other_weights_is_refused_before_any_scoring(tokenizer, tmp_path):
    run(MadeUpScorer(tokenizer), tmp_path)
    before = contents(tmp_path)
    other = MadeUpScorer(tokenizer, revision="weights-2")
    with pytest.raises(InputError, match="another model revision "):
        run(other, tmp_path)
    assert other.scored == 0
    assert contents(tmp_path) == before
    run(other, tmp_path, replace=True)
    assert other.scored == SHARDS * 6


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
    plan = StorePlan("orderings", shards)
    bad = replace(SET, examples=examples)
    with pytest.raises(InputError, match=message):
        run(MadeUpScorer(tokenizer), tmp_path, plan=plan, test_set=bad)
    with pytest.raises(InputError, match="orderings are scored as a whole"):
        run(MadeUpScorer(tokenizer), tmp_path, plan=StorePlan("orderings", SHARDS, 2))
    assert list(tmp_path.iterdir()) == []


def test_examples_that_bring_a_start_token_are_begun_once(tokenizer, tmp_path):
    """As the public script of Oren et al. encodes them, where the tokenizer adds such a token."""
    started = deepcopy(tokenizer)
    bos = tokenizer.bos_token
    started.backend_tokenizer.post_processor = TemplateProcessing(
        single=f"{bos} $A",
        special_tokens=[(bos, tokenizer.bos_token_id)],
    )
    for each, count in ((started, 1), (tokenizer, 0)):
        scorer = MadeUpScorer(each)
        path = tmp_path / str(count)
        store = run(scorer, path, test_set=start_each(SET))
        ids = tokenize(each, EXAMPLES, special=True)
        begins = [one[:count].tolist() for one in ids]
        assert begins == [[tokenizer.bos_token_id] * count] * len(ids)
        for shard, bounds in enumerate(shard_bounds(len(ids), SHARDS)):
            revision = start_each(SET).revision
            for index in range(6):
                order = ordering(bounds, index, seed=1, dataset=revision, shard=shard)
                sequence = np.concatenate([ids[example] for example in order])
                total = log_probs_of(sequence[count:]).astype(np.float64).sum()
                assert store.log_probs(5)[shard, index] == pytest.approx(total)
        run(scorer, tmp_path / f"pairs-{count}", plan=PAIRS, test_set=start_each(SET))
        assert not any(len(one) and one[0] == tokenizer.bos_token_id for one in scorer.sequences)


@pytest.mark.parametrize("first", [2, None])
def test_every_example_follows_every_other(tokenizer, tmp_path, first):
    plan = StorePlan("successors", SHARDS, first)
    store = run(MadeUpScorer(tokenizer), tmp_path, plan=plan)
    run(MadeUpScorer(tokenizer, survives=0), tmp_path, 77, plan)  # which means nothing to them
    ids = tokenize(tokenizer, EXAMPLES)
    for shard, (start, stop) in enumerate(shard_bounds(len(ids), SHARDS)):
        expected = np.full((stop - start, stop - start), np.nan)
        for a, b in np.ndindex(expected.shape):
            if a != b:
                tokens = ids[start + b][:first]
                both = log_probs_of(np.concatenate([ids[start + a], tokens]))
                expected[a, b] = both[-len(tokens) :].astype(np.float64).sum()
        np.testing.assert_allclose(store.successors(shard, first or 1000), expected, rtol=1e-12)


@given(
    tokens=st.lists(st.integers(1, 400), min_size=1, max_size=60), batch_tokens=st.integers(1, 90)
)
def test_parts_hold_every_sequence_once_and_enough_work(tokens, batch_tokens):
    parts = list(cut_into_parts(tokens, batch_tokens))
    assert list(itertools.chain(*parts)) == list(range(len(tokens)))
    size = max(100, 4 * batch_tokens)
    for part in parts[:-1]:
        assert sum(tokens[i] for i in part[:-1]) < size <= sum(tokens[i] for i in part)
    assert sum(tokens[i] for i in parts[-1][:-1]) < size


def test_what_process_0_does_not_agree_to_is_refused(tokenizer, tmp_path, monkeypatch):
    run(MadeUpScorer(tokenizer), tmp_path)
    monkeypatch.setattr(processes(), "process_index", 3)
    monkeypatch.setattr(job, "gather", lambda work: [work()])
    monkeypatch.setattr(job, "run_in_all", lambda work: work())
    with pytest.raises(InputError, match="this store is of another seed"):
        run(MadeUpScorer(tokenizer), tmp_path, seed=2)
    with pytest.raises(InputError, match=r"no such store.*several nodes"):
        run(MadeUpScorer(tokenizer), tmp_path / "not shared")


def test_a_full_disk_keeps_the_finished_parts_and_the_run_resumes(tokenizer, tmp_path, monkeypatch):
    whole = contents(run(MadeUpScorer(tokenizer), tmp_path / "whole").directory)
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


def records(store) -> list[dict]:
    return [json.loads(path.read_text()) for path in sorted(store.directory.glob("run-*.json"))]


def test_a_record_says_what_ran_and_what_came_of_it(tokenizer, tmp_path):
    store = create_store(tmp_path / "store", HEADER)
    scorer = MadeUpScorer(tokenizer)
    scorer.device = torch.device("cpu")
    scorer.dtype = torch.bfloat16
    store.append(units(2)[:1])
    with recorded(store, scorer):
        (begun,) = records(store)  # all that a kill would leave
        added = store.append(units(2)[1:4])
    (record,) = records(store)
    assert begun == record | {"seconds": None, "parts": [], "tokens": 0}
    assert record.pop("seconds") > 0
    assert datetime.fromisoformat(record.pop("started")).utcoffset().total_seconds() == 0
    assert record.pop("packages")["torch"] == version("torch")
    assert record.pop("python")
    assert record == {
        "processes": 1,
        "devices": [describe(scorer.device)],
        "precision": "bfloat16",
        "parts": [added.name],
        "tokens": 6 + 6 + 6,
        "noise": None,
        "step": None,
    }


# --- alternatives: the numbers of plain scoring ---------------------------------------------------

WORDS = ["apple", "river", "stone", "cloud", "lamp", "green", "tower", "quiet", "orbit", "maple"]


def quiz(items: int = 8) -> VariantSet:
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
    return option_variants(items_set(records), seed=0, permutations=5)


def run_quiz(scorer, directory):
    return score(quiz(), scorer, directory, model="m", seed=1)


@pytest.mark.parametrize("kind", ["made up", "network"])
def test_alternatives_are_compared_as_whole_texts_scored_one_by_one(
    tokenizer, make_model, tmp_path, kind
) -> None:
    """The beginning that a record's alternatives share adds the same to each."""
    scorer = MadeUpScorer(tokenizer)
    alternatives = quiz()
    if kind == "network":
        scorer = TransformersScorer(ModelSource(str(make_model(128)), precision="float32"))
    found = run_quiz(scorer, tmp_path).variants()
    expected = []
    for texts in alternatives.texts[:-1]:  # the last does not move
        values = dict(scorer.token_logprobs(tokenize(scorer.tokenizer, texts)))
        expected.append([values[i].sum(dtype=np.float64) for i in range(len(texts))])
    assert found.shape == (8, 6)
    moved = found - expected
    np.testing.assert_allclose(moved, np.broadcast_to(moved[:, :1], moved.shape), atol=1e-3)
    assert np.ptp(found, axis=1).min() > 1 or kind == "network"


def test_equal_alternatives_are_read_once_and_tie_exactly(tokenizer, tmp_path) -> None:
    """Two options have two arrangements: of six columns, three and three are the same number."""
    scorer = MadeUpScorer(tokenizer)
    store = run_quiz(scorer, tmp_path)
    found = store.variants()
    for row, texts in zip(found, quiz().texts, strict=False):
        assert len(set(zip(texts, row, strict=True))) == len(set(texts))
    assert scorer.scored == sum([2, 6, 6, 2, 6, 6, 2, 6])
    store.parts()[-1].unlink()
    with pytest.raises(InputError, match=r"record \d is not scored yet; score the whole store"):
        store.variants()


def test_alternatives_share_as_much_of_a_beginning_as_leaves_each_a_token(tokenizer) -> None:
    alternatives = quiz()
    for group in token_groups(tokenizer, alternatives):
        ids = tokenize(tokenizer, list(dict.fromkeys(alternatives.texts[group.record])))
        last = min(map(len, ids)) - 1
        common = 0
        while common < last and len({tokens[common] for tokens in ids}) == 1:
            common += 1
        assert len(group.prefix) == common
        assert [*map(len, group.rests)] == [len(each) - common for each in ids]


def test_the_published_alternative_is_not_always_scored_first(tokenizer, tmp_path) -> None:
    scorer = MadeUpScorer(tokenizer)
    run_quiz(scorer, tmp_path)
    asked = [ids.tobytes() for ids in scorer.sequences]
    places = set()
    for group in token_groups(tokenizer, quiz()):
        texts = [np.append(group.prefix, rest).astype(np.int32).tobytes() for rest in group.rests]
        places.add(sorted(texts, key=asked.index).index(texts[0]))
    assert len(places) > 1


def test_what_another_model_of_a_server_answers_is_not_added(tokenizer, tmp_path):
    """Pairs are added without a look at those that are stored."""
    broken = MadeUpScorer(tokenizer, survives=25)
    broken.served = "one"
    with pytest.raises(Breakdown):
        run(broken, tmp_path, plan=PAIRS)
    before = contents(tmp_path)
    assert len(before) > 1
    other = MadeUpScorer(tokenizer)
    other.served = "two"
    with pytest.raises(InputError, match="'one', and 'two'"):
        run(other, tmp_path, plan=PAIRS)
    assert contents(tmp_path) == before
