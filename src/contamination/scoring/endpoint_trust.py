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

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
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
STEPS = (1.0, 0.5, 0.25, 0.1, 0.05)  # nats, to whose multiples a server may round
# Tokens of an answer that are alike: a model's first eight tokens never are.
CONSTANT = 8


class Spelling:
    """Names that servers give to the tokens of a tokenizer: ids, and several texts."""

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
        spaced = raw.replace("▁", " ")
        names: set[int | str] = {token, decoded, raw, spaced, f"token_id:{token}"}
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
        digits = name.removeprefix("token_id:")
        if digits.isascii() and digits.isdecimal() and int(digits) < len(self._tokenizer):
            candidates.append(int(digits))
        unusable = {None, *self._tokenizer.all_special_ids}
        tokens: list[int] = []
        for token in dict.fromkeys(candidates):
            if token not in unusable and name in self._known(token)[0]:
                tokens.append(token)
        return tokens

    def is_about(self, name: int | str, token: int) -> bool:
        """Whether a name may be that of the token."""
        names, piece = self._known(token)
        # Servers call a piece of a character this and that, but not by the name of
        # another token.
        names_another = isinstance(name, int) or name in self._special
        return name in names or (piece and not names_another)


def checked(
    positions: Sequence[Mapping[Any, Any]],
    counted: Any,
    prompt: Sequence[int],
    spelling: Spelling,
    shown: Callable[[Any], str],
) -> np.ndarray:
    """Return the log-probabilities of prompt[1:], float32, nats, if they belong to it.

    `positions` has, for each token of the prompt, log-probabilities by the id or the
    text of a token, not checked yet; that of the first token is None. `counted` are the
    tokens of the prompt as the server counts them; None or 0 if it does not. `shown` is
    how a message shows what the server gives. Raises InputError if the
    log-probabilities belong to other tokens, or may do so, or are none.
    """
    if len(positions) != len(prompt):
        raise InputError(
            f"the server gives {len(positions)} log-probabilities for a prompt of "
            f"{len(prompt)} tokens: it adds or drops some; {NO_EXTRAS}, or {ADVICE}"
        )
    log_probs: list[Any] = []
    for number, (position, token) in enumerate(zip(positions, prompt, strict=True)):
        names = [name for name in position if spelling.is_about(name, token)]
        if not names:
            raise InputError(
                f"the server gives {shown(next(iter(position), None))} at "
                f"position {number}, where {token} ({spelling.decode(token)!r}) was "
                f"sent: it adds or drops tokens ({NO_EXTRAS}) or has another "
                f"tokenizer; name the model's, or {ADVICE}"
            )
        log_probs.append(position[names[0]])
    first, *others = log_probs
    # Of what is left out, the count is the proof.
    if (counted and counted != len(prompt)) or first:
        raise InputError(
            f"the server counts {shown(counted)} tokens in a prompt of {len(prompt)}, or "
            f"scores the first one, so it adds or drops some; {NO_EXTRAS}"
        )
    for number, value in enumerate(others, start=1):
        if not is_log_probability(value):
            raise InputError(
                f"the server gives {shown(value)} for the token at position "
                f"{number}, which is no log-probability; check the model, turn prefix "
                f"caching off, or {ADVICE}"
            )
    if len(prompt) > CONSTANT and len(set(others)) == 1:
        raise InputError(
            f"every token has the log-probability {others[0]:g}, which stands for none; {ADVICE}"
        )
    return np.minimum(np.array(others, dtype=np.float32), np.float32(0))


def is_log_probability(value: Any) -> bool:
    """Return whether an entry of an answer is the log-probability of a token."""
    # To Python, true is 1; and NaN is not above anything.
    return type(value) in (int, float) and ZERO_PROBABILITY < value <= ROUNDING


def read_generated(answer: Any) -> tuple[str, float] | None:
    """Return the name of the token that was generated, and its log-probability.

    Return None if there is none.
    """
    try:
        logprobs = answer["choices"][0]["logprobs"]
        name = logprobs["tokens"][-1]
        value = logprobs["token_logprobs"][-1]
    except (LookupError, TypeError):
        return None
    if not is_log_probability(value):
        return None
    return str(name), float(value)


