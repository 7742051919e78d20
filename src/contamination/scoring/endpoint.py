"""`EndpointScorer`: a model behind a server, of which log-probabilities are all that is seen.

This is the black-box setting of Oren (section 2): any OpenAI-compatible server will do
if it takes token ids and gives the log-probabilities of a prompt, in one of two
formats: `prompt_logprobs` (vLLM and what is built on it) or `echo` (OpenAI's legacy
completions and those made after them, such as SGLang's). The first requests find out
which. Every window of a sequence is one request; the answers count in any order.
Requests are sent in the order of the sequences: a server may drift, so callers that
compare sequences give them in a random order.
"""

import math
import reprlib
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from transformers import PreTrainedTokenizerBase

from contamination.errors import InputError
from contamination.files import sha256_of
from contamination.randomness import random_stream
from contamination.scoring.contract import start_token
from contamination.scoring.endpoint_client import Client, require_name
from contamination.scoring.endpoint_refusals import Filtered, Rejected
from contamination.scoring.endpoint_trust import (
    ADVICE,
    FIRST_ASKED,
    LAST_ASKED,
    MOST_OF_A_NAME,
    Spelling,
    Trust,
    checked,
    read_generated,
    require_agreement,
)
from contamination.scoring.loading import ModelSource, load_tokenizer
from contamination.scoring.windows import Window, assemble, windows

LEAST_INPUTS = 14
EVERY = 256  # requests after which, on average, both probes are asked again
# Tokens of the context that are no inputs: the last of a window, which is sent behind
# its inputs, and one that is generated.
NOT_INPUTS = 2
# One token is generated: to some servers 0 means "no limit". The temperature is 1: some
# servers divide the logits of the prompt by it as well.
SAMPLING = {"max_tokens": 1, "temperature": 1.0}


# Fields that ask. The more telling first: ids prove more than texts. Strict servers
# refuse fields unknown to them.
FORMATS: dict[str, dict[str, Any]] = {
    "prompt_logprobs": {"prompt_logprobs": 0},
    "echo": {"echo": True, "logprobs": 1},
}


class OtherFormat(InputError):
    """The answer is not in this format: another one may bring log-probabilities."""


def read_answer(
    format: str,
    answer: Any,
    prompt: list[int],
    spelling: Spelling,
    shown: Callable[[Any], str] = reprlib.repr,
) -> np.ndarray:
    """Return the log-probabilities of prompt[1:], float32, nats, from the JSON of an answer.

    The format is a key of `FORMATS`; `shown` is how a message shows a value of the
    answer. Raises OtherFormat if the answer is not in this format, and InputError if the
    log-probabilities belong to other tokens, or may do so, or are none.
    """
    positions: list[dict[Any, Any]]
    try:
        choice = answer["choices"][0]
        if format == "echo":  # parallel lists; what was generated follows
            lists = choice["logprobs"]
            pairs = zip(lists["tokens"], lists["token_logprobs"], strict=True)
            positions = [{str(text): value} for text, value in pairs][: len(prompt)]
        else:  # null, then {id: {"logprob": ...}} of the token, and perhaps of others
            first, *others = choice["prompt_logprobs"]
            positions = [{prompt[0]: first}]
            for entries in others:
                position = {int(token): entries[token]["logprob"] for token in entries}
                positions.append(position)
        counted = (answer.get("usage") or {}).get("prompt_tokens")
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        raise OtherFormat(f"the answer is not in the format {format!r}") from None
    return checked(positions, counted, prompt, spelling, shown)


class EndpointRequest(NamedTuple):
    """A prompt of token ids that is sent, and the window that its answer scores.

    Without a window it is a probe, by its number, or a generated token that is sent
    back.
    """

    prompt: np.ndarray
    window: Window | None = None
    probe: int | None = None


