"""Whether a server's answers are those of one language model about the tokens sent.

`checked` looks at each answer. A server that puts a token of its own before the prompt or leaves
one out scores other tokens than those of the test set; orderings then no longer share their tokens,
and the tests of this project mean nothing.

`Trust` looks at several answers together. Two probes begin alike and end alike, with different
words between. A model gives the ends different log-probabilities and, but for noise, the beginnings
the same ones, whichever probe came first: vLLM with prefix caching may not (vllm-project/vllm,
issue 42019). The probes are asked when a server is first used, again in the other order, then among
the other requests and after the last, so that a server that turns bad is noticed.
"""

import reprlib
from collections.abc import Sequence
from functools import lru_cache
from itertools import takewhile, zip_longest
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
from transformers import PreTrainedTokenizerBase

from contamination.errors import InputError
from contamination.testsets.tokens import tokenize

ADVICE = "use a server that scores prompts of token ids, such as vLLM or SGLang"
NO_EXTRAS = "turn add_special_tokens and add_bos_token off"
ROUNDING = 1e-3  # nats that a log-probability may lie above 0
ZERO_PROBABILITY = -9999.0  # what vLLM writes for minus infinity

# At most 13 tokens in any vocabulary; behind a beginning that fills a block of a server's cache.
PROBES = ("I saw a dog", "I fed a dog")
BEGINNING = (
    " is the number of the house at the end of the long road that goes from the old harbour to the "
    "white church on the hill, past the mill, the school and the market. "
)
FIRST_ASKED, LAST_ASKED = 2 * len(PROBES), len(PROBES)  # requests before and behind all others
MOST_NOISE = 0.25  # nats a token, on average over the tokens of a probe that differ
MOST_NOISE_OF_ONE = 0.5  # nats, of the token before the probes differ
SAME = 1e-6  # nats
CONSTANT = 8  # tokens of answers that are constants: a model's first eight tokens never are


class NoPromptLogprobs(InputError):
    """The answer holds no log-probabilities of the prompt: another format may bring them."""


class Position(NamedTuple):
    """What an answer says of one token; None where it says nothing. Not checked yet."""

    logprob: Any
    id: int | None = None
    text: str | None = None


class Spelling:
    """Texts by which servers call the tokens of a tokenizer."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self._tokenizer = tokenizer
        self._special = frozenset(tokenizer.all_special_tokens)
        self.size = len(tokenizer)
        self._known = lru_cache(maxsize=1 << 16)(self._texts)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of the tokens, special ones included, nothing tidied up."""
        return str(self._tokenizer.decode(list(ids), clean_up_tokenization_spaces=False))

    def _texts(self, token: int) -> tuple[set[str], bool]:
        decoded = self.decode([token])
        raw = str(self._tokenizer.convert_ids_to_tokens(token))
        texts = {raw, raw.replace("▁", " "), f"token_id:{token}"}
        if raw in self._special:
            texts.add("")
        whole = "\N{REPLACEMENT CHARACTER}" not in decoded
        return texts | {decoded} if whole else texts, whole

    def is_about(self, position: Position, token: int) -> bool:
        """Whether a position may be about that token."""
        if position.id is not None or position.text is None:
            return position.id in (token, None)
        texts, whole = self._known(token)
        # Servers call a piece of a character this and that, but not by the name of another token.
        return position.text in texts or not (whole or position.text in self._special)

    def describe(self, position: Position) -> str:
        """Name a token by id and text as far as they are given, for messages."""
        if position.id is None:
            return "unnamed" if position.text is None else reprlib.repr(position.text)
        known = 0 <= position.id < self.size
        return f"{position.id} ({self.decode([position.id])!r})" if known else str(position.id)