def require_agreement(pairs: Sequence[tuple[float, float]]) -> None:
    """Raise InputError unless generated tokens keep their values when they are sent.

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
    """The findings from a server's answers to the probes so far.

    Attributes
    ----------
    prompts
        The probes, token ids behind the start token.
    begun
        Prompts that end where a token is to be generated.
    shared
        Tokens behind the start token with which both begin.
    noise
        Nats a token by which two answers to the same prompt, or to the same beginning,
        differ, on average over the tokens that do; the largest seen, None before there
        were two.
    step
        The largest of `STEPS` of which all answers to the probes are multiples (nats);
        None if they are of none, or there were no two.

    Parameters
    ----------
    tokenizer
        Tokenizer of the model.
    start
        Id of the start token.
    most
        Tokens that fit into the context.
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
        longest_end = max(map(len, ends))
        kept = beginning[-max(1, most - SPARE - longest_end) :]
        self.prompts = [np.concatenate([[start], kept, end]) for end in ends]
        room = most - SPARE - 1
        self.begun: list[np.ndarray] = []
        for ids in tokenize(tokenizer, list(BEGUN)):
            self.begun.append(np.concatenate([[start], ids[-room:]]))
        first, second = self.prompts
        self.shared = _equal_beginning(first, second) - 1
        self._behind = _equal_beginning(first[::-1], second[::-1])
        self._first: dict[int, np.ndarray] = {}
        self._latest: dict[int, np.ndarray] = {}
        self.noise: float | None = None
        self.step: float | None = None

    def hear(self, probe: int, values: np.ndarray) -> None:
        """Take an answer to a probe, without its start token.

        Raises InputError for too bad a sign.
        """
        self._latest[probe] = values
        first = self._first.setdefault(probe, values)
        if len(self._latest) < len(PROBES):
            return
        noise = max(_noise(self._gaps()), _noise(np.abs(values - first)))
        self.noise = max(self.noise or 0.0, noise)
        self.step = coarse_step(np.concatenate([*self._first.values(), *self._latest.values()]))
        sign = self._bad_sign(noise)
        if sign:
            raise InputError(f"{sign}; {ADVICE}")

    def _gaps(self) -> np.ndarray:
        """Return how far the latest answers are apart on what both probes begin with."""
        first, second = self._latest[0], self._latest[1]
        return np.asarray(np.abs(first[: self.shared] - second[: self.shared]))

    def _bad_sign(self, noise: float) -> str:
        """Return why the latest answers are not one model's; "" if they may be."""
        first, second = self._latest[0], self._latest[1]
        gaps = self._gaps()
        ends = first[-self._behind :]
        if np.array_equal(ends, second[-self._behind :]):
            return self._cut_off(ends) or (
                "the log-probabilities after different texts are the same: they do not "
                "depend on the context"
            )
        differing = first[self.shared]
        if abs(differing - second[self.shared]) < SAME:
            cut_off = self._cut_off(differing)
            if cut_off:
                return cut_off
            if self.step is not None:
                return (
                    f"the log-probabilities are rounded to multiples of {self.step:g} nats, "
                    "too coarse to show that they belong to the tokens sent"
                )
            return (
                "different tokens after the same text have the same log-probability: "
                "values are shifted by one"
            )
        if gaps[-1] > max(MOST_NOISE_OF_ONE, 10 * gaps[:-1].mean()):
            return "the log-probability of a token depends on the token behind it"
        if noise > MOST_NOISE:
            return (
                f"the log-probabilities of the same tokens differ by {noise:.2g} nats a "
                f"token from one request to another, and {MOST_NOISE:g} is the most that "
                "noise may be (let the server serve one model alone, and turn prefix "
                "caching off)"
            )
        return ""

    def _cut_off(self, equal: np.ndarray) -> str:
        """Return why answers are equal if they are cut off below, "" if they are not.

        Both probes have these answers in common, where a model's differ.
        """
        values = np.concatenate([self._latest[0], self._latest[1]])
        least = values.min()
        at_least = np.count_nonzero(values == least)
        # what both begin with is there twice
        if at_least <= len(PROBES) or values.max() == least or np.any(equal != least):
            return ""
        return (
            f"the log-probabilities are cut off at {least:.3g} nats: no value is lower, and "
            f"{at_least} tokens of two short prompts have it"
        )


def coarse_step(values: np.ndarray) -> float | None:
    """Return the largest of `STEPS` of which all values (nats) are multiples, None if of none.

    >>> coarse_step(np.array([-1.5, -4.0]))
    0.5
    >>> coarse_step(np.array([-1.5, -4.013]))
    """
    for step in STEPS:
        multiples = values.astype(np.float64) / step
        if np.allclose(multiples, np.rint(multiples), rtol=0, atol=1e-4):
            return step
    return None


def _noise(gaps: np.ndarray) -> float:
    """Return the mean of the gaps (nats) that are not 0; 0 if all are.

    Tokens that are equal to the last bit came from the cache, or nothing moved them.
    """
    if not gaps.any():
        return 0.0
    return float(gaps[gaps > 0].mean())


def _equal_beginning(first: np.ndarray, second: np.ndarray) -> int:
    """Return with how many equal tokens both begin."""
    size = min(len(first), len(second))
    differ = np.flatnonzero(first[:size] != second[:size])
    return int(differ[0]) if len(differ) else size
