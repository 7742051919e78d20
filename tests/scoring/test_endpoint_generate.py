"""SGLang's own protocol: the same numbers, short answers, and none about another prompt."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contamination.errors import InputError
from contamination.scoring.endpoint import NOT_INPUTS_OF_GENERATE, EndpointScorer
from contamination.scoring.endpoint_answers import Spelling
from contamination.scoring.endpoint_generate import GenerateRoute
from contamination.scoring.endpoint_trust import FIRST_ASKED, LAST_ASKED, PROBES
from contamination.scoring.prefix import continuation_logprobs
from fakes.completions_server import CompletionsServer, Failure, Network, serving
from fakes.float64_loop import float64_loop, random_ids, scored

CONTEXT = 64
WINDOW = CONTEXT - NOT_INPUTS_OF_GENERATE
NATS = 1e-4
SECRET = "sk-secret-0123456789"
LENGTHS = [1, 5, WINDOW - 1, WINDOW, WINDOW + 1, 2 * WINDOW + 7]


@pytest.fixture(scope="module")
def directory(make_model) -> Path:
    return make_model(CONTEXT)


@pytest.fixture(scope="module")
def network(directory) -> Network:
    return Network(directory)


@pytest.fixture
def server(network):
    with serving(network, "generate") as running:
        yield running


@pytest.fixture(autouse=True)
def surroundings(monkeypatch):
    """No key, and no wait between tries."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    async def sleep(seconds: float) -> None:
        """Go on at once."""

    monkeypatch.setattr("anyio.sleep", sleep)  # of the openai client


def scorer_of(server: CompletionsServer, directory: Path, **changes) -> EndpointScorer:
    arguments = {"context": CONTEXT, "timeout": 60.0} | changes
    return EndpointScorer(server.url, "tiny", directory, **arguments)


@pytest.fixture
def scorer(server, directory) -> EndpointScorer:
    return scorer_of(server, directory)


@pytest.fixture(scope="module")
def route(tokenizer) -> GenerateRoute:
    return GenerateRoute(Spelling(tokenizer), "token ids")


def error_of(scorer, length: int = 5, first: int = 0) -> str:
    """Ask for the tokens of a sequence from `first` on."""
    with pytest.raises(InputError) as caught:
        list(scorer.token_logprobs([random_ids(length)], [np.arange(length) >= first]))
    return str(caught.value)


class TestAgreement:
    def test_with_a_loop_over_tokens(self, server, scorer, directory):
        sequences = [random_ids(length, seed) for seed, length in enumerate(LENGTHS)]
        for ids, values in zip(sequences, scored(scorer, sequences), strict=True):
            expected = float64_loop(directory, ids, WINDOW)
            np.testing.assert_allclose(values, expected, rtol=0, atol=NATS)
        # SGLang keeps seven tokens of its context for itself.
        assert max(len(body["input_ids"]) for _, body in server.seen) == CONTEXT - 7

    def test_of_continuations_no_more_than_they_is_asked(self, server, scorer, directory):
        scored(scorer, [])
        answers = []
        server.tamper = lambda answer, number: answers.append(answer["meta_info"])
        prefix, ends = random_ids(30, 1), [random_ids(n, n) for n in (1, 4, 9)]
        ((_, found),) = continuation_logprobs(scorer, [(prefix, ends)])
        for end, values in zip(ends, found, strict=True):
            expected = float64_loop(directory, np.append(prefix, end), WINDOW)[len(prefix) :]
            np.testing.assert_allclose(values, expected, rtol=0, atol=NATS)
        probes = [prompt.tolist() for prompt in scorer._trust.prompts]
        asked = [body for _, body in server.seen if body["input_ids"] not in probes]
        # The last token of the prefix gets no value, and may not come from a cache.
        assert {body["logprob_start_len"] for body in asked} == {len(prefix)}
        lengths = [len(found["input_token_logprobs"]) for found in answers]
        assert sorted(n for n in lengths if n in {2, 5, 10}) == [2, 5, 10]

    def test_what_is_sent(self, server, scorer):
        scored(scorer, [random_ids(5)])
        for _, body in server.seen:
            assert body.pop("rid")
            assert len(body.pop("input_ids")) > body.pop("logprob_start_len")
            assert body == {
                "sampling_params": {"max_new_tokens": 0, "temperature": 1.0},
                "return_logprob": True,
            }

    def test_the_second_probe_is_asked_by_its_end(self, server, scorer):
        """Its beginning may then come from the cache, which shows in the noise."""
        scored(scorer, [random_ids(5)])
        shared = scorer._trust.shared
        ids = [prompt.tolist() for prompt in scorer._trust.prompts]
        starts = [
            (ids.index(body["input_ids"]), body["logprob_start_len"])
            for _, body in server.seen
            if body["input_ids"] in ids
        ]
        assert len(starts) == FIRST_ASKED + LAST_ASKED
        assert starts[: len(PROBES)] == [(0, 0), (1, 0)]
        assert set(starts[len(PROBES) :]) == {(0, 0), (1, shared)}


