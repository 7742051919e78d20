"""A model behind HTTP: the same numbers as here, or a message that says what is wrong.

The server runs a small network; every way to lie, break or stall that real servers have is switched
on in turn. Nothing sleeps: waits between tries are set to nothing, and servers wait for events.
"""

import base64
import gzip
import itertools
import logging
import math
import os
import shutil
import signal
import threading
import time
import traceback
import tracemalloc
from dataclasses import replace
from email.utils import formatdate
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models
from transformers import PreTrainedTokenizerFast

from contamination.errors import InputError
from contamination.scoring import endpoint, endpoint_client
from contamination.scoring.endpoint import EndpointScorer
from contamination.scoring.endpoint_answers import Misread, Spelling
from contamination.scoring.endpoint_completions import FORMATS, CompletionsRoute
from contamination.scoring.endpoint_trust import FIRST_ASKED, PROBES
from contamination.testsets.tokens import tokenize
from fakes.completions_server import CompletionsServer, Failure, Network, serving
from fakes.float64_loop import float64_loop, random_ids, scored

CONTEXT = 64
WINDOW = CONTEXT - 2  # the window's last token and a generated one need room, too
NATS = 1e-4
SECRET = "sk-secret-0123456789"
LETTERS = np.arange(40, 46, dtype=np.int32)  # tokens that have a text of their own
LENGTHS = [1, 5, WINDOW - 1, WINDOW, WINDOW + 1, 3 * WINDOW // 2 + 1, 2 * WINDOW + 7]


@pytest.fixture(scope="module")
def directory(make_model) -> Path:
    return make_model(CONTEXT)


@pytest.fixture(scope="module")
def network(directory) -> Network:
    return Network(directory)


@pytest.fixture
def server(network):
    with serving(network) as running:
        yield running


@pytest.fixture(autouse=True)
def surroundings(monkeypatch):
    """No key, and no wait between tries; return the list of the waits."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    waits = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr("anyio.sleep", sleep)  # of the openai client
    return waits


@pytest.fixture
def scorer(server, directory) -> EndpointScorer:
    return scorer_of(server, directory)


def scorer_of(server: CompletionsServer, directory: Path, **changes) -> EndpointScorer:
    arguments = {"context": CONTEXT, "timeout": 60.0} | changes
    return EndpointScorer(server.url, "tiny", directory, **arguments)


@pytest.fixture(scope="module")
def sequences() -> list[np.ndarray]:
    return [random_ids(length, seed) for seed, length in enumerate(LENGTHS)]


@pytest.fixture(scope="module")
def expected(directory, sequences) -> list[np.ndarray]:
    return [float64_loop(directory, ids, WINDOW) for ids in sequences]


def agree(values, expected) -> None:
    for ours, theirs in zip(values, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=NATS)


@pytest.fixture(scope="module")
def route(tokenizer) -> CompletionsRoute:
    """Token ids, answered with lists of texts and log-probabilities."""
    return CompletionsRoute(Spelling(tokenizer), "token ids", "m", FORMATS[2], 0)


def is_whole(tokenizer, token: int) -> bool:
    """Whether the token has a text of its own, not a piece of a character."""
    return "\N{REPLACEMENT CHARACTER}" not in tokenizer.decode([token])


def error_of(scorer, *sequences: np.ndarray) -> str:
    with pytest.raises(InputError) as caught:
        list(scorer.token_logprobs(sequences or [LETTERS]))
    return str(caught.value)


class TestAgreement:
    @pytest.mark.parametrize(
        ("style", "fields"),
        [
            ("vllm", {"prompt_logprobs"}),
            ("sglang", {"echo", "logprobs", "return_token_ids"}),
            ("openai", {"echo", "logprobs"}),
        ],
    )
    def test_with_a_loop_over_tokens(self, network, directory, sequences, expected, style, fields):
        with serving(network, style) as server:
            scorer = scorer_of(server, directory)
            agree(scored(scorer, sequences), expected)
        asked = {name for wire in FORMATS for name in wire.fields} & server.seen[-1][1].keys()
        assert asked == fields
        assert scorer.client.requests_made == len(server.seen)

    def test_a_window_too_many_would_be_noticed(self, server, directory, sequences, expected):
        """The tests above mean something only if the windows matter that much."""
        (values,) = scored(scorer_of(server, directory, context=CONTEXT - 2), sequences[-1:])
        assert np.abs(values - expected[-1]).max() > 100 * NATS

    def test_the_whole_context_is_used_and_no_more(self, server, scorer):
        scored(scorer, [random_ids(5 * CONTEXT)])
        assert max(len(body["prompt"]) + body["max_tokens"] for _, body in server.seen) == CONTEXT

    def test_any_order_of_answers_will_do(self, server, scorer, sequences, expected):
        """The first sequence is answered only after all the others have been handed over."""
        scored(scorer, [])
        others_are_there = threading.Event()
        first = sequences[-1].tolist()

        def hold(body) -> None:
            if body["prompt"][1:4] == first[:3]:
                others_are_there.wait()

        server.hold = hold
        order, values = [], {}
        for index, value in scorer.token_logprobs([sequences[-1], *sequences[:-1]]):
            order.append(index)
            values[index] = value
            if len(order) == len(sequences) - 1:
                others_are_there.set()
        assert order[-1] == 0
        agree([values[i] for i in range(1, len(sequences))] + [values[0]], expected)

    def test_so_many_requests_at_a_time(self, server, directory, sequences, expected):
        scorer = scorer_of(server, directory, concurrency=3)
        scored(scorer, sequences[:1])
        together = threading.Barrier(3, timeout=60)  # lets through threes alone
        under_way, requests = [], itertools.count()

        def hold(_) -> None:
            if next(requests) >= 24:
                return  # the probes come last, one by one
            under_way.append(len(server.seen) - len(server.released))
            together.wait()

        server.hold = hold
        agree(scored(scorer, sequences[:4] * 6), expected[:4] * 6)
        assert max(under_way) == 3

    def test_the_same_call_gives_the_same_bits(self, scorer, sequences):
        for values, again in zip(scored(scorer, sequences), scored(scorer, sequences), strict=True):
            np.testing.assert_array_equal(values, again)

    def test_only_wanted_tokens_are_paid_for(self, server, scorer, sequences, expected):
        masks = [np.zeros(len(ids), dtype=bool) for ids in sequences]
        masks[1][2] = True
        masks[-1][-3] = True
        scored(scorer, sequences[:1])
        before = len(server.seen)
        results = dict(scorer.token_logprobs(sequences, masks))
        assert sorted(results) == list(range(len(sequences)))
        for index, mask in enumerate(masks):
            agree([results[index][mask]], [expected[index][mask]])
        assert np.isnan(results[0]).all()
        probes = [prompt.tolist() for prompt in scorer._trust.prompts]
        asked = [body["prompt"] for _, body in server.seen[before:]]
        prompts = sorted(len(prompt) for prompt in asked if prompt not in probes)
        assert prompts == [4, len(sequences[-1]) - 2 - 4 * WINDOW // 2 + WINDOW // 2 + 1]

    def test_nothing_wanted_is_no_request(self, server, scorer):
        assert list(scorer.token_logprobs([])) == []
        ((index, values),) = scorer.token_logprobs([random_ids(3)], [np.zeros(3, dtype=bool)])
        assert (index, len(values)) == (0, 3)
        assert server.seen == []


class TestText:
    """Servers that take no token ids."""

    @pytest.fixture
    def texts(self, tokenizer, prose) -> list[np.ndarray]:
        return [ids[: WINDOW - 1] for ids in tokenize(tokenizer, [p[:60] for p in prose[:6]])]

    @pytest.mark.parametrize("style", ["text", "together"])
    def test_that_cut_texts_up_as_we_do(self, network, directory, texts, style):
        with serving(network, style) as server:
            scorer = scorer_of(server, directory)
            agree(scored(scorer, texts), [float64_loop(directory, ids, WINDOW) for ids in texts])
        starts = server.seen[-1][1]["prompt"].startswith("<|endoftext|>")
        assert starts == (style == "text")

    def test_that_cut_a_text_up_anew_or_start_it_anew(self, network, directory, tokenizer, prose):
        """A start token would be in the middle of what is longer than the context."""
        split, whole = np.concatenate(tokenize(tokenizer, list("river"))), prose[0] * 3
        assert len(split) > len(tokenize(tokenizer, ["river"])[0])
        for style, ids, message in (
            ("text", split, "cuts the prompt up anew"),
            ("together", tokenize(tokenizer, [whole])[0][: WINDOW + 5], "a token of its own"),
        ):
            with serving(network, style) as server:
                assert message in error_of(scorer_of(server, directory), ids)

    def test_that_keep_silent_about_tokens(self, network, directory):
        with serving(network, "text") as server:
            server.tamper = set_field((*LOGPROBS, "tokens"), None)
            message = error_of(scorer_of(server, directory))
        assert "asked with token ids: http://" in message
        assert "HTTP 422 (prompt: Input should be a valid string)" in message
        assert "asked with text: " in message
        assert "does not tell which tokens it scored" in message

    def test_that_name_some_tokens_alone(self, tokenizer, route):
        """With ids, the count and the others prove enough; with text, each token must be named."""
        answer = echo([None, -1.0, -2.0], ["", tokenizer.decode([40]), None])
        assert route.read(answer, [0, 40, 41]).tolist() == [-1, -2]
        with pytest.raises(Misread, match="gives unnamed at position 2"):
            replace(route, prompt_as="text").read(answer, [0, 40, 41])
        with pytest.raises(Misread, match="does not tell which tokens it scored"):
            route.read(echo([None, -1.0, -2.0], [None, None, "H"]), [0, 40])  # what it generated

    def test_pieces_of_characters_prove_nothing(self, tokenizer, route):
        """Their text is the same, whatever the piece."""
        piece = next(i for i in range(300) if not is_whole(tokenizer, i))
        answer = echo([None, -1.0], ["", tokenizer.decode([piece])])
        with pytest.raises(Misread):
            replace(route, prompt_as="text").read(answer, [0, piece])
        assert route.read(answer, [0, piece]) == [-1.0]
        with pytest.raises(Misread):
            route.read(echo([None, -1.0], ["", "<|endoftext|>"]), [0, piece])


class TestSpelling:
    """Servers call tokens by several names."""

    @pytest.mark.parametrize("prompt_as", ["token ids", "text"])
    @pytest.mark.parametrize("name", ["decoded", "raw", "id"])
    def test_of_byte_level_vocabularies(self, tokenizer, route, prompt_as, name):
        whole = [i for i in range(1, 300) if is_whole(tokenizer, i)]
        assert any(tokenizer.decode([i]).startswith(" ") for i in whole)
        names = {
            "decoded": lambda i: tokenizer.decode([i]),
            "raw": tokenizer.convert_ids_to_tokens,
            "id": "token_id:{}".format,
        }
        route = replace(route, prompt_as=prompt_as)
        for token in whole:
            answer = echo([None, -1.0], ["<|endoftext|>", names[name](token)])
            assert route.read(answer, [0, token]) == [-1]
            with pytest.raises(Misread):
                route.read(answer, [0, next(i for i in whole if i != token)])

    @pytest.mark.parametrize("name", ["▁river", " river", "river"])
    def test_of_vocabularies_with_marked_spaces(self, route, name):
        backend = Tokenizer(models.WordLevel({"<s>": 0, "▁river": 1, "▁stone": 2}, "<s>"))
        backend.decoder = decoders.Metaspace()
        marked = PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>")
        route = replace(route, spelling=Spelling(marked))
        assert route.read(echo([None, -1.0], ["<s>", name]), [0, 1]) == [-1]
        with pytest.raises(Misread, match=r"where 2 .* was sent"):
            route.read(echo([None, -1.0], ["<s>", name]), [0, 2])


def test_rounding_above_zero_is_certainty(tokenizer, route):
    ids = [0, *tokenizer.convert_tokens_to_ids(["H", "I"])]
    assert route.read(echo([None, 5e-4, -0.5], ["", "H", "I"]), ids).tolist() == [0, -0.5]


def test_lists_of_different_lengths_are_not_laid_side_by_side(tokenizer, route) -> None:
    """Without the value of one token those behind it would move, one generated token after all."""
    ids = [0, *tokenizer.convert_tokens_to_ids(["H", "I"])]
    with pytest.raises(Misread, match="4 tokens and 3 log-probabilities"):
        route.read(echo([None, -0.5, -2.0], ["", "H", "I", "J"]), ids)


def echo(logprobs, tokens) -> dict:
    return {"choices": [{"logprobs": {"token_logprobs": logprobs, "tokens": tokens}}]}


# --- servers that lie -----------------------------------------------------------------------------


def lists(answer) -> tuple[list, list]:
    """Tokens and log-probabilities of an answer, in any of the formats that have lists."""
    found = answer["choices"][0]["logprobs"]
    return found["tokens"], found["token_logprobs"]


def cut(start, stop):
    """Leave tokens out, with their log-probabilities."""

    def tamper(answer, _):
        for values in lists(answer):
            del values[start:stop]

    return tamper


def put(start, stop, value):
    """Give these tokens the same log-probability."""

    def tamper(answer, _):
        values = lists(answer)[1]
        values[start:stop] = [value] * len(values[start:stop])

    return tamper


def set_field(path, value):
    """Replace what stands at this place of the JSON, if it has that place."""

    def tamper(answer, _):
        *way, last = path
        for key in way:
            answer = answer[key] or {}
        answer[last] = value

    return tamper


def drop_first(answer, _):
    cut(0, 1)(answer, _)
    put(0, 1, None)(answer, _)


def ignore_context(answer, _):
    tokens, values = lists(answer)
    values[1:] = [-1.0 - ord(token[0]) / 100 for token in tokens[1:]]


def hide_start(answer, _):
    answer["usage"]["prompt_tokens"] += 1


LOGPROBS = ("choices", 0, "logprobs")
LIES = {
    "no log-probabilities": (set_field(LOGPROBS, None), "the answer holds no token_logprobs"),
    "empty lists": (cut(None, None), "the answer holds no token_logprobs"),
    "generated tokens alone": (cut(0, -1), "the answer scores what was generated"),
    "nulls": (put(0, -1, None), "the answer scores no token of the prompt"),
    "no choices": (set_field(("choices",), []), "the answer is not in the format 'echo'"),
    "first token dropped": (drop_first, "leaves out the first token of the prompt"),
    "last tokens dropped": (cut(-3, None), "log-probabilities for a prompt of"),
    "one is null": (put(3, 4, None), "no log-probability (None) for the token at position 3"),
    "text for a number": (put(3, 4, "-1"), "no log-probability ('-1') for the token at position 3"),
    "true": (put(3, 4, True), "no log-probability (True) for the token at position 3"),
    "false": (put(3, 4, False), "no log-probability (False) for the token at position 3"),
    "a list": (put(3, 4, [-1.0]), "no log-probability (a list) for the token at position 3"),
    "a huge number": (put(3, 4, -(10**4000)), "0… for the token at position 3"),
    "a long text": (put(3, 4, "x" * 9999), "x…) for the token"),
    "too large a number": (put(3, 4, math.inf), "gives inf for the token at position 3"),
    "true for ids": (set_field((*LOGPROBS, "token_ids"), [True] * 9), "not in the format 'echo'"),
    "ids of text": (set_field((*LOGPROBS, "token_ids"), ["0"] * 9), "not in the format 'echo'"),
    "broken ids": (set_field((*LOGPROBS, "token_ids"), [0.5] * 9), "not in the format 'echo'"),
    "not a number": (put(3, 4, math.nan), "gives nan for the token at position 3"),
    "minus infinity": (put(3, 4, -math.inf), "gives -inf for the token at position 3"),
    "vLLM's minus infinity": (put(3, 4, -9999.0), "gives -9999.0 for the token at position 3"),
    "probabilities": (put(3, 4, 0.25), "a log-probability is at most 0"),
    "zeros": (put(1, None, 0.0), "every token has the log-probability 0, which stands for none"),
    "constants": (put(1, None, -2.5), "every token has the log-probability -2.5"),
    "no context": (ignore_context, "they do not depend on the context"),
    "first token scored": (put(0, 1, -3.0), "hides one before it"),
    "other token": (set_field((*LOGPROBS, "tokens", 3), "tower"), "gives 'tower' at position 3, w"),
    "no tokens": (set_field((*LOGPROBS, "tokens"), None), "does not tell which tokens it scored"),
    "hidden start token": (hide_start, "tokens in a prompt of"),
}


@pytest.mark.parametrize(("tamper", "message"), LIES.values(), ids=LIES.keys())
def test_lies_are_refused_at_first_and_later(network, directory, tamper, message):
    """What only the two first answers together can show is not asked of the later ones."""
    with serving(network, "openai") as server:
        earlier = scorer_of(server, directory)
        scored(earlier, [random_ids(5)])
        server.tamper = tamper
        assert message in error_of(scorer_of(server, directory))
        if tamper is not ignore_context and "every token" not in message:
            assert message in error_of(earlier)


@pytest.mark.parametrize("style", ["vllm", "sglang", "openai"])
class TestTokensThatWereNotSent:
    """What the server makes of the ids, as each format shows it."""

    @pytest.mark.parametrize(
        ("read", "message"),
        [
            (lambda ids: [0, *ids], "puts a token of its own (FIRST) before the prompt"),
            (lambda ids: ids[1:], "leaves out the first token of the prompt"),
            (lambda ids: [*ids[:2], 299, *ids[2:]], "at position 2, where"),
            (lambda ids: [*ids[:2], *ids[3:]], "at position 2, where"),
            (lambda ids: [*ids[:2], (ids[2] + 1) % 256 + 40, *ids[3:]], "at position 2, where"),
            (lambda ids: ids[:-1], ""),
        ],
        ids=["start added", "first dropped", "one added", "one dropped", "one changed", "cut"],
    )
    def test_are_refused_at_first_and_later(self, network, directory, style, read, message):
        first = {"vllm": "unnamed", "sglang": "0 ('<|endoftext|>')", "openai": "'<|endoftext|>'"}
        message = message.replace("FIRST", first[style])
        with serving(network, style) as server:
            earlier = scorer_of(server, directory)
            scored(earlier, [random_ids(5)])
            server.read = read
            assert message in error_of(scorer_of(server, directory))
            assert message in error_of(earlier)


class TestPromptLogprobs:
    """Lies of vLLM's format."""

    def test_likeliest_tokens_alone(self, server, scorer):
        top = {"17": {"logprob": -0.5}, "18": {"logprob": -0.7}}
        server.tamper = set_field(("choices", 0, "prompt_logprobs", slice(2, 4)), [top, top])
        message = error_of(scorer)
        assert "the server gives 17 (" in message
        assert "its likeliest tokens alone" in message

    def test_the_likeliest_beside_the_token_do_no_harm(self, server, scorer, sequences, expected):
        def tamper(answer, _):
            found = answer["choices"][0]["prompt_logprobs"]
            found[1:] = [{"301": {"logprob": -0.5}} | entry for entry in found[1:]]

        server.tamper = tamper
        agree(scored(scorer, sequences), expected)

    def test_a_null_in_the_middle(self, server, scorer):
        """Prefix caching leaves them out in some versions."""
        server.tamper = set_field(("choices", 0, "prompt_logprobs", 3), None)
        assert "with prefix caching off" in error_of(scorer)

    @pytest.mark.parametrize(
        "value", [[None, {}], [None, 3], [None, {"x": {}}], "none", [None] * 9]
    )
    def test_nonsense(self, server, scorer, value):
        server.tamper = set_field(("choices", 0), {"prompt_logprobs": value, "logprobs": None})
        message = error_of(scorer)
        assert "no way to the log-probabilities of a prompt (asked with token ids:" in message


def test_a_server_that_scores_no_prompts(network, directory):
    """llama.cpp's own: it takes every field and forgets about it."""
    with serving(network, "llama.cpp") as server:
        message = error_of(scorer_of(server, directory))
    assert message == (
        "no way to the log-probabilities of a prompt (asked with token ids: "
        f"{server.url}: the answer holds no token_logprobs); use a server that scores prompts of "
        "token ids, such as vLLM or SGLang"
    )
    assert len(server.seen) == len(FORMATS)


@settings(max_examples=200)
@given(data=st.data())
def test_no_edit_of_the_tokens_goes_unnoticed(tokenizer, route, data):
    """Whatever a server adds, drops, swaps or replaces: refused, in both ways to name tokens."""
    whole = st.sampled_from([i for i in range(300) if is_whole(tokenizer, i)])
    prompt = [0, *data.draw(st.lists(whole, min_size=1, max_size=8))]
    theirs = list(prompt)
    for _ in range(data.draw(st.integers(1, 3))):
        position = data.draw(st.integers(0, len(theirs)))
        edit = data.draw(st.sampled_from(["add", "drop", "replace"]))
        stop = position + (edit != "add")
        theirs[position:stop] = [] if edit == "drop" else [data.draw(whole)]
    generated = data.draw(st.lists(whole, max_size=1))
    answered = [*theirs, *generated]
    values = [None, *[-1.0] * (len(answered) - 1)] if answered else []
    by_text = echo(values, [tokenizer.decode([i]) for i in answered])
    named = [v and {str(i): {"logprob": v}} for i, v in zip(theirs, values, strict=False)]
    by_id = {"choices": [{"prompt_logprobs": named}]}
    for wire, answer, same in [
        (FORMATS[2], by_text, answered[: len(prompt)] == prompt),
        (FORMATS[0], by_id, theirs[1:] == prompt[1:]),  # the first has no entry
    ]:
        asked = replace(route, format=wire)
        if same:
            assert len(asked.read(answer, prompt)) == len(prompt) - 1
        else:
            with pytest.raises(InputError):
                asked.read(answer, prompt)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=300)
