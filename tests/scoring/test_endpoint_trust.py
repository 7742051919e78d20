"""Servers that turn bad, or whose answers depend on what came before, on caches, or on the load."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from uuid import UUID

import numpy as np
import pytest

from contamination.errors import InputError
from contamination.scoring import endpoint, endpoint_trust
from contamination.scoring.endpoint import EndpointScorer
from contamination.scoring.endpoint_trust import FIRST_ASKED, LAST_ASKED, Trust
from contamination.testsets.tokens import tokenize
from fakes.completions_server import scorer_of, serving
from fakes.float64_loop import random_ids, scored
from fakes.level import check_level, null_set, p_value
from fakes.made_up_network import Caching, Drifting, Loaded, MadeUpNetwork, Wrong

CONTEXT = 256

pytestmark = pytest.mark.usefixtures("waits")


@pytest.fixture
def scorer(server, directory) -> EndpointScorer:
    return scorer_of(server, directory, concurrency=1)


def entries(answer) -> list[tuple[str, dict]]:
    pairs = []
    for entry in answer["choices"][0]["prompt_logprobs"][1:]:
        pairs += entry.items()
    return pairs


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
    "constants": (constant(-2.5), 9, "every token has the log-probability -2.5"),
    "constants of few tokens": (constant(-2.5), 3, "every token|do not depend on the context"),
    "another model": (another_model, 9, "differ by 0.5 nats a token from one request to another"),
}


@pytest.mark.parametrize(("tamper", "length", "told"), LATE.values(), ids=LATE.keys())
def test_a_server_that_turns_bad_is_refused(server, scorer, tamper, length, told):
    scored(scorer, [random_ids(20)])
    server.tamper = tamper
    with pytest.raises(InputError, match=told):
        scored(scorer, [random_ids(length, seed) for seed in range(9)])


def test_a_server_that_is_bad_for_a_while_is_refused(server, scorer, monkeypatch):
    monkeypatch.setattr(endpoint, "EVERY", 10)
    scored(scorer, [random_ids(5)])
    start = len(server.seen)

    def tamper(answer, number):
        if start + 10 < number < start + 90:
            without_context(answer, number)

    server.tamper = tamper
    with pytest.raises(InputError, match=r"differ by|depend on the context"):
        scored(scorer, [random_ids(5, seed) for seed in range(100)])
    assert len(server.seen) < start + 90


def test_values_shifted_by_one_token_are_refused_below_the_noise_of_all(
    server, directory, monkeypatch
):
    """The mean over the tokens that differ hides the one that gives it away."""
    # Behind some numbers the tokens in which the probes differ are about equally likely.
    monkeypatch.setattr(endpoint_trust, "uuid4", lambda: UUID(int=1))
    scorer = scorer_of(server, directory, concurrency=1)
    rng = np.random.default_rng(0)

    def tamper(answer, _):
        found = [entry for _, entry in entries(answer)]
        values = [entry["logprob"] for entry in found]
        for entry, following in zip(found, [*values[1:], -1.0], strict=True):
            entry["logprob"] = following + 1e-4 * rng.random()

    server.tamper = tamper
    with pytest.raises(InputError, match="depends on the token behind it"):
        scored(scorer, [random_ids(5)])


def probed(tokenizer, bend) -> Trust:
    """Return what is found of a server that bends a model's answers to both probes."""
    trust = Trust(tokenizer, 0, 200)
    rng = np.random.default_rng(0)
    beginning = rng.uniform(-7, -0.1, trust.shared)
    for number, prompt in enumerate(trust.prompts):
        end = rng.uniform(-7, -0.1, len(prompt) - 1 - trust.shared)
        end[0] = -6.2 - 0.1 * number  # of the tokens in which the probes differ
        trust.hear(number, bend(np.concatenate([beginning, end])))
    return trust


@pytest.mark.parametrize(("decimals", "step"), [(1, 0.1), (2, None), (9, None)])
def test_a_coarse_step_of_the_answers_is_measured(tokenizer, decimals, step):
    assert probed(tokenizer, lambda values: np.round(values, decimals)).step == step


