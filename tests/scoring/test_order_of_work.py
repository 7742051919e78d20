"""Where and when a number was computed says nothing about the canonical order."""

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from contamination.audit.battery import TESTS
from contamination.scoring.contract import Scorer
from contamination.scoring.endpoint import EndpointScorer
from contamination.scoring.score import score
from contamination.testsets.example_set import ExampleSet
from fakes.completions_server import Network, serving
from fakes.level import check_level
from fakes.made_up_scorer import MadeUpScorer, log_probs_of

DRIFT = -0.5  # nats of every token by which each answer is below the one before it
WORDS = np.array(["apple", "river", "stone", "cloud", "lamp", "green", "tower", "quiet"])


class Drifting(MadeUpScorer):
    """As `MadeUpScorer`, but every answer is a little lower than the one before."""

    def token_logprobs(
        self, sequences: Sequence[np.ndarray], wanted: Sequence[np.ndarray] | None = None
    ) -> Iterator[tuple[int, np.ndarray]]:
        for index, ids in enumerate(sequences):
            self.scored += 1
            yield index, log_probs_of(ids) + np.float32(DRIFT * self.scored)


def words(count: int, number: int) -> ExampleSet:
    """Return a set whose order means nothing, another one for each number."""
    rng = np.random.default_rng(number)
    examples = tuple(" ".join(rng.choice(WORDS, 2)) + "\n" for _ in range(count))
    return ExampleSet("words", examples, "text/1", f"data-{number}")


def p_value(test: str, scorer: Scorer, test_set: ExampleSet, directory, shards: int, m: int = 0):
    store = score(
        test_set,
        scorer,
        directory,
        model="m",
        shards=shards,
        permutations=m,
        seed=0,
        kind=TESTS[test].kind,
        tokens_per_example=TESTS[test].tokens_per_example,
    )
    return TESTS[test].result(store, m).p


@pytest.mark.parametrize(
    ("test", "shards", "m"),
    [("permutation", 1, 19), ("sharded_t", 8, 5), ("boundary", 2, 19), ("successor", 3, 0)],
)
def test_a_drifting_scorer_keeps_the_level(tokenizer, tmp_path, test, shards, m):
    p = [
        p_value(test, Drifting(tokenizer), words(4 * shards, i), tmp_path / f"{i}", shards, m)
        for i in range(100)
    ]
    check_level(p, 0.05, 0.25, 0.5)


@pytest.mark.parametrize(("test", "shards", "m"), [("permutation", 1, 3), ("successor", 1, 0)])
def test_a_drifting_server_keeps_the_level(make_model, tmp_path, monkeypatch, test, shards, m):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    directory = make_model(64)

    def drift(answer, number: int) -> None:
        for token in answer["choices"][0]["prompt_logprobs"][1:]:
            for value in token.values():
                value["logprob"] += DRIFT * number

    with serving(Network(directory)) as server:
        server.tamper = drift
        scorer = EndpointScorer(server.url, "tiny", directory, context=64, concurrency=1)
        p = [p_value(test, scorer, words(4, i), tmp_path / f"{i}", shards, m) for i in range(40)]
    check_level(p, 0.25, 0.5)
