"""`EndpointScorer`: a model behind a server, of which log-probabilities are all that is seen.

This is the black-box setting of Oren (section 2): any OpenAI-compatible server will do if it takes
token ids and gives the log-probabilities of a prompt. The first requests find out how to ask. Every
window of a sequence is one request; the answers count in any order. Requests are sent in the order
of the sequences: a server may drift, so callers that compare sequences give them in a random order.

===========================  ======================================================================
format                       servers
===========================  ======================================================================
prompt_logprobs              vLLM and what is built on it
echo and token ids           SGLang, Fireworks, vLLM: like the next, and the ids that were read
echo                         OpenAI's legacy completions and those made after them
===========================  ======================================================================
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from contamination.errors import InputError
from contamination.files import sha256_of
from contamination.randomness import random_stream
from contamination.scoring.contract import start_token
from contamination.scoring.endpoint_client import Client, Rejected
from contamination.scoring.endpoint_trust import (
    ADVICE,
    FIRST_ASKED,
    LAST_ASKED,
    PROBES,
    NoPromptLogprobs,
    Position,
    Spelling,
    Trust,
    checked,
)
from contamination.scoring.loading import ModelSource, load_tokenizer
from contamination.scoring.windows import Job, assemble, windows_of

LEAST_INPUTS = 14
EVERY = 256  # requests after which, on average, both probes are asked again
# Tokens of the context that are no inputs: the last of a window, which is sent behind its inputs,
# and one that is generated.
NOT_INPUTS = 2
# Of an answer at most; a token with its log-probability, id and text takes about 100 bytes.
BASE_BYTES, TOKEN_BYTES = 1 << 20, 1 << 10
# One token is generated: to some servers 0 means "no limit". The temperature is 1: some servers
# divide the logits of the prompt by it as well.
SAMPLING = {"max_tokens": 1, "temperature": 1.0}

Json = dict[str, Any]


class Asked(NamedTuple):
    """A prompt, token ids, and what it is of: the window that it scores, or a probe's number."""

    prompt: np.ndarray
    of: Job | int


def _read_prompt_logprobs(answer: Json, prompt: Sequence[int]) -> list[Position]:
    """Null for the first position, then {id: {"logprob": ...}} of the token, and perhaps others."""
    entries = answer["choices"][0].get("prompt_logprobs")
    if not entries or not any(entries):
        raise NoPromptLogprobs("the answer holds no prompt_logprobs")
    positions = []
    for entry, token in zip_longest(entries, prompt[: len(entries)]):
        if entry is None:
            positions.append(Position(None))
        else:
            found = str(token) if str(token) in entry else next(iter(entry), "none")
            positions.append(Position(entry[found]["logprob"], int(found)))
    return positions


def _read_echo(answer: Json, prompt: Sequence[int]) -> list[Position]:
    """Lists beside each other: tokens, token_logprobs and, from some servers, the ids."""
    choice = answer["choices"][0]
    found = choice.get("logprobs") or {}
    logprobs = found.get("token_logprobs") or []
    alone = len(logprobs) == 1 < len(prompt)  # of what was generated
    if alone or all(value is None for value in logprobs[: len(prompt)]):
        raise NoPromptLogprobs("the answer holds no token_logprobs of the prompt")
    tokens = found.get("tokens") or []
    if tokens and len(tokens) != len(logprobs):  # a value too few would move the others
        raise InputError(
            f"the server gives {len(tokens)} tokens and {len(logprobs)} log-probabilities; {ADVICE}"
        )
    ids = found.get("token_ids") or choice.get("prompt_token_ids") or []
    read = min(len(logprobs), len(prompt))  # what was generated may follow
    return [
        Position(value, _whole(token), None if text is None else str(text))
        for value, token, text in islice(zip_longest(logprobs, ids, tokens), read)
    ]


def _whole(token: Any) -> int | None:
    """Return the id of a token: true is 1 to Python, and 7.5 would become 7."""
    if type(token) not in (int, type(None)):
        raise TypeError
    return cast(int | None, token)


# Name, fields that ask, and the reader of an answer. The most telling first: ids prove more than
# texts. Strict servers refuse fields unknown to them.
FORMATS: dict[str, tuple[Json, Callable[[Json, Sequence[int]], list[Position]]]] = {
    "prompt_logprobs": ({"prompt_logprobs": 0}, _read_prompt_logprobs),
    "echo and token ids": ({"echo": True, "logprobs": 1, "return_token_ids": True}, _read_echo),
    "echo": ({"echo": True, "logprobs": 1}, _read_echo),
}


def read_answer(format: str, answer: Any, prompt: list[int], spelling: Spelling) -> np.ndarray:
    """Return the log-probabilities of prompt[1:], float32, nats.

    Raises NoPromptLogprobs if the answer holds none in this format, and as
    `contamination.scoring.endpoint_trust.checked`.
    """
    try:
        positions = FORMATS[format][1](answer, prompt)
        usage = answer.get("usage")
        counted = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    except InputError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        raise NoPromptLogprobs(f"the answer is not in the format {format!r}") from None
    return checked(positions, counted, prompt, spelling)


