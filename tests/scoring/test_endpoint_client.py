"""Servers that break, stall, never end or repeat the key: one line says what is wrong.

Nothing sleeps: waits between tries are set to nothing, and servers wait for events.
"""

import gzip
import itertools
import logging
import math
import os
import signal
import threading
import traceback
import tracemalloc
from urllib.parse import quote

import numpy as np
import pytest

from contamination.errors import InputError
from contamination.scoring import endpoint_client
from contamination.scoring.endpoint_client import ATTEMPTS, Client
from contamination.scoring.endpoint_trust import FIRST_ASKED, LAST_ASKED, PROBES
from fakes.completions_server import Failure, scorer_of, serving
from fakes.float64_loop import random_ids, scored
from fakes.made_up_registry import refusal

CONTEXT = 64
ASKED = FIRST_ASKED + 1 + LAST_ASKED  # of one sequence
SECRET = "sk-secret-0123456789"


def error_of(scorer, *sequences: np.ndarray) -> str:
    return refusal(lambda: list(scorer.token_logprobs(sequences or [random_ids(5)])))


BREAKS = {
    "503": (Failure(503, b"<html>\n busy"), "HTTP 503 (<html> busy)", "HTTP 503"),
    "cut": (
        Failure(200, b'{"choices": [1]}', cut=True),
        "broken connection (",
        "broken connection",
    ),
    "half an answer": (Failure(200, b'{"choices": ['), "the answer is no JSON", "broken answer"),
    "no object": (Failure(200, b"[1]"), "the answer is no JSON object", "broken answer"),
}


@pytest.mark.parametrize(("failure", "told", "kind"), BREAKS.values(), ids=BREAKS.keys())
def test_passing_failures_are_tried_again_and_given_up_in_the_end(
    server, scorer, waits, failure, told, kind
):
    expected = scored(scorer, [random_ids(9)])
    server.failures.extend([failure] * 3)
    np.testing.assert_array_equal(scored(scorer, [random_ids(9)]), expected)
    assert scorer.client.requests_made == len(server.seen)
    assert f"{len(server.seen)} requests, 3 of them failed (3 x {kind})" in scorer.client.summary()
    assert len(waits) == 3
    server.failures.extend([failure] * 99)
    message = error_of(scorer)
    assert told in message
    assert f"tried {ATTEMPTS} times" in message
    assert len(server.failures) == 99 - ATTEMPTS


def test_a_server_that_went_away_is_waited_for_and_one_that_never_was_there_is_not(
    network, directory, waits
):
    with serving(network) as server:
        scorer, another = (scorer_of(server, directory) for _ in range(2))
        scored(scorer, [random_ids(5)])
    message = error_of(another)
    assert message.startswith(f"{server.url}: cannot be reached (")
    assert message.endswith("start the server or correct the URL")
    assert waits == []
    assert f"tried {ATTEMPTS} times" in error_of(scorer)
    assert len(waits) == ATTEMPTS - 1


@pytest.mark.parametrize(
    ("value", "wait"), [("90", 90), ("9" * 5000, 120), ("-5", None), ("soon", None)]
)
def test_waits_are_as_long_as_the_server_asks(server, scorer, waits, value, wait):
    server.failures.append(Failure(429, headers={"Retry-After": value}))
    scored(scorer, [random_ids(5)])
    (waited,) = waits
    assert waited == wait or (wait is None and 0.3 < waited <= 0.5)


def test_no_try_begins_after_the_time_for_all_of_them(server, scorer, waits, monkeypatch):
    monkeypatch.setattr(endpoint_client, "PATIENCE", 60)
    server.failures.extend([Failure(429, headers={"Retry-After": "90"})] * 9)
    assert "(out of order); tried 1 times. Run it again later" in error_of(scorer)
    assert waits == []


def http(body: bytes = b"", status: str = "200 OK", *headers: str) -> bytes:
    lines = (f"HTTP/1.1 {status}", "Content-Type: application/json", *headers)
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


