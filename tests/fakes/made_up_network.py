"""Networks for the server whose numbers need no network, and which may be wrong in known ways.

Errors depend on what those of real servers may depend on: how many requests came before, what is in
the cache, how many requests are computed together. They lower log-probabilities, by `nats` a token.
"""

import threading
from collections.abc import Collection

import numpy as np
from transformers import PreTrainedTokenizerBase

from contamination.files import sha256_of
from contamination.scoring.endpoint_trust import FIRST_ASKED, LAST_ASKED
from fakes.completions_server import named_tokens

Scores = tuple[list[float | None], int, float]


class MadeUpNetwork:
    """Log-probabilities that depend on a token and on all before it.

    With `remembered` pairs of texts, the tokens of the second are likelier right after the first.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        context: int,
        remembered: Collection[tuple[tuple[int, ...], tuple[int, ...]]] = (),
    ) -> None:
        self.tokenizer = tokenizer
        self.context = context
        self.remembered = remembered
        self._named = named_tokens(tokenizer)

    def score(self, ids: list[int], temperature: float) -> Scores:
        """Return what `fakes.completions_server.Network.score` does."""
        state, values = 17, []
        for token in ids:
            state = _next_state(state, token)
            values.append(_value_of(state))
        its_value, generated = max((_value_of(_next_state(state, t)), t) for t in self._named)
        for before, behind in self.remembered:
            piece = [*before, *behind]
            for start in range(1, len(ids) - len(piece) + 1):
                if ids[start : start + len(piece)] == piece:
                    for place in range(start + len(before), start + len(piece)):
                        values[place] += 2.5
        return [None, *values[1:]], generated, its_value


def _next_state(state: int, token: int) -> int:
    return (state * 7919 + token * 104729 + 1) % 1_000_003


def _value_of(state: int) -> float:
    return -3 - state % 1009 / 101


class Wrong:
    """A network with errors; `shown` holds the largest of every answer."""

    def __init__(self, network: MadeUpNetwork, nats: float) -> None:
        self.network = network
        self.tokenizer, self.context = network.tokenizer, network.context
        self.nats = nats
        self.asked = 0
        self.shown: dict[int, float] = {}
        self.lock = threading.Lock()

    def score(self, ids: list[int], temperature: float) -> Scores:
        with self.lock:
            self.asked += 1
            number = self.asked
        values, generated, its_value = self.network.score(ids, temperature)
        errors = self.nats * self.error(ids, number)
        self.shown[number] = float(errors.max())
        wrong = [v - e for v, e in zip(values[1:], errors[1:].tolist(), strict=True)]
        return [None, *wrong], generated, its_value

    def error(self, ids: list[int], number: int) -> np.ndarray:
        raise NotImplementedError


class Drifting(Wrong):
    """Every answer is lower than the one before."""

    def error(self, ids: list[int], number: int) -> np.ndarray:
        return np.full(len(ids), float(number))


class Caching(Wrong):
    """Tokens are lower behind a beginning that was seen before, which is sought page by page."""

    PAGE = 8  # tokens

    known: set[tuple[int, ...]]

    def error(self, ids: list[int], number: int) -> np.ndarray:
        if number == 1:
            self.known = set()
        pages = [tuple(ids[:stop]) for stop in range(self.PAGE, len(ids), self.PAGE)]
        found = [len(page) for page in pages if page in self.known]
        self.known |= set(pages)
        return np.arange(len(ids)) >= max(found, default=len(ids))


class Loaded(Wrong):
    """Tokens are lower the more requests are computed together.

    Probes come at first and behind each call, one by one; the `each` others of a call come
    `together`. Where `divided` they are computed in two batches, sorted by what they are.
    """

    together, divided = 2, True

    def __init__(self, network: MadeUpNetwork, nats: float, each: int) -> None:
        super().__init__(network, nats)
        self.each = each
        self.prompts: list[tuple[int, ...]] = []
        self.load: dict[tuple[int, ...], float] = {}
        self.gathered = threading.Barrier(self.together, action=self.divide, timeout=60)
        self.left = threading.Barrier(self.together, timeout=60)

    def divide(self) -> None:
        """Say of each prompt which part of the others is computed with it."""
        prompts = sorted(self.prompts)
        self.prompts = []
        name = int(sha256_of(repr(prompts))[:8], 16)
        first = name % len(prompts) if self.divided else 0
        parts = (prompts[:first], prompts[first:])
        self.load = {}
        for part in parts:
            self.load |= dict.fromkeys(part, (len(part) - 1) / (len(prompts) - 1))

    def error(self, ids: list[int], number: int) -> np.ndarray:
        place = (number - FIRST_ASKED - 1) % (self.each + LAST_ASKED)
        if number <= FIRST_ASKED or place >= self.each:
            return np.zeros(len(ids))
        with self.lock:
            self.prompts.append(tuple(ids))
        self.gathered.wait()
        load = self.load[tuple(ids)]
        self.left.wait()
        return np.full(len(ids), load)
