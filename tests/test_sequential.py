"""Stopping early pays for no more shards than it needs, and gives the p-value of the whole path."""

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pytest

from contamination.errors import InputError
from contamination.sequential import audit_until
from contamination.statistics import anytime_test
from contamination.store import open_store
from contamination.test_set import TestSet
from contamination.tokenizer import tokenize
from made_up_scorer import MadeUpScorer, log_probs_of

WORDS = ["apple", "river", "stone", "cloud", "lamp", "green", "tower", "quiet", "orbit", "maple"]


def made_up_set(count: int) -> TestSet:
    rng = np.random.default_rng(0)
    examples = tuple(f"{' '.join(rng.choice(WORDS, 3))} {i}.\n" for i in range(count))
    return TestSet("words", examples, "text/1", "made up")


class Remembers(MadeUpScorer):
    """Likes an example by `nats` more where it stands right after the one before it in the set."""

    def __init__(self, tokenizer, test_set: TestSet, nats: float) -> None:
        super().__init__(tokenizer)
        ids = [tuple(i.tolist()) for i in tokenize(tokenizer, test_set.examples)]
        self.pairs = {a + b: len(a) for a, b in pairwise(ids)}
        self.nats = nats

    def token_logprobs(
        self, sequences: Sequence[np.ndarray], wanted: Sequence[np.ndarray] | None = None
    ) -> Iterator[tuple[int, np.ndarray]]:
        for index, ids in enumerate(sequences):
            self.scored += 1
            values, listed = log_probs_of(ids), ids.tolist()
            for pair, length in self.pairs.items():
                for start in range(len(listed) - len(pair) + 1):
                    if listed[start] == pair[0] and tuple(listed[start:][: len(pair)]) == pair:
                        values[start + length] += np.float32(self.nats)
            yield index, values


@pytest.fixture
def until(tokenizer, tmp_path):
    def run(nats: float, **arguments):
        test_set = made_up_set(40)
        scorer = Remembers(tokenizer, test_set, nats)
        fixed = {"test": "exact", "alpha": 0.01, "directory": tmp_path, "name": "m"}
        return audit_until(scorer, test_set, **(fixed | arguments)), scorer

    return run


def test_strong_evidence_stops_early_and_the_rest_is_not_scored(until, tmp_path):
    found, scorer = until(40.0, permutations=10)
    assert found.stopped_at == found.shards < 10
    assert found.p <= 0.01
    assert scorer.scored == 11 * found.shards
    store = open_store(tmp_path / "m" / "words" / "orderings-010")
    assert {unit[0] for unit in store.done()} == set(range(found.shards))


def test_without_evidence_all_shards_are_looked_at(until, tmp_path):
    found, scorer = until(0.0, permutations=5)
    assert found.stopped_at is None
    assert found.shards == 10
    assert scorer.scored == 60
    store = open_store(tmp_path / "m" / "words" / "orderings-010")
    assert found.log10_p == pytest.approx(anytime_test(store.log_probs(5), alpha=0.01).log10_p)


def test_it_goes_on_where_it_stopped(until):
    first, _ = until(40.0, permutations=10)
    again, scorer = until(40.0, permutations=10, alpha=1e-9)
    assert again.shards > first.shards
    assert scorer.scored == 11 * (again.shards - first.shards)


def test_successors_can_stop_too(until):
    found, _ = until(40.0, test="successor", shards=8)
    assert found.stopped_at is not None


@pytest.mark.parametrize("test", ["sharded_t", "permutation", "nothing"])
def test_tests_of_all_shards_are_refused(until, test):
    with pytest.raises(InputError, match="stopping early needs one of successor, exact"):
        until(0.0, test=test)


def test_the_command(call, model_directory, tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("".join(made_up_set(20).examples))
    arguments = ("--stop", "--test", "exact", "--permutations", "3", "--json", "--alpha", "1e-6")
    status, out, _ = call("test", model_directory, path, *arguments, "--store", tmp_path / "s")
    told = json.loads(out)
    assert (status, told["stopped_at"], told["shards"]) == (0, None, 5)
    status, _, err = call("test", model_directory, path, *arguments, "--test", "boundary")
    assert status == 2
    assert "give --test once" in err
    status, _, err = call("test", model_directory, path, "--stop", "--dry-run")
    assert status == 2
    assert "--stop has no --dry-run" in err
