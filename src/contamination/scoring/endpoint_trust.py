"""Whether answers can be those of one language model: at first, now and then, and at the end.

Two probes begin alike and end alike, with different words between. A model gives the ends different
log-probabilities and, but for noise, the beginnings the same ones, whichever probe came first: vLLM
with prefix caching may not (vllm-project/vllm, issue 42019). The probes are asked when a server is
first used, again in the other order, then among the other requests and after the last, so that a
server that turns bad is noticed. Where the end of a prompt can be asked for alone, the second probe
is, but for the first time: its beginning then comes from the cache. What is asked anyway is looked
at, too: it costs nothing.
"""

from itertools import takewhile
from uuid import uuid4

import numpy as np
from transformers import PreTrainedTokenizerBase

from contamination.errors import InputError
from contamination.scoring.endpoint_answers import ADVICE
from contamination.testsets.tokens import tokenize

# At most 13 tokens in any vocabulary; behind a beginning that fills a block of a server's cache.
PROBES = ("I saw a dog", "We fed a dog")
BEGINNING = (
    " is the number of the house at the end of the long road that goes from the old harbour to the "
    "white church on the hill, past the mill, the school and the market. "
)
FIRST_ASKED, LAST_ASKED = 2 * len(PROBES), len(PROBES)  # requests before and behind all others
EVERY = 256  # requests after which, on average, both probes are asked again
MOST_NOISE = 0.25  # nats a token, on average over the tokens of a probe that differ
CONSTANT = 8  # tokens of answers that are constants: a model's first eight tokens never are
MOVED = 256  # tokens, compared in a row with what they had elsewhere, that did not change at all


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
        self._constant = self._unmoved = 0
        self._known: dict[int, tuple[int, int]] = {}
        self.noise: float | None = None

    def places(self, requests: int, rng: np.random.Generator) -> list[int]:
        """Choose before which of so many requests both probes are asked, in falling order.

        One place at least where others are under way: what load does shows among them alone.
        """
        times = -(-(requests - 1) // EVERY) if requests else 0
        return sorted(rng.integers(0, requests, times).tolist(), reverse=True)

    def hear(self, probe: int, values: np.ndarray) -> None:
        """Take an answer to a probe: without its start token, or its last tokens alone."""
        if len(values) >= CONSTANT and np.ptp(values) == 0:
            raise self._constant_values(values[0])
        self._latest[probe] = values
        if len(self._latest) < len(PROBES):
            self._first[probe] = values
            return
        one, other = self._latest[0], self._latest[1]
        if np.ptp(np.concatenate([one, other])) == 0:
            raise self._constant_values(values[0])
        behind = self._behind
        if behind and np.array_equal(one[-behind:], other[-behind:]):
            raise InputError(
                f"{self._url}: tokens have the same log-probabilities after different texts, so "
                f"they do not depend on the context; {ADVICE}"
            )
        first = self._first.setdefault(probe, values)
        gaps = [np.abs(values - first[len(first) - len(values) :])]
        if self.shared and len(one) - len(other) == len(self.prompts[0]) - len(self.prompts[1]):
            gaps.append(np.abs(one[: self.shared] - other[: self.shared]))
        # What is equal to the last bit came from the cache, or was left alone by what moves others.
        found = max((float(gap[gap > 0].mean()) for gap in gaps if gap.any()), default=0.0)
        self.noise = max(self.noise or 0.0, found)
        if found > MOST_NOISE:
            raise InputError(
                f"{self._url}: the log-probabilities of the same tokens differ by {found:.2g} nats "
                f"a token from one request to another, and {MOST_NOISE:g} is the most that noise "
                "may be: the model changed, or its cache gets in the way; turn prefix caching off "
                "(vLLM: --no-enable-prefix-caching, SGLang: --disable-radix-cache), and let the "
                "server serve one model alone"
            )

    def watch(self, values: np.ndarray) -> None:
        """Take the answer to any other request, all its tokens."""
        if len(values) > 1:  # one value is always like itself
            self._constant = 0 if np.ptp(values) else self._constant + len(values)
        if self._constant >= CONSTANT:
            raise self._constant_values(values[0])

    def compare(self, context: np.ndarray, tokens: np.ndarray, values: np.ndarray) -> None:
        """Take tokens scored in a context: the same ones in another get other values."""
        order = np.lexsort((values, tokens))
        read, found = hash(context.tobytes()), hash(values[order].tobytes())
        read_before, before = self._known.setdefault(hash(tokens[order].tobytes()), (read, found))
        if read != read_before:
            self._unmoved = 0 if found != before else self._unmoved + len(tokens)
        if self._unmoved >= MOVED:
            raise InputError(
                f"{self._url}: the same {self._unmoved} tokens have the same log-probabilities in "
                f"another order, so they do not depend on the context; {ADVICE}"
            )

    def _constant_values(self, value: float) -> InputError:
        return InputError(
            f"{self._url}: every token has the log-probability {value:g}, which stands for none; "
            f"{ADVICE}"
        )


def _alike(one: np.ndarray, other: np.ndarray) -> int:
    """How many tokens are the same from the start on."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
