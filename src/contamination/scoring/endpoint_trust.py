"""Whether a server's answers are those of one language model about the tokens sent.

`checked` looks at each answer. A server that puts a token of its own before the prompt
or leaves one out scores other tokens than those of the test set; orderings then no
longer share their tokens, and the tests of this project mean nothing.

`Trust` looks at several answers together. Two probes begin alike and end alike, with
different words between. A model gives the ends different log-probabilities and, but for
noise, the beginnings the same ones, whichever probe came first: vLLM with prefix
caching may not (vllm-project/vllm, issue 42019). The probes are asked when a server is
first used, again in the other order, then among the other requests and after the last,
so that a server that turns bad is noticed.

`require_agreement` looks at what the server itself generates. llama-cpp-python gives to
each token of an echo the log-probability that the row behind it holds, one too far;
every such value depends on its context as a model's does, and tests on them find
nothing. A generated token comes with the value of the right row. Sent back at the end
of its prompt, it must get the same value again.
"""

import reprlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import takewhile
from typing import Any
from uuid import uuid4

import numpy as np
from transformers import PreTrainedTokenizerBase

from contamination.errors import InputError
from contamination.testsets.tokens import tokenize

ADVICE = "use a server that scores prompts of token ids, such as vLLM or SGLang"
NO_EXTRAS = "turn add_special_tokens and add_bos_token off"
ROUNDING = 1e-3  # nats that a log-probability may lie above 0
ZERO_PROBABILITY = -9999.0  # what vLLM writes for minus infinity

# At most 13 tokens in any vocabulary; behind as much as the context holds of a
# beginning that fills a block of a server's cache.
PROBES = ("I saw a dog", "I fed a dog")
BEGINNING = (
    " is the number of the house at the end of the long road that goes from the old "
    "harbour to the white church on the hill, past the mill, the school and the "
    "market. "
)
SPARE = 2  # tokens of the context, for those that a server adds
# After each of these a token is generated, and sent back.
BEGUN = (
    "The capital of France is the city of",
    "One, two, three, four, five, six,",
    "Once upon a time there was a",
    "The sun rises in the east and sets in the",
)
# Requests before and behind all others; more where a generated token has a name of
# several.
FIRST_ASKED = 2 * len(PROBES) + 2 * len(BEGUN)
LAST_ASKED = len(PROBES)
# Tokens that are tried, of those that have the name of a generated one.
MOST_OF_A_NAME = 3
MOST_NOISE = 0.25  # nats a token, on average over the tokens of a probe that differ
MOST_NOISE_OF_ONE = 0.5  # nats, of the token before the probes differ
SAME = 1e-6  # nats
# Tokens of an answer that are alike: a model's first eight tokens never are.
CONSTANT = 8


