"""A server that turns bad after the start, and one whose answers depend on what came before."""

import numpy as np
import pytest

from contamination.errors import InputError
from contamination.scoring import endpoint_trust
from contamination.scoring.endpoint import EndpointScorer
from fakes.completions_server import Network, serving
from fakes.float64_loop import random_ids, scored

CONTEXT = 256


@pytest.fixture(scope="module")
def directory(make_model):
    return make_model(CONTEXT)


@pytest.fixture(scope="module")
def network(directory) -> Network:
    return Network(directory)


@pytest.fixture
def server(network, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with serving(network) as running:
        yield running


@pytest.fixture
def scorer(server, directory) -> EndpointScorer:
    return EndpointScorer(server.url, "tiny", directory, context=CONTEXT, concurrency=1)


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
    "zeros": (constant(0.0), 9, "every token has the log-probability 0, which stands for none"),
    "constants": (constant(-2.5), 9, "every token has the log-probability -2.5"),
    "constants of few tokens": (constant(-2.5), 3, "every token has the log-probability -2.5"),
    "no context": (without_context, 9, "nats a token from one request to another"),
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


def test_the_same_sequence_twice_is_no_sign(server, scorer):
    values = scored(scorer, [random_ids(200)] * 5 + [np.roll(random_ids(200), 7)] * 5)
    assert len(values) == 10
    assert scorer.noise == 0


def remembering(server, shift: float):
    """Shift what begins like an earlier prompt, by blocks of 16 tokens, as a cache does."""
    known = set()

    def tamper(answer, number):
        ids = server.seen[number - 1][1]["prompt"]
        for stop in range(16, len(ids), 16):
            block = tuple(ids[:stop])
            if block in known:
                for _, entry in entries(answer)[stop - 16 : stop - 1]:
                    entry["logprob"] -= shift
            known.add(block)

    return tamper


def test_a_cache_that_changes_answers_is_found(server, scorer):
    server.tamper = remembering(server, 1.0)
    with pytest.raises(InputError, match=r"and 0\.25 is the most .* turn prefix caching off"):
        scored(scorer, [random_ids(5)])
    assert len(server.seen) <= endpoint_trust.FIRST_ASKED


def test_noise_is_measured_and_told(server, scorer):
    assert scorer.noise is None
    server.tamper = remembering(server, 0.1)
    scored(scorer, [random_ids(5)])
    assert scorer.noise == pytest.approx(0.1, abs=1e-5)  # of the cached tokens, not of all
    assert scorer.summary().endswith(f", noise {scorer.noise:.2g} nats a token")


def test_probes_begin_and_end_alike_and_are_new_to_every_server(scorer, server, directory):
    one, other = scorer._trust.prompts
    before, behind = scorer._trust.shared, scorer._trust._behind
    assert before > 32  # more than two blocks of a cache
    assert behind >= 2
    assert np.count_nonzero(one[before + 1 : -behind]) > 0
    again = EndpointScorer(server.url, "tiny", directory, context=CONTEXT)
    assert not np.array_equal(again._trust.prompts[0][:16], one[:16])
    assert len(other) <= CONTEXT - 1
