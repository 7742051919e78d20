"""Faulty servers for `run.py`: they are honest at the start-up check, and go wrong after it.

Some answers are spoilt, others are no answers at all; some servers refuse fields, or are wrong from
the start: they give each token the value of the row behind it. What is accepted must be what the
honest server says. A server that lies with numbers as a model could give them is not found out,
here or by anything that asks it alone, so there is none.
"""

import json
import tempfile
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from records import damage, kept_folder

from contamination.files import sha256_of
from contamination.scoring.endpoint import EndpointScorer
from contamination.scoring.endpoint_trust import FIRST_ASKED
from contamination.scoring.plan import StorePlan
from contamination.scoring.score import score
from contamination.scoring.store_format import Kind
from contamination.testsets.example_set import ExampleSet
from fakes.completions_server import CompletionsServer, Failure, serving
from fakes.made_up_network import MadeUpNetwork, Scores
from reproduction.run.tokenizer import train_tokenizer

Rng = np.random.Generator
STYLES = ("vllm", "sglang", "openai")
SHARDS, PERMUTATIONS, CONTEXT = 2, 3, 512
FIELDS = ("logprobs", "prompt_logprobs", "echo", "temperature", "max_tokens", "prompt")
LONGEST = 100  # tokens that no record has


def attack_servers(rng: Rng, folder: Path) -> str:
    """Score a set with a server that goes wrong after its first few answers."""
    style = str(rng.choice(STYLES))
    kind: Kind = "successors" if rng.random() < 0.5 else "orderings"
    expected = _honest(style, kind)
    # Answers before the first bad one: at least those of the start-up check.
    good = int(rng.integers(FIRST_ASKED, FIRST_ASKED + 16))
    share = float(rng.choice([0.1, 0.5, 1.0]))
    spoil = SPOILS[int(rng.integers(len(SPOILS)))]
    answers: list[dict[str, Any]] = []

    def tamper(answer: dict[str, Any], number: int) -> None:
        answers.append(deepcopy(answer))
        if number > good and rng.random() < share:
            spoil(answer, answers, rng)
        elif number > good and rng.random() < share / 4:
            server.failures.append(failed_answer(answer, rng))

    wrong_row = rng.random() < 0.05
    with serving(_shifted() if wrong_row else _network(), style) as server:
        server.tamper = tamper
        if rng.random() < 0.1:
            refused = str(rng.choice(FIELDS))
            server.refuses = partial(_refusal_of, refused)
        found = _values(server, folder, kind)
    if wrong_row:
        raise AssertionError(f"{style}, {kind}: values of the row behind each token were accepted")
    if not np.array_equal(found, expected):
        raise AssertionError(f"{style}, {kind}, {spoil.__name__}: {found} is not {expected}")
    return "survived"


@cache
def _honest(style: str, kind: Kind) -> np.ndarray:
    with serving(_network(), style) as server, tempfile.TemporaryDirectory() as folder:
        return _values(server, Path(folder), kind)


def _values(server: CompletionsServer, folder: Path, kind: Kind) -> np.ndarray:
    examples = tuple(f"The record of number {i * 37 % 101} says {i}.\n" for i in range(6))
    scorer = EndpointScorer(
        server.url, "m", _folder(), context=CONTEXT, concurrency=1, timeout=2.0, max_requests=200
    )
    test_set = ExampleSet("set", examples, "text/1", sha256_of("text/1", *examples))
    store = score(
        test_set,
        scorer,
        folder / "store",
        StorePlan(kind, SHARDS),
        model="m",
        permutations=PERMUTATIONS,
        seed=1,
    )
    if kind == "orderings":
        return store.log_probs(PERMUTATIONS)
    pairs = [store.successors(shard, LONGEST) for shard in range(SHARDS)]
    return np.stack([matrix[~np.eye(len(matrix), dtype=bool)] for matrix in pairs])


@cache
def _network() -> MadeUpNetwork:
    return MadeUpNetwork(_tokenizer(), CONTEXT)


class _RowsShifted(MadeUpNetwork):
    """Gives to each token of a prompt its log-probability in the row behind it."""

    def score(self, ids: list[int], temperature: float) -> Scores:
        _, generated, its_value = super().score(ids, temperature)
        values: list[float | None] = [None]
        for place in range(1, len(ids)):
            twice = [*ids[: place + 1], ids[place]]
            values.append(super().score(twice, temperature)[0][-1])
        return values, generated, its_value


@cache
def _shifted() -> MadeUpNetwork:
    return _RowsShifted(_tokenizer(), CONTEXT)


def _refusal_of(field: str, body: dict[str, Any]) -> str:
    """Return why a server that does not know a field refuses a request; empty if it does not."""
    return f"Unrecognized request argument: {field}" if field in body else ""


@cache
def _folder() -> Path:
    folder = kept_folder()
    _tokenizer().save_pretrained(folder)
    return folder


@cache
def _tokenizer() -> Any:
    return train_tokenizer([f"The record of number {i} says {i}.\n" for i in range(200)], 300)


ODD: tuple[Any, ...] = (
    *(None, True, False, "x", "-1.5", "", [], {}, 1e308, float("nan"), float("inf")),
    *(float("-inf"), 3.5, 10**400, [None], {"logprob": True}, "\0", 2**63),
)