@given(
    wire=st.sampled_from(FORMATS),
    answer=JSON
    | st.fixed_dictionaries(
        {
            "choices": st.lists(
                st.fixed_dictionaries(
                    {
                        "prompt_logprobs": st.lists(st.dictionaries(st.text("12"), JSON) | JSON),
                        "prompt_token_ids": JSON,
                        "logprobs": st.fixed_dictionaries(
                            {"token_logprobs": st.lists(st.none() | st.floats() | JSON)},
                            optional={"tokens": JSON, "token_ids": JSON},
                        ),
                    }
                ),
                max_size=1,
            ),
        },
        optional={"usage": JSON, "prompt": JSON},
    ),
)
def test_nonsense_is_refused_in_words(route, wire, answer):
    with pytest.raises(InputError):
        replace(route, format=wire).read(answer, [0, 7, 11])


def test_another_model_in_the_middle_is_refused(server, scorer):
    scored(scorer, [random_ids(5)])
    server.tamper = set_field(("model",), "tiny-turbo")
    assert "came from 'tiny' at first and from 'tiny-turbo' now" in error_of(scorer)


# --- servers that break ---------------------------------------------------------------------------

HALF = Failure(200, b'{"choices": [1, 2]}', cut=True)
BREAKS = {
    "500": (Failure(500), "HTTP 500 (out of order)", "HTTP 500"),
    "503": (Failure(503, b"<html>\n busy"), "HTTP 503 (<html> busy)", "HTTP 503"),
    "429": (Failure(429, headers={"Retry-After": "0"}), "HTTP 429", "HTTP 429"),
    "cut": (HALF, "connection broke", "broken connection"),
}