class Spelling:
    """Names by which servers call the tokens of a tokenizer: ids, and texts of several kinds."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self._tokenizer = tokenizer
        self._special = frozenset(tokenizer.all_special_tokens)
        self._known = lru_cache(maxsize=1 << 16)(self._names)

    def decode(self, token: int) -> str:
        """Return the text of a token, special or not, nothing tidied up."""
        return str(self._tokenizer.decode([token], clean_up_tokenization_spaces=False))

    def _names(self, token: int) -> tuple[set[int | str], bool]:
        """Return the names of a token, and whether it is a piece of a character."""
        decoded = self.decode(token)
        raw = str(self._tokenizer.convert_ids_to_tokens(token))
        names: set[int | str] = {token, decoded, raw, raw.replace("▁", " "), f"token_id:{token}"}
        if raw in self._special:
            names.add("")
        is_piece = "\N{REPLACEMENT CHARACTER}" in decoded
        return names, is_piece

    def ids_of(self, name: str) -> list[int]:
        """Return tokens that a server may call by this name.

        Special ones are left out, and pieces of characters, which have no name of their
        own.
        """
        spelt = (name, name.replace(" ", "▁"), f"▁{name}")
        candidates = [self._tokenizer.convert_tokens_to_ids(text) for text in spelt]
        ids = tokenize(self._tokenizer, [name])[0].tolist()
        if len(ids) == 1:
            candidates += ids
        number = name.removeprefix("token_id:")
        if number.isascii() and number.isdecimal() and int(number) < len(self._tokenizer):
            candidates.append(int(number))
        special = self._tokenizer.all_special_ids
        known = [each for each in candidates if each is not None and each not in special]
        return [each for each in dict.fromkeys(known) if name in self._known(each)[0]]

    def is_about(self, name: int | str, token: int) -> bool:
        """Whether a name may be that of the token."""
        names, piece = self._known(token)
        # Servers call a piece of a character this and that, but not by the name of
        # another token.
        other = isinstance(name, int) or name in self._special
        return name in names or (piece and not other)


def checked(
    positions: Sequence[Mapping[Any, Any]],
    counted: Any,
    prompt: Sequence[int],
    spelling: Spelling,
) -> np.ndarray:
    """Return the log-probabilities of prompt[1:], float32, nats, if they belong to it.

    `positions` holds log-probabilities by the token's id or text, not checked yet; the
    first one is None. `counted` are the tokens of the prompt as the server counts them,
    None or 0 where it does not. Raises InputError if the log-probabilities belong to
    other tokens, or may do so, or are none.
    """
    if len(positions) != len(prompt):
        told = f"{len(positions)} log-probabilities for a prompt of {len(prompt)} tokens"
        raise InputError(
            f"the server gives {told}: it adds or drops some; {NO_EXTRAS}, or {ADVICE}"
        )
    found = []
    for number, (position, token) in enumerate(zip(positions, prompt, strict=True)):
        values = [value for name, value in position.items() if spelling.is_about(name, token)]
        if not values:
            raise InputError(
                f"the server gives {reprlib.repr(next(iter(position), None))} at "
                f"position {number}, where {token} ({spelling.decode(token)!r}) was "
                f"sent: it adds or drops tokens ({NO_EXTRAS}) or has another "
                f"tokenizer; name the model's, or {ADVICE}"
            )
        found.append(values[0])
    # Of what is left out, the count is the proof.
    if (counted and counted != len(prompt)) or found[0]:
        raise InputError(
            f"the server counts {counted} tokens in a prompt of {len(prompt)}, or "
            f"scores the first one, so it adds or drops some; {NO_EXTRAS}"
        )
    for number, value in enumerate(found[1:], start=1):
        # To Python, true is 1; and NaN is not above anything.
        if type(value) not in (int, float) or not ZERO_PROBABILITY < value <= ROUNDING:
            raise InputError(
                f"the server gives {reprlib.repr(value)} for the token at position "
                f"{number}, which is no log-probability; check the model, turn prefix "
                f"caching off, or {ADVICE}"
            )
    if len(prompt) > CONSTANT and len(set(found[1:])) == 1:
        told = f"every token has the log-probability {found[1]:g}, which stands for none"
        raise InputError(f"{told}; {ADVICE}")
    return np.minimum(np.array(found[1:], dtype=np.float32), np.float32(0))


def read_generated(answer: Any) -> tuple[str, float] | None:
    """Return the name of the token that was generated, and its log-probability.

    Return None if there is none.
    """
    try:
        found = answer["choices"][0]["logprobs"]
        name = found["tokens"][-1]
        value = found["token_logprobs"][-1]
    except (LookupError, TypeError):
        return None
    if type(value) not in (int, float) or not ZERO_PROBABILITY < value <= ROUNDING:
        return None
    return str(name), float(value)


def require_agreement(pairs: Sequence[tuple[float, float]]) -> None:
    """Raise InputError unless generated tokens have the same values when they are sent back.

    `pairs` are log-probabilities (nats) of one token each: as it was generated, and as
    part of a prompt. They may differ by twice the noise that passes on average. One of
    several may differ by more: some servers report what they sample from, with
    penalties for what stands in the prompt. A row too far moves nearly every value by
    whole nats.
    """
    if not pairs:
        raise InputError(
            "the server gives no log-probability of a token that it generates, so "
            f"nothing shows that those of the prompt are in the right places; {ADVICE}"
        )
    apart = [pair for pair in pairs if abs(pair[0] - pair[1]) > MOST_NOISE_OF_ONE]
    if len(apart) > 1 or len(apart) == len(pairs):
        generated, sent = apart[0]
        raise InputError(
            f"the server generates a token with {generated:.3g} nats, and gives it "
            f"{sent:.3g} where it is sent ({len(apart)} of {len(pairs)} tokens differ "
            "so): the values belong to other tokens, as where they are shifted by a "
            f"row; {ADVICE}"
        )


class Trust:
    """What a server's answers to the probes have shown so far.

    Attributes
    ----------
    prompts : the probes, token ids behind the start token; `most` of them fit into the
        context.
    begun : prompts that end where a token is to be generated.
    shared : tokens behind the start token with which both begin.
    noise : nats a token by which two answers to the same prompt, or to the same
        beginning, differ, on average over the tokens that do; the largest seen, None
        before there were two.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        start: int,
        most: int,
    ) -> None:
        # The number is new every time: no server has it in its cache.
        number = f"{uuid4().int % 10**6:06d}"
        beginning, *ends = tokenize(tokenizer, [number + BEGINNING, *PROBES])
        kept = beginning[-max(1, most - SPARE - max(map(len, ends))) :]
        self.prompts = [np.concatenate([[start], kept, end]) for end in ends]
        room = most - SPARE - 1
        self.begun = [
            np.concatenate([[start], ids[-room:]]) for ids in tokenize(tokenizer, list(BEGUN))
        ]
        self.shared = _alike(*self.prompts) - 1
        self._behind = _alike(*(p[::-1] for p in self.prompts))
        self._first: dict[int, np.ndarray] = {}
        self._latest: dict[int, np.ndarray] = {}
        self.noise: float | None = None

    def hear(self, probe: int, values: np.ndarray) -> None:
        """Take an answer to a probe, without its start token.

        Raises InputError for too bad a sign.
        """
        self._latest[probe] = values
        first = self._first.setdefault(probe, values)
        if len(self._latest) < len(PROBES):
            return
        one, other = self._latest[0], self._latest[1]
        same = np.abs(one[: self.shared] - other[: self.shared])
        gaps = [gap for gap in (same, np.abs(values - first)) if gap.any()]
        # What is equal to the last bit came from the cache, or was left alone by what
        # moves others.
        noise = max((float(gap[gap > 0].mean()) for gap in gaps), default=0.0)
        self.noise = max(self.noise or 0.0, noise)
        signs = {
            "the log-probabilities after different texts are the same: they do not "
            "depend on the "
            "context": np.array_equal(one[-self._behind :], other[-self._behind :]),
            "different tokens after the same text have the same log-probability: "
            "values are "
            "shifted by one": abs(one[self.shared] - other[self.shared]) < SAME,
            "the log-probability of a token depends on the token behind it": same[-1]
            > max(MOST_NOISE_OF_ONE, 10 * same[:-1].mean()),
            f"the log-probabilities of the same tokens differ by {noise:.2g} nats a "
            f"token from one request to another, and {MOST_NOISE:g} is the most that "
            "noise may be (let the server "
            "serve one model alone, and turn prefix caching off)": noise > MOST_NOISE,
        }
        for told, seen in signs.items():
            if seen:
                raise InputError(f"{told}; {ADVICE}")


def _alike(one: np.ndarray, other: np.ndarray) -> int:
    """Return how many tokens are the same from the start on."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