def checked(
    positions: Sequence[Position], counted: Any, prompt: Sequence[int], spelling: Spelling
) -> np.ndarray:
    """Return the log-probabilities of prompt[1:], float32, nats, if they belong to it.

    The first position has no value; `counted` are the tokens of the prompt as the server counts
    them, None or 0 where it does not. Raises InputError if the log-probabilities belong to other
    tokens, or may do so, or are none.
    """
    if all(position.id is None and position.text is None for position in positions):
        raise InputError(f"the server does not tell which tokens it scored; {ADVICE}")
    pairs = zip_longest(positions, prompt)
    for number, (position, token) in enumerate(pairs):
        if position is None or token is None:
            told = f"{len(positions)} log-probabilities for a prompt of {len(prompt)} tokens"
            raise InputError(f"the server gives {told}; {ADVICE}")
        if not spelling.is_about(position, token):
            raise InputError(
                f"the server gives {spelling.describe(position)} at position {number}, where "
                f"{spelling.describe(Position(None, token))} was sent: it adds or drops tokens "
                f"({NO_EXTRAS}) or has another tokenizer; name the model's, or {ADVICE}"
            )
    # Of what is left out, the count is the proof.
    if (counted and counted != len(prompt)) or positions[0].logprob:
        raise InputError(
            f"the server counts {counted} tokens in a prompt of {len(prompt)}, or scores the first "
            f"one, so it adds or drops some; {NO_EXTRAS}"
        )
    values = [position.logprob for position in positions[1 : len(prompt)]]
    for number, value in enumerate(values, start=1):
        # To Python, true is 1; and NaN is not above anything.
        if type(value) not in (int, float) or not ZERO_PROBABILITY < value <= ROUNDING:
            raise InputError(
                f"the server gives {reprlib.repr(value)} for the token at position {number}, which "
                f"is no log-probability; check the model, turn prefix caching off, or {ADVICE}"
            )
    return np.minimum(np.array(values, dtype=np.float32), np.float32(0))


class Trust:
    """What a server's answers have shown so far; every method raises InputError for too bad a sign.

    Attributes
    ----------
    prompts : the probes, token ids behind the start token.
    shared : tokens behind the start token with which both begin.
    noise : nats a token by which two answers to the same prompt, or to the same beginning, differ,
        on average over the tokens that do; the largest seen, None before there were two.
    """

    def __init__(self, url: str, tokenizer: PreTrainedTokenizerBase, start: int, most: int) -> None:
        self._url = url
        # The number is new every time: no server has it in its cache.
        beginning = f"{uuid4().int % 10**6:06d}{BEGINNING}"
        long, short = (tokenize(tokenizer, [b + p for p in PROBES]) for b in (beginning, ""))
        chosen = long if max(map(len, long)) <= most else short
        self.prompts = [np.append(start, ids) for ids in chosen]
        self.shared = _alike(*self.prompts) - 1
        self._behind = _alike(*(p[::-1] for p in self.prompts))
        self._first: dict[int, np.ndarray] = {}
        self._latest: dict[int, np.ndarray] = {}
        self._constant = 0
        self.noise: float | None = None

    def hear(self, probe: int, values: np.ndarray) -> None:
        """Take an answer to a probe, without its start token."""
        self.watch(values)
        self._latest[probe] = values
        if len(self._latest) < len(PROBES):
            self._first[probe] = values
            return
        one, other, behind = self._latest[0], self._latest[1], self._behind
        if behind and np.array_equal(one[-behind:], other[-behind:]):
            told = "the log-probabilities after different texts are the same"
            raise InputError(f"{self._url}: {told}: they do not depend on the context; {ADVICE}")
        if abs(one[self.shared] - other[self.shared]) < SAME:  # where they begin to differ
            told = "different tokens after the same text have the same log-probability"
            raise InputError(f"{self._url}: {told}: values are shifted by one; {ADVICE}")
        gaps = [np.abs(values - self._first.setdefault(probe, values))]
        if self.shared:
            gap = np.abs(one[: self.shared] - other[: self.shared])
            gaps.append(gap)
            rest = float(gap[:-1].mean()) if len(gap) > 1 else 0.0
            if gap[-1] > max(MOST_NOISE_OF_ONE, 10 * rest):
                told = "the log-probability of a token depends on the token behind it"
                raise InputError(f"{self._url}: {told}; {ADVICE}")
        # What is equal to the last bit came from the cache, or was left alone by what moves others.
        found = max((float(gap[gap > 0].mean()) for gap in gaps if gap.any()), default=0.0)
        self.noise = max(self.noise or 0.0, found)
        if found > MOST_NOISE:
            raise InputError(
                f"{self._url}: the log-probabilities of the same tokens differ by {found:.2g} nats "
                f"a token from one request to another, and {MOST_NOISE:g} is the most that noise "
                "may be: let the server serve one model alone, and turn prefix caching off"
            )

    def watch(self, values: np.ndarray) -> None:
        """Take the answer to any request, all its tokens."""
        if len(values) > 1:  # one value is always like itself
            self._constant = 0 if np.ptp(values) else self._constant + len(values)
        if self._constant >= CONSTANT:
            told = f"every token has the log-probability {values[0]:g}, which stands for none"
            raise InputError(f"{self._url}: {told}; {ADVICE}")


def _alike(one: np.ndarray, other: np.ndarray) -> int:
    """How many tokens are the same from the start on."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