@pytest.mark.parametrize(("failure", "told", "kind"), BREAKS.values(), ids=BREAKS.keys())
class TestPassingFailures:
    def test_are_tried_again(
        self, server, scorer, sequences, expected, surroundings, failure, told, kind
    ):
        server.failures.extend([failure] * 3)
        agree(scored(scorer, sequences), expected)
        made = scorer.client.requests_made
        assert made == len(server.seen)
        assert scorer.summary() == (
            f"{made} requests, 3 of them failed (3 x {kind}), answered by 'tiny', "
            "noise 0 nats a token"
        )
        assert len(surroundings) == 3

    def test_are_given_up_in_the_end(self, server, scorer, failure, told, kind):
        scored(scorer, [random_ids(5)])
        server.failures.extend([failure] * 99)
        message = error_of(scorer)
        assert message.startswith(f"{server.url}: ")
        assert told in message
        assert f"tried {endpoint_client.ATTEMPTS} times" in message
        assert len(server.failures) == 99 - endpoint_client.ATTEMPTS


def test_a_server_that_stalls_is_asked_again(server, directory, sequences, expected):
    server.failures.append(Failure(silent=True))
    scorer = scorer_of(server, directory, timeout=0.3)
    agree(scored(scorer, sequences[:2]), expected[:2])
    assert "1 of them failed (1 x no answer in time)" in scorer.summary()