DEEP = b"[" * 99_999
FAILURES = {
    "401": (Failure(401), "HTTP 401 (out of order); put a valid key into OPENAI_API_KEY"),
    "404": (Failure(404), "HTTP 404 (out of order); check the model's name, and the URL"),
    "long": (Failure(401, b"word \n" * 9999), "…); put a valid key"),
    "HTML": (Failure(200, b"<html>"), "the answer is no JSON object; give the base"),
    "a list": (Failure(200, b"[1, 2]"), "the answer is no JSON object; give the base"),
    "redirect": (Failure(307, headers={"Location": "http://example.org/v1"}), "redirects to http"),
    "deep nesting": (Failure(200, DEEP), "the answer is no JSON object"),
    "text for a terminal": (Failure(401, b"\x1b[2J\x07 no"), r"HTTP 401 (\x1b[2J\x07 no)"),
}


@pytest.mark.parametrize(("failure", "told"), FAILURES.values(), ids=FAILURES.keys())
def test_a_failure_that_lasts_is_one_line(server, scorer, failure, told):
    server.failures.extend([failure] * 99)
    message = error_of(scorer)
    assert message.startswith((f"{server.url}: ", "no way to the log-probabilities of a prompt"))
    assert told in message
    assert len(message) < 600
    assert message.isprintable()
    if failure.status in (401, 403, 404):
        assert len(server.seen) == 1


NAN = b'{"error": {"message": "Out of range float values are not JSON compliant: nan"}}'
QUOTA = b'{"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}'
NO_ECHO = b'{"error": {"message": "echo is not supported with logprobs"}}'
LASTING = {
    "501": (Failure(501), "HTTP 501 (out of order)"),
    "NaN": (Failure(500, NAN), "not JSON compliant: nan); serve the model in another precision"),
    "NaN as bad input": (Failure(400, NAN), "serve the model in another precision"),
    "quota": (Failure(429, QUOTA), "(You exceeded your current quota); raise the quota"),
    "402": (Failure(402), "HTTP 402 (out of order); raise the quota"),
    "500": (Failure(500, NO_ECHO), "HTTP 500 (echo is not supported with logprobs)"),
    "400": (Failure(400), "HTTP 400 (out of order)"),
    "422": (Failure(422, NO_ECHO), "HTTP 422 (echo is not supported with logprobs)"),
    "405": (Failure(405), "HTTP 405 (out of order); check the URL"),
}


@pytest.mark.parametrize(("failure", "told"), LASTING.values(), ids=LASTING.keys())
def test_a_refusal_that_lasts_is_told_in_the_servers_words_and_not_tried_again(
    server, scorer, waits, failure, told
):
    server.failures.extend([failure] * 99)
    assert told in error_of(scorer)
    assert len(server.seen) <= 2  # one of each format
    assert waits == []


LATER = {
    "any": (Failure(400), "HTTP 400 (out of order); look into the log of the server"),
    "an error": (
        Failure(200, b'{"error": {"message": "busy"}}'),
        "HTTP 200 (busy); look into the log of the server",
    ),
    "a filter": (Failure(400, b"content_filter"), "(content_filter); turn the filter"),
    "length": (Failure(400, b"too many tokens"), "(too many tokens); give a smaller context"),
    "no values": (Failure(200, b"{}"), "not in the format 'prompt_logprobs', unlike others before"),
}


@pytest.mark.parametrize(("failure", "told"), LATER.values(), ids=LATER.keys())
def test_a_refusal_later_on_names_a_fix(server, scorer, failure, told):
    scored(scorer, [random_ids(5)])
    server.failures.extend([failure] * 9)
    assert told in error_of(scorer)


def test_an_answer_to_the_generated_tokens_is_an_object(server, scorer):
    """What is generated is asked for without log-probabilities of a prompt."""

    def answered(body) -> None:
        if "prompt_logprobs" not in body:
            server.failures.append(Failure(200, b'"hi"'))

    server.hold = answered
    assert "the answer is no JSON object" in error_of(scorer)