class EndpointScorer:
    """A model behind an endpoint, fulfilling `contamination.scoring.contract.Scorer`.

    Raises InputError as `contamination.scoring.endpoint_client.Client`, and for too small a context
    or no tokenizer.

    Parameters
    ----------
    url : of the API. model : its name there.
    tokenizer : directory or hub id of the model's own tokenizer.
    context : tokens that the server reads and generates at most (vLLM: --max-model-len). An answer
        may have 1 MiB, and 1 KiB more for each of them.
    limits : concurrency, max_requests, timeout and api_key_env of the client.
    """

    def __init__(
        self,
        url: str,
        model: str,
        tokenizer: Path | str,
        *,
        context: int,
        **limits: Any,
    ) -> None:
        self.client = Client(url, largest=BASE_BYTES + TOKEN_BYTES * context, **limits)
        self.url = self.client.url
        if context < (least := LEAST_INPUTS + NOT_INPUTS):
            raise InputError(f"context is {context}: give {least} tokens or more")
        self.model = model
        self.tokenizer = load_tokenizer(ModelSource(str(tokenizer)))
        self.start = start_token(self.tokenizer)
        self.context = context - NOT_INPUTS
        self.batch_tokens = self.client.concurrency * self.context
        # What the tokenizer does, whether it came from a directory or the hub.
        backend = getattr(self.tokenizer, "backend_tokenizer", None)
        rules = backend.to_str() if backend else str(sorted(self.tokenizer.get_vocab().items()))
        self.revision = sha256_of(self.url, model, rules, str(self.context), str(self.start))
        self._trust = Trust(self.url, self.tokenizer, self.start, self.context)
        self._probes = [*map(Asked, self._trust.prompts, range(len(PROBES)))]
        self._spelling = Spelling(self.tokenizer)
        self._format: str | None = None

    @property
    def noise(self) -> float | None:
        """Nats a token by which answers to one prompt differ; None before there were two."""
        return self._trust.noise

    def summary(self) -> str:
        """One line for people: requests made, why some failed, the model's own name, and noise."""
        noise = "" if self.noise is None else f", noise {self.noise:.2g} nats a token"
        return self.client.summary() + noise

    def token_logprobs(
        self, sequences: Sequence[np.ndarray], wanted: Sequence[np.ndarray] | None = None
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (index, float32 log-probabilities in nats) as answers arrive.

        Raises InputError if the budget does not suffice (before the first request), the server
        cannot be used, or it stays away.
        """
        masks = [np.ones(len(s), dtype=bool) for s in sequences] if wanted is None else wanted
        jobs = [Job(i, w) for i, mask in enumerate(masks) for w in windows_of(mask, self.context)]
        asked = []
        for job in jobs:
            ids, window = sequences[job.sequence], job.window
            prompt = np.append(window.inputs(ids, self.start), ids[window.stop - 1])
            asked.append(Asked(prompt, job))
        # Moments that no server foresees, and that are the same when the call is repeated.
        name = sha256_of(*(ids.tobytes() for ids in sequences))
        rng = random_stream(0, "moments of the probes", name)
        # Once at least where others are under way: what load does shows among them alone.
        places = rng.integers(0, len(jobs), -(-(len(jobs) - 1) // EVERY)) if jobs else np.empty(0)
        for place in sorted(places.tolist(), reverse=True):
            asked[place:place] = self._probes
        more = LAST_ASKED + FIRST_ASKED * (self._format is None) if jobs else 0
        self.client.require_budget(len(asked) + more)
        scores = [np.full(len(ids), np.nan, dtype=np.float32) for ids in sequences]
        return assemble(scores, [job.sequence for job in jobs], self._results(asked))

    def _results(self, asked: Sequence[Asked]) -> Iterator[tuple[int, slice, np.ndarray]]:
        """Yield (index of the sequence, the tokens scored, their values) as answers arrive."""
        if not asked:
            return
        if self._format is None:
            self._format = self._find_format()
            # To find it may have taken more than planned.
            self.client.require_budget(len(asked) + LAST_ASKED)
        try:
            with closing(self._ask(self._format, asked)) as answers:
                for (index, (_, first, stop)), values in answers:
                    yield index, slice(first, stop), values[len(values) - (stop - first) :]
            for probe in self._probes:
                list(self._ask(self._format, [probe]))
        except Rejected as error:
            raise InputError(f"{error}; if it is too long, give a smaller context") from None

    def _ask(
        self, format: str, asked: Sequence[Asked]
    ) -> Generator[tuple[Job, np.ndarray], None, None]:
        """Yield windows with the log-probabilities of all but the first token; hear the probes."""
        fields = {"model": self.model, **SAMPLING, **FORMATS[format][0]}
        bodies = (fields | {"prompt": prompt.tolist()} for prompt, _ in asked)
        with closing(self.client.answers(bodies)) as answers:
            for number, answer in answers:
                prompt, of = asked[number]
                try:
                    values = read_answer(format, answer, prompt.tolist(), self._spelling)
                except InputError as error:
                    # What the server gave stands in there, and may hold the key.
                    raise type(error)(f"{self.url}: {self.client.redact(str(error))}") from None
                self.client.require_same_model(answer.get("model"))
                if isinstance(of, int):
                    self._trust.hear(of, values)
                else:
                    self._trust.watch(values)
                    yield of, values

    def _find_format(self) -> str:
        """Try the ways to ask, the most telling first."""
        reason = ""
        for format in FORMATS:
            try:
                for probe in self._probes:  # as a whole, one at a time: most formats fail at once
                    list(self._ask(format, [probe]))
            except Rejected as error:
                reason = reason or str(error)
            except NoPromptLogprobs as error:
                reason = str(error)
            else:
                for probe in reversed(self._probes):
                    list(self._ask(format, [probe]))
                return format
        raise InputError(f"no way to the log-probabilities of a prompt ({reason}); {ADVICE}")