def test_a_server_that_went_away_is_waited_for_and_one_that_never_was_there_is_not(
    network, directory, surroundings
):
    with serving(network) as server:
        scorer, another = (scorer_of(server, directory) for _ in range(2))
        scored(scorer, [random_ids(5)])
    message = error_of(another)
    assert message.startswith(f"{server.url}: cannot be reached (")
    assert message.endswith("start the server or correct the URL")
    assert surroundings == []
    assert f"tried {endpoint_client.ATTEMPTS} times" in error_of(scorer)
    assert len(surroundings) == endpoint_client.ATTEMPTS - 1


class TestWaits:
    def test_grow_and_differ(self, server, scorer, surroundings):
        server.failures.extend([Failure(500)] * 99)
        error_of(scorer)
        assert len(surroundings) == endpoint_client.ATTEMPTS - 1
        for tries, wait in enumerate(surroundings):
            longest = min(0.5 * 2**tries, 8)
            assert 0.75 * longest <= wait <= longest
        assert len({wait / 2**tries for tries, wait in enumerate(surroundings)}) > 1

    NOW = 1_000_000.0

    @pytest.mark.parametrize("status", [429, 503])
    @pytest.mark.parametrize("until", ["90", formatdate(NOW + 90, usegmt=True)])
    def test_are_as_long_as_the_server_asks(
        self, server, scorer, surroundings, monkeypatch, status, until
    ):
        monkeypatch.setattr("time.time", lambda: self.NOW)
        server.failures.append(Failure(status, headers={"Retry-After": until}))
        scored(scorer, [random_ids(5)])
        assert surroundings == [90]

    @pytest.mark.parametrize("value", [formatdate(0), "-5", "soon", "nan"])
    def test_are_our_own_where_it_asks_for_none(self, server, scorer, surroundings, value):
        server.failures.append(Failure(429, headers={"Retry-After": value}))
        scored(scorer, [random_ids(5)])
        (wait,) = surroundings
        assert 0.3 < wait <= 0.5

    def test_of_hours_are_left_to_the_user(self, server, scorer, surroundings):
        server.failures.append(Failure(429, headers={"Retry-After": "86400"}))
        message = error_of(scorer)
        assert "the server asks to wait (Retry-After: 86400); tried 1 times. Run it" in message
        assert surroundings == []