@pytest.mark.parametrize("status", [307, 401, 503])
def test_headers_may_hold_any_bytes(server, scorer, status):
    headers = {"Location": "http://h\xf6st/v1", "Retry-After": "\xb2", "X-Served-By": "\xe9"}
    server.failures.extend([Failure(status, headers=headers)] * 99)
    assert error_of(scorer).startswith(server.url)


def test_a_request_that_is_too_long_is_not_repeated(server, directory):
    """No other form of it is tried once one is known."""
    scorer = scorer_of(server, directory, context=CONTEXT + 2)
    message = error_of(scorer, random_ids(CONTEXT + 2))
    assert "HTTP 400 (the " in message
    assert message.endswith("give a smaller context")
    assert len(server.seen) <= FIRST_ASKED + 2 + len(PROBES)  # all that go at a time


ENDLESS = {
    "a slow body": Failure(raw=http(b"["), forever=b"0,", pause=0.02),
    "silence": Failure(silent=True),
}


@pytest.mark.parametrize("failure", ENDLESS.values(), ids=ENDLESS.keys())
def test_no_answer_takes_longer_than_the_time_limit(server, directory, failure):
    scorer = scorer_of(server, directory, timeout=0.15)
    server.failures.extend([failure] * 99)
    message = error_of(scorer)
    assert message.startswith(f"{server.url}: no answer in 0.15 s; tried {ATTEMPTS} times")


UNENDING = {
    "a fast body": Failure(raw=http(b"["), forever=b"0," * 9999),
    "a gzip bomb": Failure(200, gzip.compress(bytes(1 << 26)), {"Content-Encoding": "gzip"}),
}


@pytest.mark.parametrize("failure", UNENDING.values(), ids=UNENDING.keys())
def test_no_answer_takes_memory_without_limit(server, scorer, monkeypatch, failure):
    monkeypatch.setattr(endpoint_client, "LARGEST", 1 << 20)
    server.failures.append(failure)
    tracemalloc.start()
    try:
        message = error_of(scorer)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()
    assert "the answer is larger than 1,048,576 bytes" in message


def test_an_error_in_a_good_answer_is_shown(server, scorer):
    server.failures.extend([Failure(200, b'{"error": {"message": "no such model"}}')] * 9)
    assert "no such model" in error_of(scorer)


def test_a_budget_is_told_before_the_first_request_and_retries_count(server, directory):
    budget = FIRST_ASKED + 10
    scorer = scorer_of(server, directory, max_requests=budget, concurrency=1)
    # seven, those that find out how to ask and whom, two among them, and two at the end
    message = error_of(scorer, *[random_ids(5)] * 7)
    needed = FIRST_ASKED + 11
    assert f"{needed} more requests are needed, and the budget is {budget} (0 requests)" in message
    assert server.seen == []
    scored(scorer, [random_ids(5)])
    assert scorer.client.requests_made == len(server.seen) == ASKED
    server.failures.extend([Failure(500)] * 6)
    message = error_of(scorer, *[random_ids(5)] * 3)
    assert f"the budget is {budget} ({budget} requests, 6 of them failed (6 x HTTP 500)" in message
    assert "What is stored is kept" in message
    assert len(server.seen) == budget