@pytest.mark.parametrize("end", ["", "/"])
def test_the_address_says_which_protocol_is_meant(server, directory, end):
    scorer = EndpointScorer(server.url + end, "tiny", directory, context=CONTEXT)
    assert scorer.url == server.url
    assert scorer.revision == scorer_of(server, directory).revision
    base = server.url.removesuffix("/generate")
    other = EndpointScorer(f"{base}/v1", "tiny", directory, context=CONTEXT)
    assert other.revision != scorer.revision
    assert "HTTP 404" in error_of(other)
    assert "or in /generate" in error_of(other)


def test_a_context_too_small_for_the_probes(server, directory):
    with pytest.raises(InputError, match="context is 21: give 22 tokens or more"):
        scorer_of(server, directory, context=21)


def test_the_last_of_the_vocabulary_is_called_by_the_first_id(tokenizer, route):
    """The start token of GPT-2 is its last, and SGLang says 0 for it."""
    last = len(tokenizer) - 1
    for prompt, told in (([last, 7], [0, 7]), ([3, last], [3, 0]), ([3, last], [3, last])):
        assert route.read(reply(route, prompt, told), prompt).tolist() == [-1]
    with pytest.raises(InputError, match=r"gives 0 \(.*\) at position 1, where 298 "):
        route.read(reply(route, [3, last - 1], [3, 0]), [3, last - 1])


def reply(route: GenerateRoute, prompt: list[int], told: list[int], skip: int = 0) -> dict:
    """Return an answer that gives every token but the first -1."""
    values = [None, *[-1.0] * (len(told) - 1)][: len(told)]
    entries = [[v, i, None] for v, i in zip(values, told, strict=True)]
    found = {"id": route.body(prompt, skip)["rid"] + "-1", "prompt_tokens": len(prompt)}
    return {"meta_info": found | {"input_token_logprobs": entries}}


# --- servers that lie -----------------------------------------------------------------------------


def put(place, value):
    """Replace something among what is said of the tokens."""

    def tamper(answer, _):
        answer["meta_info"]["input_token_logprobs"][place] = value

    return tamper


def say(name, value):
    """Replace something beside it."""

    def tamper(answer, _):
        answer["meta_info"][name] = value

    return tamper


def logprob(value):
    def tamper(answer, _):
        answer["meta_info"]["input_token_logprobs"][3][0] = value

    return tamper


def name(value):
    def tamper(answer, _):
        answer["meta_info"]["input_token_logprobs"][3][1] = value

    return tamper


def constant(answer, _):
    for entry in answer["meta_info"]["input_token_logprobs"][1:]:
        entry[0] = -2.5


LIES = {
    "no answer": (lambda answer, _: answer.clear(), "not in the format 'generate'"),
    "no log-probabilities": (say("input_token_logprobs", None), "holds no input_token_logprobs"),
    "empty": (say("input_token_logprobs", []), "holds no input_token_logprobs"),
    "a text": (say("input_token_logprobs", "none"), "not in the format 'generate'"),
    "an object": (say("input_token_logprobs", {"a": 1}), "not in the format 'generate'"),
    "one too few": (put(slice(-1, None), []), "log-probabilities for a prompt of"),
    "one too many": (put(slice(0, 0), [[None, 1, None]]), "of its own (1 ("),
    "first one dropped": (put(slice(0, 1), []), "leaves out the first token of the prompt"),
    "numbers alone": (put(3, -1.0), "not in the format 'generate'"),
    "no id": (name(None), "not in the format 'generate'"),
    "true for an id": (name(True), "not in the format 'generate'"),
    "text for an id": (name("7"), "not in the format 'generate'"),
    "another id": (name(299), "gives 299 ("),
    "an id that is none": (name(10**30), "gives 1000000000"),
    "null": (logprob(None), "no log-probability (None) for the token at position"),
    "true": (logprob(True), "no log-probability (True) for the token at position"),
    "a list": (logprob([-1.0]), "no log-probability (a list) for the token at position"),
    "text": (logprob("-1"), "no log-probability ('-1') for the token at position"),
    "not a number": (logprob(float("nan")), "gives nan for the token at position"),
    "minus infinity": (logprob(float("-inf")), "gives -inf for the token at position"),
    "a probability": (logprob(0.25), "a log-probability is at most 0"),
    "constants": (constant, "every token has the log-probability -2.5"),
    "one token more": (say("prompt_tokens", 99), "the server counts 99 tokens in a prompt of"),
    "no number of tokens": (say("prompt_tokens", None), "the server counts None tokens in a pro"),
    "another request": (say("id", "0123"), "the server answers another request"),
}


@pytest.mark.parametrize(("tamper", "told"), LIES.values(), ids=LIES.keys())
def test_lies_are_refused_at_first_and_later(server, directory, tamper, told):
    earlier = scorer_of(server, directory)
    scored(earlier, [random_ids(5)])
    server.tamper = tamper
    if "None tokens" not in told:  # where all tokens are named, their number is not needed
        assert told in error_of(scorer_of(server, directory))
    if "every token" not in told:
        assert told in error_of(earlier, 20, 12)