SAYING_M = (b'{"error": {"message": "M"}}', b'{"error": "M"}', b'{"message": "M"}', b"M")


class TestLastingFailures:
    @pytest.mark.parametrize(
        ("failure", "told"),
        [
            (Failure(401), "HTTP 401 (out of order); put a valid key into OPENAI_API_KEY"),
            (Failure(403), "HTTP 403 (out of order); ask for access to the model"),
            (Failure(404), "HTTP 404 (out of order); check the model's name, and the URL"),
            (Failure(200, b"<html>"), "the answer is not JSON (application/json); give the base"),
            (Failure(200, b'{"choices": [', {"Content-Type": "text/html"}), "not JSON (text/html)"),
            (Failure(307, headers={"Location": "http://example.org/v1"}), "redirects to http://ex"),
            *((Failure(401, body), "HTTP 401 (M);") for body in SAYING_M),
        ],
    )
    def test_are_told_at_once(self, server, scorer, failure, told):
        server.failures.append(failure)
        message = error_of(scorer)
        assert message.startswith(f"{server.url}: ")
        assert told in message
        assert len(server.seen) == 1

    def test_errors_that_call_themselves_a_success(self, server, scorer):
        server.failures.extend([Failure(200)] * 99)
        message = error_of(scorer)
        assert (
            f"asked with token ids: {server.url}: HTTP 200 (out of order); asked with te" in message
        )
        assert scorer.client.requests_made == 9

    def test_a_request_that_is_too_long(self, server, directory):
        """A bad request is not repeated, and no other form of it is tried once one is known."""
        scorer = scorer_of(server, directory, context=CONTEXT + 9)
        message = error_of(scorer, random_ids(CONTEXT + 9))
        assert "HTTP 400 (the maximum context length is 64 tokens)" in message
        assert message.endswith("give a smaller context")
        assert len(server.seen) <= FIRST_ASKED + 2 + len(PROBES)  # all that go at a time

    def test_not_all_words_of_the_server_are_passed_on(self, server, scorer):
        server.failures.append(Failure(401, b'{"detail": "%s"}' % (rb"word \n" * 9999)))
        message = error_of(scorer)
        assert "HTTP 401 (word word word" in message
        assert "…); put a valid key" in message
        assert len(message) < 300


# --- servers without end --------------------------------------------------------------------------


def http(body: bytes = b"", status: str = "200 OK", *headers: str) -> bytes:
    """What a server sends, as it stands."""
    lines = (f"HTTP/1.1 {status}", "Content-Type: application/json", *headers)
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