def _odd_value(answer: dict[str, Any], answers: list[dict[str, Any]], rng: Rng) -> None:
    """Replace something in the answer by what does not belong there, or take it away."""
    holder, key = _places(answer)[int(rng.integers(len(_places(answer))))]
    if rng.random() < 0.3:
        del holder[key]
    else:
        holder[key] = ODD[int(rng.integers(len(ODD)))]


def _odd_number(answer: dict[str, Any], answers: list[dict[str, Any]], rng: Rng) -> None:
    """Replace one log-probability by what is none."""
    places = [(h, k) for h, k in _places(answer) if isinstance(h[k], float)]
    if places:
        holder, key = places[int(rng.integers(len(places)))]
        holder[key] = ODD[int(rng.integers(len(ODD)))]


def _constant(answer: dict[str, Any], answers: list[dict[str, Any]], rng: Rng) -> None:
    """Give every token the same log-probability."""
    value = float(rng.choice([0.0, -1.0, -100.0]))
    for holder, key in _places(answer):
        if isinstance(holder[key], float):
            holder[key] = value


def _of_another_prompt(answer: dict[str, Any], answers: list[dict[str, Any]], rng: Rng) -> None:
    """Answer what was asked before."""
    answer.clear()
    answer.update(deepcopy(answers[int(rng.integers(len(answers)))]))


def _other_length(answer: dict[str, Any], answers: list[dict[str, Any]], rng: Rng) -> None:
    """Drop or repeat the items of a list."""
    lists = [h[k] for h, k in _places(answer) if isinstance(h[k], list) and h[k]]
    chosen = lists[int(rng.integers(len(lists)))]
    index = int(rng.integers(len(chosen)))
    if rng.random() < 0.5:
        del chosen[index]
    else:
        chosen.insert(index, deepcopy(chosen[index]))


def _deep(answer: dict[str, Any], answers: list[dict[str, Any]], rng: Rng) -> None:
    """Nest something as deep as the encoder can."""
    nested: Any = 1
    for _ in range(int(rng.integers(1, 300))):
        nested = [nested]
    answer[str(rng.choice(["choices", "usage", "model", "other"]))] = nested


def _not_finite(answer: dict[str, Any], answers: list[dict[str, Any]], rng: Rng) -> None:
    """Give a few tokens no number, as a model in too low a precision does."""
    places = [(h, k) for h, k in _places(answer) if isinstance(h[k], float)]
    for index in rng.integers(len(places), size=3) if places else ():
        holder, key = places[int(index)]
        holder[key] = float(rng.choice([np.nan, np.inf, -np.inf]))


def _long(answer: dict[str, Any], answers: list[dict[str, Any]], rng: Rng) -> None:
    """Write megabytes where a token was asked for."""
    holder = answer if rng.random() < 0.5 else answer["choices"][0]
    holder["text"] = "x" * int(rng.choice([10_000, 2_300_000, 20_000_000]))


def _another_model(answer: dict[str, Any], answers: list[dict[str, Any]], rng: Rng) -> None:
    """Say that another model answers."""
    answer["model"] = "other"
    for holder, key in _places(answer):
        if isinstance(holder[key], float):
            holder[key] = min(0.0, holder[key] + 1)


def _nothing(answer: dict[str, Any], answers: list[dict[str, Any]], rng: Rng) -> None:
    """Leave the answer as it is: only failures come between."""


def _places(answer: Any) -> list[tuple[Any, Any]]:
    """List every (holder, key) of the values in an answer."""

    def walk(node: Any) -> Iterator[tuple[Any, Any]]:
        if not isinstance(node, dict | list):
            return
        for key in list(node) if isinstance(node, dict) else range(len(node)):
            yield node, key
            yield from walk(node[key])

    return list(walk(answer))


def failed_answer(answer: dict[str, Any], rng: Rng) -> Failure:
    """Make an answer that is none."""
    body = json.dumps(answer).encode()
    elsewhere = str(rng.choice(["/v1/completions", "http://[", ""]))
    failures = (
        Failure(status=int(rng.choice([400, 401, 403, 404, 413, 418, 422, 500, 501, 505]))),
        Failure(status=int(rng.choice([429, 502, 503])), headers={"Retry-After": "0"}),
        Failure(status=int(rng.choice([301, 302, 307, 308]))),
        Failure(status=307, headers={"Location": elsewhere}),
        Failure(body=body, cut=True),
        Failure(body=damage(body, rng)),
        Failure(body=b"[" * 100_000),
        Failure(body=b"<html>busy</html>", headers={"Content-Type": "text/html"}),
        Failure(body=rng.bytes(200)),
        Failure(body=b""),
        Failure(body=b"null"),
        Failure(body=body, headers={"Content-Encoding": "gzip"}),
        Failure(status=503, headers={"Retry-After": "\xb2", "X-Served-By": "h\xf6st"}),
        Failure(status=307, headers={"Location": "http://h\xf6st/v1"}),
        Failure(status=500, body=b'{"error": {"message": "not JSON compliant: nan"}}'),
        Failure(status=429, body=b'{"error": {"code": "insufficient_quota"}}'),
        Failure(status=400, body=b'{"error": {"code": "content_filter"}}'),
    )
    return failures[int(rng.integers(len(failures)))]


Spoil = Callable[[dict[str, Any], list[dict[str, Any]], Rng], None]
SPOILS: tuple[Spoil, ...] = (
    *(_odd_value, _odd_value, _odd_number, _odd_number),
    *(_constant, _of_another_prompt, _other_length, _deep, _nothing),
    *(_not_finite, _long, _another_model),
)