@pytest.mark.parametrize(
    ("bend", "told"),
    [
        (lambda values: np.maximum(values, -5.0), "cut off at -5 nats"),
        (lambda values: np.maximum(values, -0.2), "cut off at -0.2 nats"),
        (np.round, "rounded to multiples of 1 nats"),
        (lambda values: np.where(values < -6, -6.0123, values) - (values < -6.5), "shifted by one"),
    ],
)
def test_equal_values_of_two_tokens_are_told_by_their_cause(tokenizer, bend, told):
    with pytest.raises(InputError) as caught:
        probed(tokenizer, bend)
    assert told in str(caught.value)


REQUESTS = {"permutation": 6, "successor": 14}  # of a set of four, and two probes among them
SMALL, DRIFT = 0.2, 0.003  # nats a token, the second with every request: below what is refused
LARGE = 100  # times these

Make = Callable[[MadeUpNetwork, int], Wrong]
ERRORS: dict[str, Make] = {
    "drift": lambda network, each: Drifting(network, DRIFT),
    "cache": lambda network, each: Caching(network, SMALL),
    "load": lambda network, each: Loaded(network, SMALL, each),
}
of_every_kind = pytest.mark.parametrize("error", ERRORS)


@pytest.fixture(scope="module")
def folder(tokenizer, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("tokenizer")
    tokenizer.save_pretrained(path)
    return path


@contextmanager
def behind(network: Wrong, folder: Path) -> Iterator[EndpointScorer]:
    together = getattr(network, "together", 1)
    with serving(network) as server:
        yield EndpointScorer(server.url, "m", folder, context=CONTEXT, concurrency=together)


@of_every_kind
@pytest.mark.parametrize("test", REQUESTS)
def test_the_level_is_kept(tokenizer, folder, tmp_path, monkeypatch, test, error):
    """Even where errors decide, and the server would be refused for them."""
    for limit in ("MOST_NOISE", "MOST_NOISE_OF_ONE"):
        monkeypatch.setattr(endpoint_trust, limit, np.inf)
    network = ERRORS[error](MadeUpNetwork(tokenizer, CONTEXT), REQUESTS[test])
    network.nats *= LARGE
    with behind(network, folder) as scorer:
        p = [p_value(test, scorer, null_set(4, i), tmp_path / f"{i}") for i in range(20)]
    assert np.ptp(list(network.shown.values())) > 0
    check_level(p, 0.25, 0.5)


@of_every_kind
def test_an_order_that_the_model_knows_is_found(tokenizer, folder, tmp_path, error):
    known = null_set(6, 0)
    ids = [tuple(example.tolist()) for example in tokenize(tokenizer, known.examples)]
    network = MadeUpNetwork(tokenizer, CONTEXT, list(pairwise(ids)))
    with behind(ERRORS[error](network, 32), folder) as scorer:
        assert p_value("successor", scorer, known, tmp_path / "known") <= 0.01
        assert p_value("successor", scorer, null_set(6, 1), tmp_path / "other") > 0.05
    assert scorer.noise <= endpoint_trust.MOST_NOISE


@of_every_kind
@pytest.mark.parametrize("large", [1, LARGE])
def test_the_noise_is_no_less_than_that_of_the_answers_or_they_are_refused(
    tokenizer, folder, tmp_path, error, large
):
    network = ERRORS[error](MadeUpNetwork(tokenizer, CONTEXT), REQUESTS["successor"])
    network.nats *= large
    if isinstance(network, Loaded):
        network.divided = False
    with behind(network, folder) as scorer:
        if large > 1:
            with pytest.raises(InputError, match=r"and 0\.25 is the most that noise may be"):
                p_value("successor", scorer, null_set(4, 0), tmp_path / "store")
            return
        p_value("successor", scorer, null_set(4, 0), tmp_path / "store")
    asked = range(FIRST_ASKED + 1, network.asked - LAST_ASKED + 1)
    errors = [network.shown[number] for number in asked]
    assert len(errors) == REQUESTS["successor"]
    floor = min(errors) if error == "drift" else 0.0  # no answer is without a drift
    assert scorer.noise >= max(errors) - floor - 1e-6 > 0