LARGE = "the answer is larger than 1,114,112 bytes, the most that a prompt of the whole context"
LATE = "no answer within 0.75 s, all tries and waits included"
CHUNKED = "Transfer-Encoding: chunked"
BOMB = gzip.compress(bytes(1 << 26))
UNENDING = {
    "a fast body": (Failure(raw=http(b"["), forever=b"0," * 9999), LARGE),
    "a slow body": (Failure(raw=http(b"["), forever=b"0,", pause=0.02), LATE),
    "tiny chunks": (
        Failure(raw=http(b"", "200 OK", CHUNKED), forever=b"1\r\n0\r\n", pause=0.02),
        LATE,
    ),
    "an error's body": (Failure(raw=http(b"", "500 no"), forever=b"no " * 9999), LARGE),
    "a redirect's body": (Failure(raw=http(b"", "302 no"), forever=b"no " * 9999), LARGE),
    "a gzip bomb": (Failure(200, BOMB, {"Content-Encoding": "gzip"}), LARGE),
    "a gzip bomb of an error": (Failure(400, BOMB, {"Content-Encoding": "gzip"}), LARGE),
    "a huge body": (Failure(200, b" " * (1 << 21)), LARGE),
    "early replies": (Failure(raw=b"", forever=b"HTTP/1.1 100 Continue\r\n\r\n", pause=0.02), LATE),
    "headers": (Failure(raw=b"HTTP/1.1 200 OK\r\n", forever=b"X: y\r\n" * 9999), "broke"),
    "a header": (Failure(raw=b"HTTP/1.1 200 OK\r\nX: ", forever=b"y" * 9999), "broke"),
    "silence": (Failure(silent=True), LATE),
}


@pytest.mark.parametrize("earlier", [False, True], ids=["at first", "later"])
@pytest.mark.parametrize(("failure", "told"), UNENDING.values(), ids=UNENDING.keys())
def test_no_time_and_no_memory_without_limit(server, directory, failure, told, earlier):
    scorer = scorer_of(server, directory)
    if earlier:
        scored(scorer, [random_ids(5)])
    scorer.client.timeout = 0.15 if told == LATE else 9.0
    server.failures.extend([failure] * 99)
    tracemalloc.start()
    started = time.perf_counter()
    try:
        message = error_of(scorer)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert message.startswith(f"{server.url}: ")
    assert told in message
    assert peak < 16 << 20
    assert time.perf_counter() - started < 10  # on a machine with other things to do


def test_the_longest_answer_is_far_below_the_limit(server, scorer):
    sizes = []
    server.tamper = lambda answer, _: sizes.append(len(str(answer)))
    scored(scorer, [random_ids(2 * CONTEXT)])
    assert max(sizes) < endpoint.TOKEN_BYTES * CONTEXT / 4


DEEP = b"[" * 99_999
ODD = {
    "a redirect without a location": (
        Failure(raw=http(b"", "302 Found", "Content-Length: 0")),
        "redirects to no address; give the address that it ends at",
    ),
    "not modified": (Failure(304, b""), "redirects to no address"),
    "a redirect to nonsense": (
        Failure(307, headers={"Location": "http://[::"}),
        "redirects to http://[::;",
    ),
    "deep nesting": (Failure(200, DEEP), "the answer is not JSON (it nests too deep)"),
    "deep nesting of an error": (Failure(401, b'{"error": ' + DEEP), 'HTTP 401 ({"error": [[['),
    "a deep error": (Failure(400, b'{"error":' * 900 + b"1" + b"}" * 900), "HTTP 400 ("),
    "a key twice": (
        Failure(200, b'{"choices": [], "choices": []}'),
        "the answer is not JSON (a key stands there twice)",
    ),
    "a number of 5,000 digits": (Failure(200, b'{"choices": %s}' % (b"9" * 5000)), "not JSON (Ex"),
    "bytes that are no text": (Failure(200, b'{"choices": "\xff\xfe"}'), "the answer is not JSON"),
    "an encoding that is none": (
        Failure(401, b"no", {"Content-Type": "text/plain; charset=hex"}),
        "HTTP 401 (no); put a valid key",
    ),
    "text for a terminal": (Failure(401, b"\x1b[2J\x07 no"), "HTTP 401 ([2J no)"),
    "half a character": (Failure(401, rb'"\ud800 no"'), "HTTP 401 (no)"),
    "nothing": (Failure(200, b""), "the answer is not JSON"),
    "a body shorter than it says": (
        Failure(raw=http(b"{", "200 OK", "Content-Length: 9")),
        "broke",
    ),
    "a body longer than it says": (
        Failure(raw=http(b'{"choices": []}', "200 OK", "Content-Length: 9")),
        "the answer is not JSON",
    ),
    "chunks cut short": (Failure(raw=http(b"9\r\n{", "200 OK", CHUNKED)), "broke"),
    "no HTTP": (Failure(raw=b"SSH-2.0-OpenSSH_9.9\r\n"), "broke"),
    "damaged gzip": (Failure(200, b"{}", {"Content-Encoding": "gzip"}), "broke"),
    "a wait of years": (
        Failure(429, headers={"Retry-After": "99999999"}),
        "(Retry-After: 99999999)",
    ),
    "a wait without number": (Failure(429, headers={"Retry-After": "1e400"}), "Retry-After: 1e400"),
}


@pytest.mark.parametrize(("failure", "told"), ODD.values(), ids=ODD.keys())
def test_odd_answers_are_told_in_one_line(server, scorer, failure, told):
    server.failures.extend([failure] * 99)
    message = error_of(scorer)
    assert message.startswith((f"{server.url}: ", "no way to the log-probabilities of a prompt"))
    assert told in message
    assert len(message) < 600
    assert message.isprintable()


# --- budget, cancellation -------------------------------------------------------------------------


