"""Servers whose answers depend on what came before, on the cache, or on the load.

The order of requests says nothing about the canonical ordering, so p-values keep their level; an
order that the model knows is found all the same; the noise that is printed is no less than that of
the answers; and where it is large, the server is refused.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from contamination.audit.battery import TESTS
from contamination.errors import InputError
from contamination.scoring import endpoint_trust
from contamination.scoring.endpoint import EndpointScorer
from contamination.scoring.endpoint_trust import FIRST_ASKED, LAST_ASKED
from contamination.scoring.score import score
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.tokens import tokenize
from fakes.completions_server import serving
from fakes.level import check_level
from fakes.made_up_network import Caching, Drifting, Loaded, MadeUpNetwork, Wrong

CONTEXT = 256
WORDS = np.array(["apple", "river", "stone", "cloud", "lamp", "green", "tower", "quiet"])
REQUESTS = {"permutation": 6, "successor": 14}  # of a set of four, and two probes among them
SMALL, DRIFT = 0.2, 0.003  # nats a token, the second with every request: below what is refused
LARGE = 100  # times these

Make = Callable[[MadeUpNetwork, int], Wrong]
ERRORS: dict[str, Make] = {
    "drift": lambda network, each: Drifting(network, DRIFT),
    "cache": lambda network, each: Caching(network, SMALL),
    "load": lambda network, each: Loaded(
        network, SMALL, each=each, alone=(FIRST_ASKED, LAST_ASKED)
    ),
}
of_every_kind = pytest.mark.parametrize("error", ERRORS)
of_both_protocols = pytest.mark.parametrize("style", ["vllm", "generate"])


@pytest.fixture(scope="module")
def folder(tokenizer, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("tokenizer")
    tokenizer.save_pretrained(path)
    return path


@pytest.fixture(autouse=True)
def no_key(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@contextmanager
def scorer_of(network: Wrong, style: str, folder: Path) -> Iterator[EndpointScorer]:
    together = getattr(network, "together", 1)
    with serving(network, style) as server:
        yield EndpointScorer(server.url, "m", folder, context=CONTEXT, concurrency=together)


def words(count: int, number: int) -> ExampleSet:
    """Return a set whose order means nothing, another one for each number.

    No two examples begin alike, so that a cache knows what it has seen and nothing else.
    """
    rng = np.random.default_rng(number)
    examples = tuple(f"{rng.integers(10**6):06d} {rng.choice(WORDS)}\n" for _ in range(count))
    return ExampleSet("words", examples, "text/1", f"data-{number}")


def p_value(test: str, scorer: EndpointScorer, test_set: ExampleSet, store: Path) -> float:
    found = score(
        test_set,
        scorer,
        store,
        model="m",
        shards=1,
        permutations=3,
        seed=0,
        kind=TESTS[test].kind,
        tokens_per_example=TESTS[test].tokens_per_example,
    )
    return TESTS[test].result(found, 3).p


@of_both_protocols
@of_every_kind
@pytest.mark.parametrize("test", REQUESTS)
def test_the_level_is_kept(tokenizer, folder, tmp_path, monkeypatch, test, error, style):
    """Even where errors decide, and the server would be refused for them."""
    monkeypatch.setattr(endpoint_trust, "MOST_NOISE", np.inf)
    network = ERRORS[error](MadeUpNetwork(tokenizer, CONTEXT), REQUESTS[test])
    network.nats *= LARGE
    with scorer_of(network, style, folder) as scorer:
        p = [p_value(test, scorer, words(4, i), tmp_path / f"{i}") for i in range(30)]
    assert np.ptp(list(network.shown.values())) > 0
    check_level(p, 0.25, 0.5)


@of_both_protocols
@of_every_kind
def test_an_order_that_the_model_knows_is_found(tokenizer, folder, tmp_path, error, style):
    known = words(6, 0)
    ids = [tuple(example.tolist()) for example in tokenize(tokenizer, known.examples)]
    network = MadeUpNetwork(tokenizer, CONTEXT, list(pairwise(ids)))
    with scorer_of(ERRORS[error](network, 32), style, folder) as scorer:
        assert p_value("successor", scorer, known, tmp_path / "known") <= 0.01
        assert p_value("successor", scorer, words(6, 1), tmp_path / "other") > 0.05
    assert scorer.noise <= endpoint_trust.MOST_NOISE


@of_both_protocols
@of_every_kind
def test_the_noise_is_no_less_than_that_of_the_answers(tokenizer, folder, tmp_path, error, style):
    network = ERRORS[error](MadeUpNetwork(tokenizer, CONTEXT), REQUESTS["successor"])
    if isinstance(network, Loaded):
        network.divided = False
    with scorer_of(network, style, folder) as scorer:
        p_value("successor", scorer, words(4, 0), tmp_path / "store")
    asked = range(FIRST_ASKED + 1, network.asked - LAST_ASKED + 1)
    errors = [network.shown[number] for number in asked]
    assert len(errors) == REQUESTS["successor"]
    floor = min(errors) if error == "drift" else 0.0  # no answer is without a drift
    assert scorer.noise >= max(errors) - floor - 1e-6 > 0


@of_both_protocols
@of_every_kind
def test_large_errors_are_refused(tokenizer, folder, tmp_path, error, style):
    network = ERRORS[error](MadeUpNetwork(tokenizer, CONTEXT), REQUESTS["successor"])
    network.nats *= LARGE
    if isinstance(network, Loaded):
        network.divided = False
    with (
        scorer_of(network, style, folder) as scorer,
        pytest.raises(InputError, match=r"and 0\.25 is the most that noise may be"),
    ):
        p_value("successor", scorer, words(4, 0), tmp_path / "store")