@pytest.mark.parametrize(
    ("read", "told"),
    [
        (lambda ids: [0, *ids], "puts a token of its own"),
        (lambda ids: ids[1:], "leaves out the first token of the prompt"),
        (lambda ids: [*ids[:2], *ids[3:]], "leaves out the first token of the prompt"),
    ],
    ids=["start added", "first dropped", "one dropped"],
)
def test_other_tokens_before_the_end_move_it(server, scorer, read, told):
    scored(scorer, [random_ids(5)])
    server.read = read
    assert told in error_of(scorer, 20, 12)


def test_the_answer_to_a_prompt_with_the_same_end_is_refused(server, scorer):
    """All tokens that are named, and their number, are the same."""
    scored(scorer, [random_ids(5)])
    answers = []

    def tamper(answer, number: int) -> None:
        answers.append(json.loads(json.dumps(answer)))
        answer |= answers[0]

    server.tamper = tamper
    end = random_ids(4)
    groups = [(random_ids(9, seed), [end]) for seed in (1, 2)]
    with pytest.raises(InputError, match="answers another request"):
        list(continuation_logprobs(scorer, groups))


@settings(max_examples=200)
@given(data=st.data())
def test_no_edit_of_the_tokens_goes_unnoticed(tokenizer, route, data):
    """What a server adds, drops, swaps or replaces among those that are asked for."""
    token = st.integers(0, len(tokenizer) - 1)
    prompt = data.draw(st.lists(token, min_size=2, max_size=9))
    skip = data.draw(st.integers(0, len(prompt) - 2))
    theirs = prompt[skip:]
    for _ in range(data.draw(st.integers(1, 3))):
        position = data.draw(st.integers(0, len(theirs)))
        edit = data.draw(st.sampled_from(["add", "drop", "replace"]))
        stop = position + (edit != "add")
        theirs[position:stop] = [] if edit == "drop" else [data.draw(token)]
    clipped = {len(tokenizer) - 1: 0}
    asked = prompt[skip:]
    same = len(theirs) == len(asked) and all(
        they in (token, clipped.get(token, token))
        for they, token in zip(theirs, asked, strict=True)
    )
    if same:
        found = route.read(reply(route, prompt, theirs, skip), prompt, skip)
        assert len(found) == len(prompt) - skip - 1
    else:
        with pytest.raises(InputError):
            route.read(reply(route, prompt, theirs, skip), prompt, skip)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=200)
@given(
    answer=JSON
    | st.fixed_dictionaries(
        {
            "meta_info": JSON
            | st.fixed_dictionaries(
                {
                    "input_token_logprobs": JSON | st.lists(st.lists(JSON, max_size=3)),
                    "id": JSON,
                    "prompt_tokens": JSON,
                }
            )
        }
    )
)
def test_nonsense_is_refused_in_words(route, answer):
    for skip in (0, 1):
        with pytest.raises(InputError):
            route.read(answer, [0, 7, 11], skip)


def test_other_weights_in_the_middle_are_refused(server, scorer):
    """They can be replaced while the server runs."""
    scored(scorer, [random_ids(5)])
    server.tamper = say("weight_version", "step-2")
    assert "came from 'default' at first and from 'step-2' now" in error_of(scorer)


# --- what the client does for both protocols ------------------------------------------------------


def test_every_try_has_a_name_of_its_own(server, scorer):
    """SGLang refuses the name of a request that it is still busy with."""
    scored(scorer, [random_ids(5)])
    before = len(server.seen)
    server.failures.extend([Failure(503), Failure(429), Failure(body=b"{", cut=True)])
    scored(scorer, [random_ids(5)])
    names = [body["rid"] for _, body in server.seen[before:]]
    assert len(set(names)) == len(names)
    assert len({rid.partition("-")[0] for rid in names[:4]}) == 1
    assert "3 of them failed" in scorer.summary()


def test_the_key_goes_into_one_header_and_nowhere_else(server, directory, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    scorer = scorer_of(server, directory)
    scored(scorer, [random_ids(3)])
    for headers, body in server.seen:
        assert headers.pop("authorization") == f"Bearer {SECRET}"
        assert SECRET not in repr((headers, body))
    server.failures.append(Failure(401, f'{{"error": {{"message": "no {SECRET}"}}}}'.encode()))
    message = error_of(scorer)
    assert "***" in message
    assert SECRET not in message
    server.tamper = say("input_token_logprobs", [[SECRET, 0, None]] * 6)
    assert SECRET not in error_of(scorer)
    server.tamper = lambda answer, number: None
    monkeypatch.delenv("OPENAI_API_KEY")
    scored(scorer_of(server, directory), [random_ids(3)])
    assert "authorization" not in server.seen[-1][0]


def test_what_is_too_long_or_too_large_is_refused(server, directory):
    scorer = scorer_of(server, directory, context=CONTEXT + 9)
    message = error_of(scorer, CONTEXT + 9)
    assert "HTTP 400 (the context length is 64 tokens)" in message
    assert message.endswith("give a smaller context")
    server.tamper = say("text", "x" * (2 << 20))
    assert "the answer is larger than" in error_of(scorer_of(server, directory))