class TestBudget:
    def test_that_does_not_suffice_is_told_before_the_first_request(self, server, directory):
        scorer = scorer_of(server, directory, max_requests=12)
        # five, four to find out how to ask and whom, two among them, and two at the end
        with pytest.raises(InputError, match=r"13 more requests .* of 12 0 are used; .* is kept"):
            scorer.token_logprobs([random_ids(5)] * 5)
        assert server.seen == []
        scored(scorer, [random_ids(5)] * 4)
        assert scorer.client.requests_made == len(server.seen) == 12
        with pytest.raises(InputError, match=r"3 more requests .* of 12 12 are used"):
            scorer.token_logprobs([random_ids(5)])

    def test_counts_windows(self, server, directory):
        scorer = scorer_of(server, directory, max_requests=2 + 8)
        with pytest.raises(InputError, match="11 more requests are needed"):
            scorer.token_logprobs([random_ids(2 * WINDOW)])
        scored(scorer, [random_ids(3 * WINDOW // 2)])

    def test_counts_what_it_took_to_find_out_how_to_ask(self, network, directory):
        with serving(network, "openai") as server:
            scorer = scorer_of(server, directory, max_requests=6 + 6)
            message = error_of(scorer, *[random_ids(5)] * 4)
        assert "8 more requests are needed, but of a budget of 12 6 are used" in message
        assert len(server.seen) == 6

    def test_retries_count(self, server, directory):
        scorer = scorer_of(server, directory, max_requests=14, concurrency=1)
        scored(scorer, [random_ids(5)])
        server.failures.extend([Failure(500)] * 6)
        results = scorer.token_logprobs([random_ids(5)] * 3)
        next(results)
        with pytest.raises(InputError) as caught:
            next(results)
        message = str(caught.value)
        assert "the budget is used up (14 requests, 6 of them failed (6 x HTTP 500));" in message
        assert "what is stored is kept" in message
        assert len(server.seen) == 14


class TestCancellation:
    """What is queued is never sent, and what is under way does not keep anybody waiting."""

    @pytest.fixture
    def stuck(self, server, directory):
        """A scorer whose server answers two more requests and then no more."""
        scorer = scorer_of(server, directory, concurrency=2)
        scored(scorer, [random_ids(5)])
        answered = len(server.seen) + 2

        def hold(_) -> None:
            if len(server.seen) > answered:
                server.closing.wait()

        server.hold = hold
        return scorer

    def test_when_the_caller_stops(self, server, stuck):
        results = stuck.token_logprobs([random_ids(5)] * 50)
        next(results)
        next(results)
        results.close()
        assert len(server.seen) <= 7 + 2 + 2
        self.nothing_is_left(server)

    def test_on_an_interrupt(self, server, stuck):
        before = signal.signal(signal.SIGINT, signal.default_int_handler)  # shells may ignore it
        hold, shots = server.hold, itertools.count()

        def interrupting(body) -> None:
            if (
                len(server.seen) == 7 + 2 + 2 and next(shots) == 0
            ):  # while a result is waited for, in vain
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
            server.tamper = set_field(("choices",), [])
        with pytest.raises(InputError, match=message) as caught:
            list(stuck.token_logprobs([random_ids(5)] * 50))
        self.nothing_is_left(server)
        del caught  # it kept alive what had not been closed

    def nothing_is_left(self, server) -> None:
        before = len(server.seen)
        assert before < 7 + 9
        assert not [t for t in threading.enumerate() if "portal" in t.name]
        server.closing.set()
        assert len(server.seen) == before


# --- address and key ------------------------------------------------------------------------------


class TestAddress:
    @pytest.mark.parametrize(
        "url", ["localhost:8000", "ftp://host/v1", "http://", "v1", "", "http://[::"]
    )
    def test_no_url(self, directory, url):
        with pytest.raises(InputError, match="no URL of an endpoint; give one such as http://127"):
            EndpointScorer(url, "m", directory, context=64)

    @pytest.mark.parametrize(
        "url",
        [f"https://me:{SECRET}@host/v1", f"https://host/v1?key={SECRET}", f"https://h/#{SECRET}"],
    )
    def test_secrets_do_not_belong_there(self, directory, url):
        with pytest.raises(InputError, match="put the key into OPENAI_API_KEY") as caught:
            EndpointScorer(url, "m", directory, context=64)
        assert SECRET not in str(caught.value)

    @pytest.mark.parametrize("end", ["", "/", "/completions", "/completions/"])
    def test_may_end_in_several_ways(self, server, directory, end):
        scorer = EndpointScorer(server.url + end, "tiny", directory, context=CONTEXT)
        scored(scorer, [random_ids(3)])
        assert scorer.url == server.url
        assert scorer.revision == scorer_of(server, directory).revision

    @pytest.mark.parametrize(
        "host", ["example.org", "10.0.0.7", "[2001:db8::1]", "localhost.evil.org"]
    )
    def test_a_key_does_not_cross_a_network_unencrypted(self, directory, monkeypatch, host):
        EndpointScorer(f"http://{host}/v1", "m", directory, context=64)
        monkeypatch.setenv("OPENAI_API_KEY", SECRET)
        EndpointScorer(f"https://{host}/v1", "m", directory, context=64)
        with pytest.raises(InputError, match="the key in OPENAI_API_KEY would cross the network"):
            EndpointScorer(f"http://{host}/v1", "m", directory, context=64)
        for here in ("127.0.0.1", "localhost", "[::1]", "127.8.9.1"):  # is no network
            EndpointScorer(f"http://{here}/v1", "m", directory, context=64)

    def test_no_proxy_comes_between(self, server, scorer, monkeypatch):
        """It would get the key in plain text."""
        for name in ("HTTP_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, "http://127.0.0.1:9")
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        scored(scorer, [random_ids(3)])


class TestKey:
    @pytest.fixture
    def keyed(self, server, directory, monkeypatch):
        monkeypatch.setenv("MY_KEY", f" {SECRET}\n")  # `export MY_KEY="$(cat file)"` may leave it
        return scorer_of(server, directory, api_key_env="MY_KEY")

    def test_is_sent_in_one_header(self, server, keyed):
        scored(keyed, [random_ids(3)])
        for headers, body in server.seen:
            assert headers.pop("authorization") == f"Bearer {SECRET}"
            assert SECRET not in repr((headers, body))

    def test_without_one_there_is_no_header(self, server, scorer, directory, monkeypatch):
        scored(scorer, [random_ids(3)])
        monkeypatch.setenv("OPENAI_API_KEY", "")
        scored(scorer_of(server, directory), [random_ids(3)])
        assert all("authorization" not in headers for headers, _ in server.seen)

    @pytest.mark.parametrize(
        "failure",
        [
            Failure(401, f'{{"error": {{"message": "Incorrect key: {SECRET}."}}}}'.encode()),
            Failure(403, f"{'x' * 185}{SECRET}".encode()),  # where the message is cut
            Failure(400, SECRET.encode()),
            Failure(500, SECRET.encode()),
            Failure(429, SECRET.encode(), {"Retry-After": "1e6"}),
            Failure(307, headers={"Location": "http://example.org/"}),
            Failure(200, b"<html>"),
            Failure(200, b'{"choices": []}'),
            Failure(200, b'{"choices": []}', cut=True),
        ],
        ids=["401", "403", "400", "500", "429", "redirect", "not JSON", "nonsense", "cut"],
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
        shown = [*told, repr(caught.value), caplog.text, out, err, repr(keyed), keyed.summary()]
        assert SECRET[:9] not in "".join(shown)  # nor, then, the whole of it
        assert caplog.records

    @pytest.mark.parametrize("status", [200, 400, 401])
    @pytest.mark.parametrize(
        "spell",
        [
            str.upper,
            str.title,
            lambda key: quote(key).replace("-", "%2D"),
            lambda key: "".join(f"%{ord(c):02x}" for c in key),
            lambda key: "".join(f"&#x{ord(c):x};" for c in key),
            lambda key: key.encode().hex(),
            lambda key: base64.b64encode(key.encode()).decode(),
            lambda key: base64.b64encode(f":{key}".encode()).decode(),
            lambda key: base64.urlsafe_b64encode(f"me:{key}".encode()).decode(),
            lambda key: base64.b64encode(f"Bearer {key}".encode()).decode().rstrip("="),
        ],
    )
    def test_is_struck_out_in_every_spelling(self, server, keyed, spell, status):
        """Where a server repeats it: in its error, or in the answer itself."""
        spelt = spell(SECRET)
        server.failures.extend([Failure(status, f'{{"error": "<{spelt}>"}}'.encode())] * 9)
        message = error_of(keyed)
        assert "***" in message
        assert all(spelt[i : i + 7].lower() not in message.lower() for i in (4, 9, 14))
        server.failures.clear()
        server.tamper = set_field(("model",), spelt)
        scored(keyed, [random_ids(5)])
        server.tamper = set_field(("choices", 0, "prompt_logprobs", 3), {"7": {"logprob": spelt}})
        told = error_of(keyed) + keyed.summary()
        assert spelt[4:11].lower() not in told.lower()

    def test_does_not_follow_a_redirect(self, network, server, keyed):
        with serving(network) as other:
            location = {"Location": f"{other.url}/completions"}
            server.failures.append(Failure(307, headers=location))
            assert f"redirects to {other.url}/completions; give the address" in error_of(keyed)
            assert other.seen == []

    @pytest.mark.parametrize("key", ["two words", "line\nbreak", "clé", "tab\tbed"])
    def test_that_cannot_be_sent_is_refused_unseen(self, server, directory, monkeypatch, key):
        monkeypatch.setenv("MY_KEY", key)
        with pytest.raises(InputError, match="MY_KEY: the key holds a space") as caught:
            scorer_of(server, directory, api_key_env="MY_KEY")
        assert key not in str(caught.value)


# --- the scorer -----------------------------------------------------------------------------------


class TestScorer:
    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"context": 15}, "context is 15: give 16 tokens or more"),
            ({"concurrency": 0}, "concurrency is 0"),
            ({"timeout": 0}, "timeout is 0"),
        ],
    )
    def test_impossible_arguments(self, server, directory, change, message):
        with pytest.raises(InputError, match=message):
            scorer_of(server, directory, **change)

    def test_no_tokenizer(self, server, tmp_path):
        with pytest.raises(InputError, match=r"no tokenizer\.json in it"):
            scorer_of(server, tmp_path)

    def test_the_smallest_context(self, network, directory, make_model):
        small = make_model(16)
        with serving(Network(small)) as server:
            scorer = scorer_of(server, small, context=16)
            assert np.isfinite(scored(scorer, [random_ids(50)])[0]).all()

    def test_nothing_is_asked_before_it_must(self, server, directory):
        scorer = scorer_of(server, directory, concurrency=5)
        assert (scorer.context, scorer.batch_tokens) == (WINDOW, 5 * WINDOW)
        assert len(scorer.tokenizer) == 300
        assert len(scorer.revision) == 64
        scorer.token_logprobs([random_ids(3)])
        assert server.seen == []

    def test_revision_names_what_the_numbers_depend_on(
        self, server, directory, tmp_path, monkeypatch
    ):
        def revision(url=server.url, model="tiny", tokens=directory, context=CONTEXT, **others):
            return EndpointScorer(url, model, tokens, context=context, **others).revision

        def changed_tokenizer(file: str, old: str, new: str) -> Path:
            copy = shutil.copytree(directory, tmp_path / file)
            text = (copy / file).read_text()
            assert old in text
            (copy / file).write_text(text.replace(old, new))
            return copy

        assert revision(concurrency=2, max_requests=9, timeout=3.0) == revision()
        monkeypatch.setenv("MY_KEY", SECRET)
        assert revision(api_key_env="MY_KEY") == revision()
        assert revision(tokens=shutil.copytree(directory, tmp_path / "copy")) == revision()
        prefix = '"add_prefix_space": false', '"add_prefix_space": true'
        start = '"bos_token": "<|endoftext|>"', '"bos_token": "!"'
        others = [
            revision(url="http://127.0.0.1:1/v1"),
            revision(model="tiny-2"),
            revision(tokens=changed_tokenizer("tokenizer.json", *prefix)),
            revision(tokens=changed_tokenizer("tokenizer_config.json", *start)),
            revision(context=CONTEXT - 1),
        ]
        monkeypatch.setattr(endpoint, "start_token", lambda _: 7)
        others.append(revision())
        monkeypatch.undo()
        assert len({revision(), *others}) == 1 + len(others)
