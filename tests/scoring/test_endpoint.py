"""A model behind HTTP: the same numbers as here, about the very tokens that were sent."""

import json
import math
import shutil
import threading
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer, decoders, models
from transformers import PreTrainedTokenizerFast

from contamination.audit.recompute import recompute
from contamination.errors import InputError
from contamination.scoring.endpoint import FORMATS, EndpointScorer, read_answer
from contamination.scoring.endpoint_trust import Spelling, require_agreement
from contamination.scoring.generation import EndpointGenerator
from contamination.scoring.score import score
from contamination.scoring.store import Store, open_store
from contamination.testsets.example_set import ExampleSet
from fakes.completions_server import Network, RowsShifted, scorer_of, serving
from fakes.float64_loop import float64_loop, random_ids, scored
from fakes.made_up_registry import refusal

CONTEXT = 64
WINDOW = CONTEXT - 2  # the window's last token and a generated one need room, too
NATS = 1e-4
LETTERS = np.arange(40, 46, dtype=np.int32)  # tokens that have a text of their own
LENGTHS = [1, 5, WINDOW - 1, WINDOW, WINDOW + 1, 3 * WINDOW // 2 + 1, 2 * WINDOW + 7]

pytestmark = pytest.mark.usefixtures("waits")


@pytest.fixture(scope="module")
def sequences() -> list[np.ndarray]:
    return [random_ids(length, seed) for seed, length in enumerate(LENGTHS)]


@pytest.fixture(scope="module")
def expected(directory, sequences) -> list[np.ndarray]:
    return [float64_loop(directory, ids, WINDOW) for ids in sequences]


def agree(values, expected) -> None:
    for ours, theirs in zip(values, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=NATS)


def error_of(scorer) -> str:
    return refusal(lambda: list(scorer.token_logprobs([LETTERS])))


@pytest.mark.parametrize(
    ("style", "fields"),
    [
        ("vllm", {"prompt_logprobs"}),
        ("sglang", {"echo", "logprobs"}),
        ("openai", {"echo", "logprobs"}),
    ],
)
def test_with_a_loop_over_tokens(network, directory, sequences, expected, style, fields):
    with serving(network, style) as server:
        scorer = scorer_of(server, directory)
        agree(scored(scorer, sequences), expected)
    known_fields = set().union(*FORMATS.values())
    assert known_fields & server.seen[-1][1].keys() == fields
    assert scorer.client.requests_made == len(server.seen)
    used = max(len(body["prompt"]) + body["max_tokens"] for _, body in server.seen)
    assert used == CONTEXT  # the whole context, and no more


def test_any_order_of_answers_will_do(server, scorer, sequences, expected):
    """The first sequence is answered only after all the others have been handed over."""
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


def test_only_the_tokens_asked_for_are_paid_for(server, scorer, sequences, expected):
    firsts = [len(ids) for ids in sequences]
    firsts[1] -= 1
    firsts[-1] -= 3
    scored(scorer, sequences[:1])
    before = len(server.seen)
    results = dict(scorer.token_logprobs(sequences, firsts))
    assert sorted(results) == list(range(len(sequences)))
    for index, first in enumerate(firsts):
        agree([results[index][first:]], [expected[index][first:]])
    assert np.isnan(results[0]).all()
    probes = [prompt.tolist() for prompt in scorer._trust.prompts]
    asked = [body["prompt"] for _, body in server.seen[before:]]
    prompts = sorted(len(prompt) for prompt in asked if prompt not in probes)
    assert prompts == [6, len(sequences[-1]) - 4 * WINDOW // 2 + WINDOW // 2 + 1]


def test_the_command_gives_the_p_value_of_the_model_itself(call, make_model, prose, tmp_path):
    model = make_model(128)
    data = tmp_path / "prose.txt"
    data.write_text("".join(f"{p[:30]}\n".replace("\n", " ") + "\n" for p in prose[:12]))
    exact = ("--test", "sharded_exact", "--permutations", "3", "--json")
    pairs = ("--test", "successor", "--json")
    here = ("--precision", "float32", "--context", "126", "--store", tmp_path / "near")
    with serving(Network(model), "vllm") as server:
        there = ("--endpoint", server.url, "--tokenizer", model, "--context", "128")
        for test in (exact, pairs):
            _, far, err = call("test", "m", data, *test, *there, "--store", tmp_path / "far")
            _, near, _ = call("test", model, data, *test, *here)
            (ours,), (theirs,) = (json.loads(out)["results"] for out in (far, near))
            assert ours["statistic"] == pytest.approx(theirs["statistic"], abs=0.01)
            assert "requests" in err.splitlines()[-1]
            assert [json.loads(out)["noise"] for out in (far, near)] == [0, None]  # nats a token
        stop = ("--store", tmp_path / "stopped", "--stop")
        _, stopped, _ = call("test", "m", data, *exact, *there, *stop)
    assert json.loads(stopped)["noise"] == 0
    assert {json.loads(f.read_text())["noise"] for f in tmp_path.rglob("far/**/run-*")} == {0}


def read(tokenizer, logprobs, texts, ids) -> list[float]:
    """Return what is read of an echo with these texts for tokens, given those that were sent."""
    answer = {"choices": [{"logprobs": {"token_logprobs": logprobs, "tokens": texts}}]}
    return read_answer("echo", answer, ids, Spelling(tokenizer)).tolist()


def test_tokens_are_known_by_every_spelling_and_no_other_goes_by_theirs(tokenizer):
    """In byte-level vocabularies, and in those that mark spaces."""
    backend = Tokenizer(models.WordLevel({"<s>": 0, "▁river": 1, "▁stone": 2}, "<s>"))
    backend.decoder = decoders.Metaspace()
    marked = PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>")
    for each, start in ((tokenizer, "<|endoftext|>"), (marked, "<s>")):
        decoded = {i: each.decode([i]) for i in range(1, len(each))}
        whole = [i for i, text in decoded.items() if "\N{REPLACEMENT CHARACTER}" not in text]
        for token, other in pairwise([*whole, whole[0]]):
            raw = each.convert_ids_to_tokens(token)
            for name in (decoded[token], raw, raw.replace("▁", " "), f"token_id:{token}"):
                assert read(each, [None, -1.0], [start, name], [0, token]) == [-1]
                told = refusal(read, each, [None, -1.0], [start, name], [0, other])
                assert f"where {other} " in told


def test_lists_of_an_echo(tokenizer) -> None:
    """Rounding above 0 is certainty; a value too few would move those behind it.

    A piece of a character has no name of its own, but that of another token is not its name.
    """
    h, i = tokenizer.convert_tokens_to_ids(["H", "I"])
    piece = next(i for i in range(300) if "\N{REPLACEMENT CHARACTER}" in tokenizer.decode([i]))
    assert read(tokenizer, [None, 5e-4, -0.5], ["", "H", "I"], [0, h, i]) == [0, -0.5]
    assert read(tokenizer, [None, -1.0], ["", tokenizer.decode([piece])], [0, piece]) == [-1]
    for *answer, ids, told in (
        ([None, -1.0], ["", "<|endoftext|>"], [0, piece], "at position 1"),
        ([None, -1.0, -2.0], [None, None, "H"], [0, h], "gives 'None' at position 0"),
        ([None, -0.5, -2.0], ["", "H", "I", "J"], [0, h, i], "not in the format 'echo'"),
    ):
        assert told in refusal(read, tokenizer, *answer, ids)


def set_field(*path):
    """Replace what stands at this place of the JSON, the last argument being the new value."""
    *way, last, value = path

    def tamper(answer, _):
        for key in way:
            answer = answer[key] or {}
        answer[last] = value

    return tamper


def drop_first(answer, _):
    found = answer["choices"][0]["logprobs"]
    del found["tokens"][0]
    found["token_logprobs"][:2] = [None]


def scored_as(change):
    """Replace the log-probabilities behind the first token, which has none, given the tokens."""

    def tamper(answer, _):
        found = answer["choices"][0]["logprobs"]
        found["token_logprobs"][1:] = change(found["token_logprobs"][1:], found["tokens"][1:])

    return tamper


def hide_start(answer, _):
    answer["usage"]["prompt_tokens"] += 1


LOGPROBS = ("choices", 0, "logprobs")
VALUES = (*LOGPROBS, "token_logprobs")
LIES = {
    "no log-probabilities": (set_field(*LOGPROBS, None), "the answer is not in the format 'echo'"),
    "no choices": (set_field("choices", []), "the answer is not in the format 'echo'"),
    "first token dropped": (drop_first, "at position 0, where 0 "),
    **{
        f"{value}": (set_field(*VALUES, 3, value), f"gives {value!r} for the token at position 3")
        for value in (None, "-1", math.nan, -math.inf, -9999.0, 0.25)
    },
    "zeros": (scored_as(lambda v, _: [0.0] * len(v)), "every token has the log-probability 0,"),
    "no context": (
        scored_as(lambda _, t: [-1 - ord(s[0]) / 100 for s in t]),
        "they do not depend on the context",
    ),
    "shifted by one": (scored_as(lambda v, _: [*v[1:], -1.0]), "depends on the token behind it"),
    "shifted to the right": (scored_as(lambda v, _: [-1.0, *v[:-1]]), "values are shifted by one"),
    "first token scored": (set_field(*VALUES, 0, -3.0), "or scores the first one"),
    "other token": (set_field(*LOGPROBS, "tokens", 3, "tower"), "gives 'tower' at position 3, w"),
    "hidden start token": (hide_start, "tokens in a prompt of"),
}
# What probes alone show, together.
AT_FIRST = ("every token", "depend on the context", "depends on the token", "shifted by")


@pytest.mark.parametrize(("tamper", "message"), LIES.values(), ids=LIES)
def test_lies_are_refused_at_first_and_later(network, directory, tamper, message):
    """What only several answers together can show is not asked of the later ones."""
    with serving(network, "openai") as server:
        earlier = scorer_of(server, directory)
        scored(earlier, [random_ids(5)])
        server.tamper = tamper
        assert message in error_of(scorer_of(server, directory))
        if not any(words in message for words in AT_FIRST):
            assert message in error_of(earlier)


READ = {
    "start added": (lambda ids: [0, *ids], "the server gives "),
    "one added": (lambda ids: [*ids[:2], 299, *ids[2:]], "the server gives "),
    "first dropped": (lambda ids: ids[1:], "the server gives "),
    "one dropped": (lambda ids: [*ids[:2], *ids[3:]], "the server gives "),
    "one changed": (lambda i: [*i[:2], (i[2] + 1) % 256 + 40, *i[3:]], "at position 2, where"),
    "cut": (lambda ids: ids[:-1], ""),
}


@pytest.mark.parametrize("style", ["vllm", "openai"])
@pytest.mark.parametrize(("reads", "message"), READ.values(), ids=READ.keys())
def test_tokens_that_were_not_sent_are_refused(network, directory, style, reads, message):
    """What the server makes of the ids, as each format shows it, at first and later."""
    with serving(network, style) as server:
        earlier = scorer_of(server, directory)
        scored(earlier, [random_ids(5)])
        server.read = reads
        assert message in error_of(scorer_of(server, directory))
        assert message in error_of(earlier)


@pytest.mark.parametrize("style", ["vllm", "openai"])
@pytest.mark.parametrize("rows", [1, -1])
def test_values_of_another_row_are_refused(directory, style, rows):
    """They depend on the context and on the token as a model's do; what is generated tells."""
    network = RowsShifted(directory)
    network.rows = rows
    with serving(network, style) as server:
        assert "shifted by a row" in error_of(scorer_of(server, directory))


@pytest.mark.parametrize(
    ("pairs", "told"),
    [
        ([(-1.0, -1.2), (-2.0, -2.0), (-1.0, -0.9), (-3.0, -5.0)], ""),  # a penalty on one of them
        ([(-1.0, -1.2), (-2.0, -9.0), (-1.0, -0.9), (-3.0, -5.0)], "2 of 4 tokens differ so"),
        ([(-1.0, -4.0)], "1 of 1 tokens differ so"),
        ([], "no log-probability of a token that it generates"),
    ],
)
def test_how_many_generated_tokens_may_have_another_value(pairs, told):
    if told:
        assert told in refusal(require_agreement, pairs)
    else:
        require_agreement(pairs)


def test_a_server_that_says_nothing_about_what_it_generates_is_refused(server, directory):
    def tamper(answer, _):
        answer["choices"][0]["logprobs"] = None

    server.tamper = tamper
    assert "no log-probability of a token that it generates" in error_of(
        scorer_of(server, directory)
    )


@pytest.mark.parametrize("name", ["tiny\ud83d", "\udcff", " "])
def test_a_name_that_is_no_text_is_refused_before_anything_is_sent(server, directory, name):
    with pytest.raises(InputError, match="is no name of a model"):
        EndpointScorer(server.url, name, directory, context=CONTEXT)
    with pytest.raises(InputError, match="is no name of a model"):
        EndpointGenerator(server.url, name)
    assert server.seen == []


def test_half_an_emoji_in_the_servers_name_is_written_as_its_escape(server, directory, tmp_path):
    server.tamper = set_field("model", "tiny \ud83d")
    data = ExampleSet("set", tuple("abcdef"), "text/1", "r")
    scorer = scorer_of(server, directory)
    store = score(data, scorer, tmp_path, model="tiny", seed=0, permutations=1)
    assert store.served() == [r"tiny \ud83d"]


def test_the_likeliest_beside_the_token_do_no_harm(server, scorer, sequences, expected):
    def tamper(answer, _):
        found = answer["choices"][0].get("prompt_logprobs", [])
        found[1:] = [{"301": {"logprob": -0.5}} | entry for entry in found[1:]]

    server.tamper = tamper
    agree(scored(scorer, sequences), expected)


def test_another_model_in_the_middle(server, scorer):
    scored(scorer, [random_ids(5)])
    server.tamper = set_field("model", "turbo")
    assert "at first and from 'turbo' now" in error_of(scorer)


def named(name):
    return set_field("model", name)


def test_a_store_is_filled_by_one_model_of_a_server(server, directory, tmp_path):
    """Which one it was is in every part: a run that was killed leaves no other record."""

    def fill(place: str, permutations: int, name: str) -> Store:
        server.tamper = named(name)
        data = ExampleSet("set", tuple("abcdef"), "text/1", "r")
        return score(
            data,
            scorer_of(server, directory),
            tmp_path / place,
            model="tiny",
            seed=0,
            permutations=permutations,
        )

    assert fill("store", 2, "one").served() == ["one"]
    assert fill("store", 3, "one").permutations() == 3
    with pytest.raises(InputError, match="'one', and 'two'"):
        fill("store", 4, "two")
    other = fill("other", 4, "two")
    for path in other.parts():
        shutil.copy(path, tmp_path / "store" / f"{path.stem}x.parquet")
    assert open_store(tmp_path / "store").served() == ["one", "two"]
    with pytest.raises(InputError, match="'one', and 'two'"):
        fill("store", 3, "one")  # though nothing is missing
    with pytest.raises(InputError, match="'one', and 'two'"):
        recompute(tmp_path / "store")


def test_a_context_that_the_server_lacks_is_named_from_the_start(server, directory):
    scorer = scorer_of(server, directory, context=2 * CONTEXT)
    told = refusal(lambda: list(scorer.token_logprobs([np.arange(9)])))
    assert told.endswith("give a smaller context")


def test_too_small_a_context(server, directory):
    assert "context is 15: give 16" in refusal(scorer_of, server, directory, context=15)


def test_revision_names_what_the_numbers_depend_on(server, directory, tmp_path, monkeypatch):
    def revision(url=server.url, model="tiny", tokens=directory, context=CONTEXT, **others):
        return EndpointScorer(url, model, tokens, context=context, **others).revision

    def changed_tokenizer(file: str, old: str, new: str) -> Path:
        copy = shutil.copytree(directory, tmp_path / file)
        text = (copy / file).read_text()
        assert old in text
        (copy / file).write_text(text.replace(old, new))
        return copy

    assert revision(concurrency=2, max_requests=9, timeout=3.0) == revision()
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
    assert len({revision(), *others}) == 1 + len(others)
    assert server.seen == []