class TestCancellation:
    """What is queued is never sent, and what is under way does not keep anybody waiting."""

    @pytest.fixture
    def stuck(self, server, directory):
        scorer = scorer_of(server, directory, concurrency=2)
        scored(scorer, [random_ids(5)])
        answered = len(server.seen) + 2

        def hold(_) -> None:
            if len(server.seen) > answered:
                server.closing.wait()

        server.hold = hold
        return scorer

    def test_when_the_caller_pauses(self, server, scorer):
        """No more is sent than fits beside the answers that wait for the caller."""
        results = scorer.token_logprobs([random_ids(5)] * 50)
        for number in range(10):
            next(results)
            assert len(server.seen) <= FIRST_ASKED + 2 + 8 + 1 + number
        results.close()

    def test_on_an_interrupt(self, server, stuck):
        before = signal.signal(signal.SIGINT, signal.default_int_handler)  # shells may ignore it
        hold = server.hold
        shots = itertools.count()

        def interrupting(body) -> None:
            # While a result is waited for, in vain.
            if len(server.seen) == ASKED + 2 + 2 and next(shots) == 0:
                os.kill(os.getpid(), signal.SIGINT)
            hold(body)

        server.hold = interrupting
        try:
            with pytest.raises(KeyboardInterrupt):
                list(stuck.token_logprobs([random_ids(5)] * 50))
        finally:
            signal.signal(signal.SIGINT, before)
        self.nothing_is_left(server)

    @pytest.mark.parametrize("message", ["not in the format", "HTTP 401"])
    def test_on_an_error(self, server, stuck, message):
        if message == "HTTP 401":
            server.failures.append(Failure(401))
        else:

            def without_choices(answer, _) -> None:
                answer["choices"] = []

            server.tamper = without_choices
        with pytest.raises(InputError, match=message) as caught:
            list(stuck.token_logprobs([random_ids(5)] * 50))
        self.nothing_is_left(server)
        del caught  # until here, it kept alive what had not been closed

    def nothing_is_left(self, server) -> None:
        before = len(server.seen)
        assert before < ASKED + 9
        assert not [t for t in threading.enumerate() if "portal" in t.name]
        server.closing.set()
        assert len(server.seen) == before


NO_HOSTS = ("host:99999", "host:a", "\udcff", "a" * 300, "a..b")
REMOTE = ("example.org", "10.0.0.7", "[2001:db8::1]", "localhost.evil.org")
CROSSES = "the key in OPENAI_API_KEY would cross the network"


@pytest.mark.parametrize(
    ("url", "settings", "message"),
    [
        ("localhost:8000", {}, "no URL of an endpoint"),
        ("http://[", {}, "no URL of an endpoint"),
        (f"https://me:{SECRET}@host/v1", {}, "put the key into OPENAI_API_KEY"),
        (f"https://host/v1?key={SECRET}", {}, "put the key into OPENAI_API_KEY"),
        *((f"http://{host}/v1", {}, CROSSES) for host in REMOTE),
        ("https://host/v1", {"api_key_env": "BROKEN"}, "BROKEN: the key holds a space"),
        ("https://host/v1", {"concurrency": 100_000}, "concurrency is 100000"),
        *(
            ("https://host/v1", {"timeout": seconds}, "timeout is ")
            for seconds in (math.nan, math.inf, 0.0, -1.0)
        ),
        *((f"https://{host}/v1", {}, "no URL of an endpoint") for host in NO_HOSTS),
    ],
)
def test_what_is_refused_before_anything_is_sent(monkeypatch, url, settings, message):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("BROKEN", f"{SECRET}\nbreak")
    told = refusal(Client, url, **settings)
    assert message in told and SECRET not in told


def test_where_a_key_may_go(monkeypatch):
    """Over a loopback, which is no network, or encrypted."""
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    here = ("127.0.0.1", "localhost", "[::1]")
    for url in (*(f"https://{host}" for host in REMOTE), *(f"http://{host}" for host in here)):
        Client(f"{url}/v1")
    monkeypatch.delenv("OPENAI_API_KEY")
    Client(f"http://{REMOTE[0]}/v1")


