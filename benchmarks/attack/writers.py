"""Faulty servers that write, for `run.py`: answers of text or of chat that go wrong.

What is accepted must be texts, as many as were asked for and no longer than they may be, which a
file can hold. A prompt whose answer nobody touched must have the texts of an honest server, or
empty ones where a filter refused it.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from servers import SPOILS, failed_answer

from contamination.scoring.generation import (
    LONGEST_TOKEN,
    OPTIONAL,
    EndpointGenerator,
    Sampling,
)
from fakes.completions_server import CompletionsServer, serving

Rng = np.random.Generator
STYLES = ("openai", "chat")
PROMPTS = [f"The record of number {number}" for number in range(8)]
SAMPLING = Sampling(samples=3, tokens=4)


class MadeUpWriter:
    """Writes words that follow from prompt, sampling and seed, without a model."""

    def texts(self, prompt: str, sampling: Sampling, seed: int) -> list[str]:
        """Return the texts after a prompt."""
        written = list[str]()
        for number in range(sampling.samples):
            source = f"{prompt} {sampling.temperature} {seed} {number}"
            written.append(f" says {hashlib.sha256(source.encode()).hexdigest()[:8]}.")
        return written


def attack_writers(rng: Rng, folder: object) -> str:
    """Let a server write that goes wrong, and compare with an honest one."""
    style = str(rng.choice(STYLES))
    refused = str(rng.choice(OPTIONAL)) if rng.random() < 0.3 else ""
    share = float(rng.choice([0.1, 0.5, 1.0]))
    spoil = SPOILS[int(rng.integers(len(SPOILS)))]
    answers: list[dict[str, Any]] = []
    with _serving(style, refused) as server:
        honest = _generator(server)
        expected = honest.generate(PROMPTS, SAMPLING)
    with _serving(style, refused) as server:
        spoilt = list[int]()

        def tamper(answer: dict[str, Any], number: int) -> None:
            answers.append(answer)
            if rng.random() < share:
                spoil(answer, answers, rng)
                spoilt.append(number)
            elif rng.random() < share / 4:
                server.failures.append(failed_answer(answer, rng))
                spoilt.append(number + 1)  # which may get this answer, hardly damaged

        server.tamper = tamper
        generator = _generator(server)
        texts = generator.generate(PROMPTS, SAMPLING)
    for written in texts:
        _require_texts(written)
    pairs = zip(texts, expected, strict=True)
    differing = sum(now != before and any(now) for now, before in pairs)  # empty: filtered
    if generator.left_out == honest.left_out and differing > len(spoilt):
        raise AssertionError(f"{style}, {spoil.__name__}: {texts} is not {expected}")
    return "survived"


@contextmanager
def _serving(style: str, refused: str) -> Iterator[CompletionsServer]:
    """Serve texts; a field is refused where it says more than a server does without it."""

    def reason(body: dict[str, Any]) -> str:
        return f"{refused} is not supported" if body.get(refused, 1) != 1 else ""

    with serving(None, style, MadeUpWriter()) as server:  # type: ignore[arg-type]
        server.refuses = reason
        yield server


def _generator(server: CompletionsServer) -> EndpointGenerator:
    return EndpointGenerator(server.url, "m", concurrency=1, timeout=2.0, max_requests=200)


def _require_texts(written: list[str]) -> None:
    """Raise AssertionError for anything but as many texts as were asked for, each of a length."""
    if len(written) != SAMPLING.samples:
        raise AssertionError(f"{len(written)} texts of {SAMPLING.samples}")
    for text in written:
        if not isinstance(text, str) or len(text) > SAMPLING.tokens * LONGEST_TOKEN:
            raise AssertionError(f"no text, or too long a one: {str(text)[:200]!r}")
        text.encode()
