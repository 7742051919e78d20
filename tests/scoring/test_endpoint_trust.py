"""Servers that turn bad, or whose answers depend on what came before, on the cache, or on the load.

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
from fakes.completions_server import scorer_of, serving
from fakes.float64_loop import random_ids, scored
from fakes.level import check_level
from fakes.made_up_network import Caching, Drifting, Loaded, MadeUpNetwork, Wrong

CONTEXT = 256

pytestmark = pytest.mark.usefixtures("waits")


@pytest.fixture
def scorer(server, directory) -> EndpointScorer:
    return scorer_of(server, directory, concurrency=1)


def entries(answer) -> list[tuple[str, dict]]:
    """Return the id and the entry of every token that is scored."""
    found = answer["choices"][0]["prompt_logprobs"][1:]
    return [(token, value) for entry in found for token, value in entry.items()]


def constant(value):
    def tamper(answer, _):
        for _token, entry in entries(answer):
            entry["logprob"] = value

    return tamper


def without_context(answer, _):
    for token, entry in entries(answer):
        entry["logprob"] = -1 - int(token) / 100


def another_model(answer, _):
    for _token, entry in entries(answer):
        entry["logprob"] -= 0.5


LATE = {
    "constants of few tokens": (constant(-2.5), 3, "every token has the log-probability -2.5"),
    "another model": (another_model, 9, "differ by 0.5 nats a token from one request to another"),
}


@pytest.mark.parametrize(("tamper", "length", "told"), LATE.values(), ids=LATE.keys())
def test_a_server_that_turns_bad_is_refused(server, scorer, tamper, length, told):
    scored(scorer, [random_ids(20)])
    server.tamper = tamper
    with pytest.raises(InputError, match=told):
        scored(scorer, [random_ids(length, seed) for seed in range(9)])


def test_a_server_that_is_bad_for_a_while_is_refused(server, scorer, monkeypatch):
    monkeypatch.setattr(endpoint_trust, "EVERY", 10)
    scored(scorer, [random_ids(5)])
    start = len(server.seen)

    def tamper(answer, number):
        if start + 10 < number < start + 90:
            without_context(answer, number)

    server.tamper = tamper
    with pytest.raises(InputError, match=r"differ by|depend on the context"):
        scored(scorer, [random_ids(5, seed) for seed in range(100)])
    assert len(server.seen) < start + 90


def test_a_server_that_knows_the_probes_is_refused(server, scorer):
    """It is honest with them alone; orderings of the same tokens give it away."""
    scored(scorer, [random_ids(5)])
    probes = [prompt.tolist() for prompt in scorer._trust.prompts]

    def tamper(answer, number):
        if server.seen[number - 1][1]["prompt"] not in probes:
            without_context(answer, number)

    server.tamper = tamper
    ids = random_ids(120)
    with pytest.raises(InputError, match="in another order, so they do not depend on the context"):
        scored(scorer, [np.roll(ids, shift) for shift in range(4)])


def test_values_shifted_by_one_token_are_refused_below_the_noise_of_all(server, scorer):
    """The mean over the tokens that differ hides the one that gives it away."""
    rng = np.random.default_rng(0)

    def tamper(answer, _):
        found = [entry for _, entry in entries(answer)]
        values = [entry["logprob"] for entry in found]
        for entry, following in zip(found, [*values[1:], -1.0], strict=True):
            entry["logprob"] = following + 1e-4 * rng.random()

    server.tamper = tamper
    with pytest.raises(InputError, match="depends on the token behind it"):
        scored(scorer, [random_ids(5)])


def test_the_same_sequence_twice_is_no_sign(server, scorer):
    values = scored(scorer, [random_ids(200)] * 5 + [np.roll(random_ids(200), 7)] * 5)
    assert len(values) == 10
    assert scorer.noise == 0


@pytest.mark.parametrize("shift", [0.1, 1.0])
def test_what_begins_like_an_earlier_prompt_is_measured_and_refused(server, scorer, shift):
    """The server shifts blocks of 16 tokens that it has seen before, as a cache does."""
    known = set()

    def tamper(answer, number):
        ids = server.seen[number - 1][1]["prompt"]
        for stop in range(16, len(ids), 16):
            block = tuple(ids[:stop])
            if block in known:
                for _, entry in entries(answer)[stop - 16 : stop - 1]:
                    entry["logprob"] -= shift
            known.add(block)

    server.tamper = tamper
    assert scorer.noise is None
    if shift > endpoint_trust.MOST_NOISE:
        with pytest.raises(InputError, match=r"and 0\.25 is the most .* turn prefix caching off"):
            scored(scorer, [random_ids(5)])
        assert len(server.seen) <= FIRST_ASKED
    else:
        scored(scorer, [random_ids(5)])
        assert scorer.noise == pytest.approx(0.1, abs=1e-5)  # of the cached tokens, not of all
        assert scorer.summary().endswith(f", noise {scorer.noise:.2g} nats a token")


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


@contextmanager
def behind(network: Wrong, style: str, folder: Path) -> Iterator[EndpointScorer]:
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
    kind = {name: getattr(TESTS[test], name) for name in ("kind", "tokens_per_example")}
    sizes = {"model": "m", "shards": 1, "permutations": 3, "seed": 0}
    return TESTS[test].result(score(test_set, scorer, store, **sizes, **kind), 3).p


@of_both_protocols
@of_every_kind
@pytest.mark.parametrize("test", REQUESTS)
def test_the_level_is_kept(tokenizer, folder, tmp_path, monkeypatch, test, error, style):
    """Even where errors decide, and the server would be refused for them."""
    monkeypatch.setattr(endpoint_trust, "MOST_NOISE", np.inf)
    network = ERRORS[error](MadeUpNetwork(tokenizer, CONTEXT), REQUESTS[test])
    network.nats *= LARGE
    with behind(network, style, folder) as scorer:
        p = [p_value(test, scorer, words(4, i), tmp_path / f"{i}") for i in range(30)]
    assert np.ptp(list(network.shown.values())) > 0
    check_level(p, 0.25, 0.5)


@of_both_protocols
@of_every_kind
def test_an_order_that_the_model_knows_is_found(tokenizer, folder, tmp_path, error, style):
    known = words(6, 0)
    ids = [tuple(example.tolist()) for example in tokenize(tokenizer, known.examples)]
    network = MadeUpNetwork(tokenizer, CONTEXT, list(pairwise(ids)))
    with behind(ERRORS[error](network, 32), style, folder) as scorer:
        assert p_value("successor", scorer, known, tmp_path / "known") <= 0.01
        assert p_value("successor", scorer, words(6, 1), tmp_path / "other") > 0.05
    assert scorer.noise <= endpoint_trust.MOST_NOISE


@of_both_protocols
@of_every_kind
@pytest.mark.parametrize("large", [1, LARGE])
def test_the_noise_is_no_less_than_that_of_the_answers_or_they_are_refused(
    tokenizer, folder, tmp_path, error, style, large
):
    network = ERRORS[error](MadeUpNetwork(tokenizer, CONTEXT), REQUESTS["successor"])
    network.nats *= large
    if isinstance(network, Loaded):
        network.divided = False
    with behind(network, style, folder) as scorer:
        if large > 1:
            with pytest.raises(InputError, match=r"and 0\.25 is the most that noise may be"):
                p_value("successor", scorer, words(4, 0), tmp_path / "store")
            return
        p_value("successor", scorer, words(4, 0), tmp_path / "store")
    asked = range(FIRST_ASKED + 1, network.asked - LAST_ASKED + 1)
    errors = [network.shown[number] for number in asked]
    assert len(errors) == REQUESTS["successor"]
    floor = min(errors) if error == "drift" else 0.0  # no answer is without a drift
    assert scorer.noise >= max(errors) - floor - 1e-6 > 0