def test_no_proxy_comes_between_and_no_cookie_is_kept(server, scorer, monkeypatch):
    """A proxy would get the key in plain text."""
    for name in ("HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    cookies = {"Set-Cookie": "session=1; Path=/", "Retry-After": "0"}
    server.failures.extend([Failure(503, headers=cookies)] * 3)
    scored(scorer, [random_ids(3)] * 20)
    assert not any("cookie" in headers for headers, _ in server.seen)


class TestKey:
    @pytest.fixture
    def keyed(self, server, directory, monkeypatch):
        monkeypatch.setenv("MY_KEY", f" {SECRET}\n")  # `export MY_KEY="$(cat file)"` may leave it
        return scorer_of(server, directory, api_key_env="MY_KEY")

    def test_is_sent_in_one_header_or_none(self, server, directory, monkeypatch):
        for key in ("", SECRET):
            monkeypatch.setenv("OPENAI_API_KEY", key)
            server.seen.clear()
            scored(scorer_of(server, directory), [random_ids(3)])
            for headers, body in server.seen:
                assert headers.pop("authorization", "Bearer ") == f"Bearer {key}"
                assert SECRET not in repr((headers, body))

    @pytest.mark.parametrize(
        "failure",
        [
            Failure(403, f"{'x' * 185}{SECRET}".encode()),  # where the message is cut
            Failure(307, headers={"Location": "http://example.org/"}),
            Failure(200, b'{"choices": []}', cut=True),
        ],
        ids=["403", "redirect", "cut"],
    )
    def test_is_seen_nowhere(self, server, keyed, caplog, capfd, failure):
        caplog.set_level(logging.DEBUG)
        server.failures.extend([failure] * 99)
        with pytest.raises(InputError) as caught:
            list(keyed.token_logprobs([random_ids(3)]))
        ours = caught.tb.tb_next  # this function knows the key
        told = traceback.StackSummary.extract(traceback.walk_tb(ours), capture_locals=True).format()
        assert server.seen[0][0]["authorization"] == f"Bearer {SECRET}"
        out, err = capfd.readouterr()
        shown = [*told, repr(caught.value), caplog.text, out, err, repr(keyed)]
        shown.append(keyed.client.summary())
        assert SECRET[:9] not in "".join(shown)  # nor, then, the whole of it
        assert caplog.records

    @pytest.mark.parametrize(
        "spell",
        [
            str,
            str.upper,
            lambda key: quote(key).replace("-", "%2D"),
            lambda key: "".join(f"&#x{ord(c):x};" for c in key),
            lambda key: "".join(f"\\u{ord(c):04x}" for c in key),
            lambda key: "".join(f"%25{ord(c):02X}" for c in key),
            lambda key: "".join(f"&amp;#{ord(c)};" for c in key),
            lambda key: "".join(f"%26%23{ord(c)};" for c in key),
            lambda key: "".join(f"\\\\x{ord(c):02x}" for c in key),
        ],
    )
    def test_is_struck_out_where_a_server_repeats_it(self, server, keyed, spell):
        spelt = spell(SECRET)
        server.failures.extend([Failure(401, f'{{"error": "<{spelt}>"}}'.encode())] * 9)
        message = error_of(keyed)
        assert "***" in message
        assert all(spelt[i : i + 7].lower() not in message.lower() for i in (4, 9, 14))
        server.failures.clear()

        def as_the_model(answer, _) -> None:
            answer["model"] = spelt

        server.tamper = as_the_model
        scored(keyed, [random_ids(5)])
        entry = {"7": {"logprob": spelt}}

        def among_the_tokens(answer, _) -> None:
            answer["choices"][0]["prompt_logprobs"].insert(3, entry)

        server.tamper = among_the_tokens
        told = error_of(keyed) + keyed.client.summary()
        if not spelt.startswith("\\"):
            assert spelt[4:11].lower() not in told.lower()

    def test_is_not_shown_in_part_where_a_value_is_cut(self, server, keyed):
        long = f"{SECRET}{'x' * 60}{SECRET}"
        scored(keyed, [random_ids(5)])

        def as_usage(answer, _) -> None:
            answer["usage"] = {"prompt_tokens": long}

        def as_value(answer, _) -> None:
            (entry,) = answer["choices"][0]["prompt_logprobs"][2].values()
            entry["logprob"] = long

        for server.tamper in (as_usage, as_value):
            message = error_of(keyed)
            assert SECRET[:6] not in message
            assert SECRET[-6:] not in message
            assert "***" in message
            assert len(message) < 600
