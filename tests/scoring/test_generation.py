"""Texts of a model here and of one behind a loopback server, and the store that keeps them."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
import torch

from contamination.errors import InputError
from contamination.files import sha256_of
from contamination.scoring.completions import PROMPTS, CompletionHeader, Completions
from contamination.scoring.generation import (
    LONGEST_TOKEN,
    EndpointGenerator,
    LocalGenerator,
    Sampling,
    drawn,
)
from contamination.scoring.loading import ModelSource
from contamination.scoring.local import TransformersScorer
from fakes.completions_server import Failure, serving
from fakes.tiny_models import common, save_model

SAMPLING = Sampling(samples=3, tokens=5, temperature=0.8, seed=4)


@pytest.fixture(scope="module")
def writer(make_model) -> LocalGenerator:
    return LocalGenerator(TransformersScorer(make_model(64)), "tiny")


@pytest.fixture(scope="module")
def prompts(prose) -> list[str]:
    return [text[: 20 + 7 * (i % 9)] for i, text in enumerate(prose[:40])]


@pytest.mark.parametrize("kind", ["GPT-2", "Mistral", "Mamba"])
def test_the_cache_writes_what_plain_reading_writes(kind, tokenizer, tmp_path, prompts):
    """Also with sliding windows, and in an architecture without keys."""
    directory = save_model(tmp_path, tokenizer, *common(64, 8)[kind])
    scorer = TransformersScorer(ModelSource(str(directory), context=64))
    found = LocalGenerator(scorer, kind).generate(
        prompts[:2], replace(SAMPLING, temperature=0.0, samples=1)
    )
    for prompt, (text,) in zip(prompts, found, strict=False):
        ids = [scorer.start, *tokenizer(prompt, add_special_tokens=False)["input_ids"]]
        for _ in range(SAMPLING.tokens):
            with torch.inference_mode():
                ids.append(int(scorer.model(torch.tensor([ids])).logits[0, -1].argmax()))
        written = ids[-SAMPLING.tokens :]
        if tokenizer.eos_token_id in written:
            written = written[: written.index(tokenizer.eos_token_id)]
        assert text == tokenizer.decode(written)


def test_texts_do_not_depend_on_the_order_of_work(writer, prompts):
    """Nor on what stands beside a prompt; another seed or prompt writes another text."""
    found = writer.generate(prompts, SAMPLING)
    back = writer.generate(prompts[::-1], SAMPLING)[::-1]
    assert found == back
    assert writer.generate(prompts[3:4], SAMPLING) == found[3:4]
    assert writer.generate(prompts, replace(SAMPLING, seed=5)) != found
    assert len(set().union(*found)) > 100


def test_tokens_are_drawn_as_often_as_the_softmax_says():
    logits = torch.tensor([[0.0, 1.0, -2.0, 0.5]])
    uniform = np.random.default_rng(0).random(20_000)
    counts = np.bincount(drawn(logits.expand(20_000, -1), uniform, 0.8), minlength=4)
    expected = (logits[0].double() / 0.8).softmax(-1).numpy() * 20_000
    assert scipy.stats.chisquare(counts, expected).pvalue > 1e-3
    edges = drawn(logits.expand(2, -1), np.array([0.0, 1 - 2**-53]), 0.8)
    assert edges.tolist() == [0, 3]


@pytest.mark.parametrize("style", ["openai", "chat"])
def test_a_server_writes_what_the_model_here_writes(style, writer, prompts, monkeypatch):
    monkeypatch.setattr("contamination.scoring.endpoint_client.uniform", lambda *_: 0.001)
    with serving(None, style, writer) as server:
        server.failures += [Failure(429), Failure(500), Failure(cut=True)]
        url = server.url
        if style == "chat":
            url += "/completions"
        found = EndpointGenerator(url, "tiny")
        assert found.generate(prompts[:6], SAMPLING) == writer.generate(prompts[:6], SAMPLING)
        assert len(server.seen) == 9
        assert found.client.failures.total() == 3
        assert found.served == "tiny"


WORDS = {
    "max_tokens": "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
    "temperature": "'temperature' does not support 0.8 with this model. Only 1 is supported.",
    "seed": "seed: Extra inputs are not permitted",
    "n": "n > 1 is not supported",
}


@pytest.mark.parametrize("fields", [["seed"], ["n"], ["temperature", "max_tokens"], list(WORDS)])
@pytest.mark.parametrize("silent", [False, True])
def test_fields_that_a_server_refuses_are_left_out_and_the_header_says_so(
    fields, silent, writer, prompts, tmp_path
):
    """Also by a server that does not say which; another run does not send them again."""

    def refuses(body) -> str:
        refused = [name for name in fields if body.get(name, 1) != 1]
        told = WORDS[refused[0]] if refused else ""
        return "no" if told and silent else told

    store = store_in(tmp_path, count=4, protocol="chat")
    texts = prompts[:4]
    with serving(None, "chat", writer) as server:
        server.refuses = refuses
        generator = EndpointGenerator(server.url, "tiny", concurrency=1)
        store.fill(generator, texts, SAMPLING)
        assert [len(each) for each in store.stored()[0].values()] == [SAMPLING.samples] * 4
        assert set(fields) <= set(store.left_out)
        if not silent:
            assert sorted(store.left_out) == sorted(fields)
        next(tmp_path.glob("part-*")).unlink()
        server.seen.clear()
        again = EndpointGenerator(server.url, "tiny", concurrency=1)
        store.fill(again, texts, SAMPLING)
        assert not [body for _, body in server.seen if refuses(body)]


def test_where_nothing_helps_the_first_refusal_is_told(writer, prompts):
    with serving(None, "chat", writer) as server:

        def no_such_thing(body):
            named = "n" if "n" in body else "you"
            return f"no such thing as {named}"

        server.refuses = no_such_thing
        with pytest.raises(InputError, match=r"no such thing as n\); correct what"):
            EndpointGenerator(server.url, "tiny").generate(prompts[:2], SAMPLING)

        def too_long(_):
            return "the maximum context length is 4 tokens"

        server.refuses = too_long
        with pytest.raises(InputError, match=r"is 4 tokens.*if a record is longer"):
            EndpointGenerator(server.url, "tiny").generate(prompts[:2], SAMPLING)


FILTER = b'{"error": {"code": "content_filter", "message": "The response was filtered"}}'


@pytest.mark.parametrize("style", ["openai", "chat"])
@pytest.mark.parametrize("how", ["no choices", "null", "filter"])
def test_a_prompt_without_an_answer_has_empty_texts_and_the_others_theirs(
    style, how, writer, prompts
):
    def tamper(answer, number):
        if number == 1:
            answer["choices"] = [] if how == "no choices" else None

    with serving(None, style, writer) as server:
        if how == "filter":
            server.failures += [Failure(400, FILTER)]
        else:
            server.tamper = tamper
        generator = EndpointGenerator(server.url, "tiny", concurrency=1)
        first, *others = generator.generate(prompts[:3], SAMPLING)
    assert first == ["", "", ""]
    assert others == writer.generate(prompts[1:3], SAMPLING)


def test_half_an_emoji_in_a_text_is_replaced_and_a_whole_one_kept(writer, prompts, tmp_path):
    def tamper(answer, _):
        for choice in answer["choices"]:
            choice["message"]["content"] = "a \ud83d b \U0001f600"

    with serving(None, "chat", writer) as server:
        server.tamper = tamper
        store = store_in(tmp_path, count=1)
        store.fill(EndpointGenerator(server.url, "tiny"), prompts[:1], SAMPLING)
    assert store.stored()[0] == {0: ["a \ufffd b \U0001f600"] * 3}


def test_a_server_that_does_not_keep_to_the_tokens(writer, prompts):
    """A little too much is cut; megabytes are refused before they are in memory."""
    size = 5_000

    def tamper(answer, _):
        for choice in answer["choices"]:
            choice["message"]["content"] = "word " * size  # plain: a count of words

    with serving(None, "chat", writer) as server:
        server.tamper = tamper
        generator = EndpointGenerator(server.url, "tiny")
        found = generator.generate(prompts[:1], SAMPLING)
        assert {len(text) for text in found[0]} == {SAMPLING.tokens * LONGEST_TOKEN}
        size = 460_000
        with pytest.raises(InputError, match=r"larger than .* bytes.*max_tokens"):
            generator.generate(prompts[:1], SAMPLING)


def test_fewer_texts_are_asked_for_again_and_newer_chats_by_their_own_limit(writer, prompts):
    with serving(None, "chat", writer) as server:
        server.fewest = 2
        server.failures += [Failure(400)]
        found = EndpointGenerator(server.url, "tiny", concurrency=1)
        texts = found.generate(prompts[:2], SAMPLING)
        assert [len(set(each)) for each in texts] == [3, 3]
        asked = [body["n"] for _, body in server.seen]
        assert asked == [3, 3, 3, 1, 1]
        assert "max_completion_tokens" in server.seen[-1][1]


def _refusal(answer, number):
    choices = [each["message"] for each in answer["choices"]]
    choices[0] |= {"content": None, "refusal": "No."}
    answer["choices"][1]["finish_reason"] = "content_filter"
    choices[2]["content"] = ""


def test_what_a_server_refuses_is_an_empty_text(writer, prompts):
    with serving(None, "chat", writer) as server:
        server.tamper = _refusal
        found = EndpointGenerator(server.url, "tiny").generate(prompts[:1], SAMPLING)
        assert found == [["", "", ""]]


def _renamed(answer, number):
    answer["model"] = "tiny" if number < 3 else "other"


@pytest.mark.parametrize(
    ("tamper", "named"),
    [
        (_renamed, "'other'"),
        (lambda answer, _: answer.pop("choices"), "no text in the answer"),
        (lambda answer, _: answer.update(choices=5), "no text in the answer"),
        (lambda answer, _: answer["choices"][0]["message"].update(content=[1]), "no text"),
    ],
)
def test_answers_that_are_none(tamper, named, writer, prompts):
    with serving(None, "chat", writer) as server:
        server.tamper = tamper
        with pytest.raises(InputError, match=named):
            EndpointGenerator(server.url, "tiny", concurrency=1).generate(prompts[:4], SAMPLING)


def test_sampling_that_cannot_be(writer, prompts):
    for values in (
        *({"temperature": 0.0}, {"samples": 0}, {"tokens": 0}, {"temperature": float("nan")}),
        {"tokens": 64},  # as many as the context holds
    ):
        with pytest.raises(InputError, match=f"^{next(iter(values))}"):
            writer.generate(prompts[:1], Sampling(**values))


# --- the store ------------------------------------------------------------------------------------


class Listed:
    """Writes the prompt and a number; breaks down after so many prompts."""

    name, revision, protocol, instruction = "listed", "r", "local", ""
    left_out = ()

    def __init__(self, survives: float = np.inf, served: str = "") -> None:
        self.survives, self.served, self.asked = survives, served, []

    def generate(self, prompts, sampling):
        self.asked += prompts
        if len(self.asked) > self.survives:
            raise KeyboardInterrupt
        answers = []
        for prompt in prompts:
            answers.append([f"{prompt} {i}" for i in range(sampling.samples)])
        return answers


TEXTS = [f"record {i}\n" for i in range(3 * PROMPTS + 5)]


def store_in(directory, **changes) -> Completions:
    header = CompletionHeader(
        model="listed",
        model_revision="r",
        dataset="set",
        dataset_revision="d",
        template="text/1",
        prompts=sha256_of(*TEXTS),
        count=len(TEXTS),
        protocol="local",
        instruction="",
        samples=SAMPLING.samples,
        tokens=SAMPLING.tokens,
        temperature=SAMPLING.temperature,
        seed=SAMPLING.seed,
    )
    return Completions(directory, replace(header, **changes))


def _bytes(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_an_interrupted_run_gives_the_bytes_of_one_that_was_not(tmp_path):
    whole = store_in(tmp_path / "whole")
    parted = store_in(tmp_path / "parted")
    every = Listed()
    whole.fill(every, TEXTS, SAMPLING)
    with pytest.raises(KeyboardInterrupt):
        parted.fill(Listed(survives=2 * PROMPTS), TEXTS, SAMPLING)
    assert len(parted.stored()[0]) == 2 * PROMPTS
    for at in (40, -6, None):  # a byte that is damaged afterwards, in data or footer
        again = Listed()
        parted.fill(again, TEXTS, SAMPLING)
        assert len(again.asked) == (PROMPTS + 5 if at == 40 else PROMPTS)
        assert _bytes(parted.directory) == _bytes(whole.directory)
        if at is not None:
            path = parted.directory / "part-00001.parquet"
            damaged = bytearray(path.read_bytes())
            damaged[at] ^= 0xFF
            path.write_bytes(damaged)
    assert whole.stored()[0] == {
        i: [f"{text} 0", f"{text} 1", f"{text} 2"] for i, text in enumerate(TEXTS)
    }
    assert every.asked != TEXTS
    assert sorted(every.asked) == sorted(TEXTS)  # each once, in another order


def test_stores_of_something_else_are_refused(tmp_path):
    store = store_in(tmp_path)
    store.fill(Listed(served="tiny-1"), TEXTS, SAMPLING)
    for change in ({"seed": 9}, {"prompts": "0"}, {"instruction": "x"}, {"model_revision": "s"}):
        with pytest.raises(InputError, match=next(iter(change)).replace("_", " ")):
            store_in(tmp_path, **change)
    (tmp_path / "part-00000.parquet").unlink()
    with pytest.raises(InputError, match="'tiny-1', and 'tiny-2'"):
        store.fill(Listed(served="tiny-2"), TEXTS, SAMPLING)
    other = store_in(tmp_path / "other")
    other.fill(Listed(served="tiny-2"), TEXTS, SAMPLING)
    shutil.copy(tmp_path / "other" / "part-00000.parquet", tmp_path)
    with pytest.raises(InputError, match="'tiny-2', and 'tiny-1'"):
        store.stored()
    (tmp_path / "completions.json").write_text(json.dumps([]))
    with pytest.raises(InputError, match="damaged"):
        store_in(tmp_path)