class EndpointScorer:
    """A model behind an endpoint, fulfilling `contamination.scoring.contract.Scorer`.

    Raises InputError for limits, an address or a key that the client refuses, too small
    a context, or no tokenizer.

    Parameters
    ----------
    url
        Address of the API.
    model
        Name of the model at the endpoint.
    tokenizer
        Directory or hub id of the model's own tokenizer.
    context
        Largest number of tokens that the server reads and generates (vLLM:
        max_model_len).
    limits
        Concurrency, max_requests, timeout and api_key_env of the client.
    """

    def __init__(
        self, url: str, model: str, tokenizer: Path | str, *, context: int, **limits: Any
    ) -> None:
        self.client = Client(url, **limits)
        self.url = self.client.url
        least = LEAST_INPUTS + NOT_INPUTS
        if context < least:
            raise InputError(f"context is {context}: give {least} tokens or more")
        self.model = require_name(model)
        self.tokenizer = load_tokenizer(ModelSource(str(tokenizer)))
        self.start = start_token(self.tokenizer)
        self.context = context - NOT_INPUTS
        self.batch_tokens = self.client.concurrency * self.context
        rules = _rules_of(self.tokenizer)
        numbers = (str(self.context), str(self.start))
        self.revision = sha256_of(self.url, model, rules, *numbers)
        self._trust = Trust(self.tokenizer, self.start, self.context)
        prompts = enumerate(self._trust.prompts)
        self._probes = [EndpointRequest(prompt, probe=number) for number, prompt in prompts]
        self._spelling = Spelling(self.tokenizer)
        self._format: str | None = None

    @property
    def served(self) -> str:
        """Name that the server gave to the model in its answers; "" before the first."""
        return self.client.served

    @property
    def noise(self) -> float | None:
        """Nats a token by which answers to one prompt differ.

        It is None before there were two.
        """
        return self._trust.noise

    @property
    def step(self) -> float | None:
        """Nats to whose multiples the server rounds, if that is coarse."""
        return self._trust.step

    def token_logprobs(
        self, sequences: Sequence[np.ndarray], firsts: Sequence[int] | None = None
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (index, float32 log-probabilities in nats) as answers arrive.

        Raises InputError if the budget does not suffice (before the first request), the
        server cannot be used, or it stays away.
        """
        scored = list(windows(map(len, sequences), self.context, firsts))
        requests: list[EndpointRequest] = []
        for window in scored:
            ids = sequences[window.sequence]
            prompt = np.append(window.inputs(ids, self.start), ids[window.stop - 1])
            requests.append(EndpointRequest(prompt, window=window))
        for place in _moments(sequences, len(scored)):
            requests[place:place] = self._probes
        needed = len(requests)
        if requests:
            needed += LAST_ASKED
            needed += FIRST_ASKED if self._format is None else 0
        self.client.require_budget(needed)
        scores = [np.full(len(ids), np.nan, dtype=np.float32) for ids in sequences]
        owners = [window.sequence for window in scored]
        return assemble(scores, owners, self._results(requests))

    def _results(
        self,
        requests: Sequence[EndpointRequest],
    ) -> Iterator[tuple[int, slice, np.ndarray]]:
        """Yield (index of the sequence, the tokens scored, their values) one by one."""
        if not requests:
            return
        self._format = self._format or self._find_format()
        try:
            with closing(self._ask(self._format, requests)) as answers:
                for window, values in answers:
                    assert window is not None  # no generated token is among them
                    kept = values[window.first - window.stop :]
                    yield window.sequence, window.scored, kept
            self._ask_probes(self._format, self._probes)
        except OtherFormat as error:
            raise InputError(f"{error}, unlike others before; {ADVICE}") from None
        except Rejected as error:
            raise InputError(f"{error}; {_fix_of(error)}") from None

    def _ask(
        self, format: str, requests: Sequence[EndpointRequest]
    ) -> Generator[tuple[Window | None, np.ndarray], None, None]:
        """Yield the window of a request, and the values of all tokens but the first.

        Probes are heard, and not yielded.
        """
        fields = {"model": self.model, **SAMPLING, **FORMATS[format]}
        bodies = (fields | {"prompt": request.prompt.tolist()} for request in requests)
        with closing(self.client.answers(bodies)) as answers:
            for number, answer in answers:
                request = requests[number]
                prompt = request.prompt.tolist()
                try:
                    values = read_answer(format, answer, prompt, self._spelling, self.client.shown)
                    if request.probe is not None:
                        self._trust.hear(request.probe, values)
                except InputError as error:
                    raise type(error)(f"{self.url}: {error}") from None
                self.client.require_same_model(answer.get("model"))
                if request.probe is None:
                    yield request.window, values

    def _ask_probes(self, format: str, probes: Sequence[EndpointRequest]) -> None:
        """Ask them one after the other: what one does to a cache, the next one shows."""
        for probe in probes:
            list(self._ask(format, [probe]))

    def _compare_generated(self, format: str) -> None:
        """Have tokens generated, and send them back.

        Raises InputError unless the values agree.
        """
        fields = {"model": self.model, **SAMPLING, "logprobs": 1}
        pairs: list[tuple[float, float]] = []
        for prompt in self._trust.begun:
            ((_, answer),) = self.client.answers([fields | {"prompt": prompt.tolist()}])
            self.client.require_same_model(answer.get("model"))
            generated = read_generated(answer)
            if generated is None:
                continue
            name, value = generated
            tokens = self._spelling.ids_of(name)[:MOST_OF_A_NAME]
            requests = [EndpointRequest(np.append(prompt, token)) for token in tokens]
            sent = [float(values[-1]) for _, values in self._ask(format, requests)]
            if sent:  # which of the tokens of this name it was, the values tell
                closest = min(sent, key=lambda sent_value: abs(value - sent_value))
                pairs.append((value, closest))
        try:
            require_agreement(pairs)
        except InputError as error:
            raise InputError(f"{self.url}: {error}") from None

    def _find_format(self) -> str:
        """Try the formats, the more telling first."""
        reason = ""
        for format in FORMATS:
            try:
                self._ask_probes(format, [*self._probes, *reversed(self._probes)])
                self._compare_generated(format)
            except (Rejected, OtherFormat) as error:
                reason = str(error)
                if isinstance(error, Rejected) and error.about_length:
                    raise InputError(f"{error}; {_fix_of(error)}") from None
            else:
                return format
        raise InputError(
            f"no way to the log-probabilities of a prompt ({reason}); {ADVICE}",
        )


def _fix_of(refusal: Rejected) -> str:
    """Return how to mend what a server refuses in the format that it knows."""
    if refusal.about_length:
        return "give a smaller context"
    if isinstance(refusal, Filtered):
        return "turn the filter of the server off"
    return "look into the log of the server, and run it again: what is stored is kept"


def _rules_of(tokenizer: PreTrainedTokenizerBase) -> str:
    """Return what a tokenizer does, whether it came from a directory or the hub."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend:
        return str(backend.to_str())
    return str(sorted(tokenizer.get_vocab().items()))


def _moments(sequences: Sequence[np.ndarray], requests: int) -> list[int]:
    """Return before which requests the probes are asked again, the last place first.

    No server foresees them, and they are the same when the call is repeated. There is
    at least one where several requests are under way: load shows among them alone.
    """
    if requests == 0:
        return []
    name = sha256_of(*(ids.tobytes() for ids in sequences))
    rng = random_stream(0, "moments of the probes", name)
    count = math.ceil((requests - 1) / EVERY)
    places = rng.integers(0, requests, count)
    return sorted(places.tolist(), reverse=True)
