"""Models that write: `Generator`, and two that fulfil it, one here and one behind a server.

Where an endpoint gives no log-probabilities, as with chat, it still writes. A
`Generator` continues prompts; `contamination.scoring.completions` asks each of them
once, and keeps the texts whole.

Fields of a request that not every server knows are left out one by one where it refuses
them, and the store says which.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from transformers import Cache

from contamination.errors import InputError
from contamination.files import sha256_of
from contamination.randomness import derived_seed, random_stream
from contamination.scoring.endpoint_client import LARGEST, Client, require_name
from contamination.scoring.endpoint_refusals import Rejected
from contamination.scoring.local import TransformersScorer
from contamination.testsets.tokens import tokenize

CONTINUE = (
    "The following is the end of a part of a file. Continue the file where it ends, "
    "with what comes next in it. Write nothing but the text of the file.\n\n"
)
LIMITS = ("max_tokens", "max_completion_tokens")  # newer chat models refuse the first
# Fields that a server may refuse, in the order in which they are left out where it
# names none. The limit comes first, whose place another takes; the temperature last,
# which changes what is written.
OPTIONAL = (LIMITS[0], "seed", "n", "temperature")
# Stands for the answer to a prompt that was filtered.
NO_CHOICE: dict[str, Any] = {"choices": []}
LONGEST_TOKEN = 256  # characters: no vocabulary has longer ones
BESIDE_TEXT = 1 << 20  # bytes of an answer that are no text, such as what a model thinks
BYTES_PER_CHARACTER = 12  # in JSON, at most: two escapes


@dataclass(frozen=True)
class Sampling:
    """The number and length of texts after each prompt; raises InputError for impossible ones.

    `samples` texts of up to `tokens` tokens, at a `temperature` that divides the logits
    (0 takes the likeliest token), with noise from `seed`.
    """

    samples: int = 16
    tokens: int = 16
    temperature: float = 0.8
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse numbers that cannot be, before a model is loaded."""
        limits = {"samples": (1, 1_000), "tokens": (1, 4_096), "temperature": (0, 10)}
        for name, (least, most) in limits.items():
            value = getattr(self, name)
            if not least <= value <= most:
                raise InputError(
                    f"{name} is {value}: give {least} to {most:,}",
                    parameter=name,
                )
        if self.temperature == 0 and self.samples > 1:
            raise InputError(
                f"temperature=0 writes one text {self.samples} times: give samples=1, "
                "or more than 0",
                parameter="temperature",
            )

    def seed_of(self, prompt: str, already: int = 0) -> int:
        """Return 31 bits of noise for a prompt that has `already` texts."""
        return derived_seed(self.seed, "written text", sha256_of(prompt), already) >> 1


ONE_LETTER = Sampling(samples=1, tokens=4, temperature=0)  # the answer to a question


class Generator(Protocol):
    """A language model, seen as a source of text.

    Attributes
    ----------
    name
        Name for people.
    revision
        Names weights and precision, or the address of a server and the name of its
        model.
    protocol
        Name of the protocol by which the model receives prompts.
    instruction
        Text that stands before every prompt.
    left_out
        Optional fields of requests (OPTIONAL) that a server refuses.
    """

    name: str
    revision: str
    protocol: str
    instruction: str
    left_out: Sequence[str]

    @property
    def served(self) -> str:
        """Name that a server gave to the model; "" before the first answer and here."""

    def generate(self, prompts: Sequence[str], sampling: Sampling) -> list[list[str]]:
        """Continue each prompt `samples` times; a text that was refused is empty.

        Each prompt is read alone: what is written depends on it and the sampling, not
        on the order of the prompts.
        """


class LocalGenerator:
    """A causal model that runs here, fulfilling `Generator`.

    Of a prompt that leaves no room in the context the last tokens count. Raises
    InputError for more tokens than the context holds.
    """

    protocol = "local"
    instruction = ""
    served = ""
    left_out: Sequence[str] = ()

    def __init__(self, scorer: TransformersScorer, name: str) -> None:
        self.scorer = scorer
        self.name = name
        self.revision = scorer.revision

    def generate(self, prompts: Sequence[str], sampling: Sampling) -> list[list[str]]:
        """Continue the prompts one by one, each in one batch of all its texts."""
        texts: list[list[str]] = []
        for prompt in prompts:
            texts.append(self.texts(prompt, sampling, sampling.seed_of(prompt)))
        return texts

    @torch.inference_mode()
    def texts(self, prompt: str, sampling: Sampling, seed: int) -> list[str]:
        """Return continuations of one prompt, with noise from the seed.

        Of a prompt that leaves no room in the context only the last tokens are read.
        Raises InputError for more tokens than the context holds.
        """
        scorer = self.scorer
        tokens = sampling.tokens
        if tokens >= scorer.context:
            raise InputError(
                f"tokens is {tokens}: {self.name} reads {scorer.context} at once; give fewer",
                parameter="tokens",
            )
        (ids,) = tokenize(scorer.tokenizer, [prompt])
        scorer.require_known_tokens([ids])
        inputs = np.append(scorer.start, ids)[tokens - scorer.context :]
        # One uniform number a token: which token it picks hardly moves with the
        # engine's rounding.
        noise = random_stream(seed, "sampled tokens").random((tokens, sampling.samples))
        step = scorer.model(input_ids=scorer.send(inputs[None]), use_cache=True)
        logits = step.logits[:, -1].expand(sampling.samples, -1)
        keys = getattr(step, "past_key_values", None)
        if isinstance(keys, Cache):
            keys.batch_repeat_interleave(sampling.samples)
        rows = np.tile(inputs, (sampling.samples, 1))
        for number, uniform in enumerate(noise, start=1):
            rows = np.column_stack([rows, drawn(logits, uniform, sampling.temperature)])
            if number < tokens:
                logits = self._next_logits(rows, keys)
        return [self._text(row) for row in rows[:, len(inputs) :]]

    def _next_logits(self, rows: np.ndarray, keys: Any) -> torch.Tensor:
        """Return the logits behind the last token of each row."""
        scorer = self.scorer
        if isinstance(keys, Cache):
            last = scorer.send(rows[:, -1:])
            step = scorer.model(input_ids=last, past_key_values=keys, use_cache=True)
        else:  # an architecture with a state of another kind reads all of it again
            step = scorer.model(input_ids=scorer.send(rows))
        logits: torch.Tensor = step.logits[:, -1]
        return logits

    def _text(self, ids: np.ndarray) -> str:
        """Return the text of token ids, up to the end of the sequence."""
        # None equals no id
        ends = np.flatnonzero(ids == self.scorer.tokenizer.eos_token_id)
        kept = ids[: ends[0]] if len(ends) else ids
        return str(self.scorer.tokenizer.decode(kept, skip_special_tokens=True))


def drawn(logits: torch.Tensor, uniform: np.ndarray, temperature: float) -> np.ndarray:
    """Return one token a row: the likeliest, or the one that `uniform` picks.

    That is where the cumulated probability exceeds it. Logits are [rows, vocabulary],
    and divided by the temperature, of which 0 takes the likeliest token; `uniform` has
    a number from 0 to 1 for each row.
    """
    if temperature == 0:
        return np.asarray(logits.argmax(-1).cpu().numpy())
    shares = (logits.cpu().double() / temperature).softmax(-1).cumsum(-1).numpy()
    below = (shares < uniform[:, None] * shares[:, -1:]).sum(axis=1)
    return np.asarray(np.minimum(below, shares.shape[1] - 1))


class EndpointGenerator:
    """A model behind an endpoint that writes, fulfilling `Generator`.

    Raises InputError for limits, an address or a key that the client refuses; and while
    it writes, if the server cannot be used or stays away, or its answers come from
    another model than the first ones did.

    Parameters
    ----------
    url
        Ends in /v1 for completions, in /v1/chat/completions for chat.
    model
        Name of the model at the endpoint.
    instruction
        Text before the prompt of a chat; a completion gets the prompt alone.
    limits
        Concurrency, max_requests, timeout and api_key_env of the client.
    """

    def __init__(
        self,
        url: str,
        model: str,
        *,
        instruction: str = CONTINUE,
        **limits: Any,
    ) -> None:
        self.client = Client(url, **limits)
        self.name = require_name(model)
        self.revision = sha256_of(self.client.url, model)
        chat = self.client.url.endswith("/chat")
        self.protocol = "chat" if chat else "completions"
        self.instruction = instruction if chat else ""
        self.left_out: Sequence[str] = ()
        self._refusal: Rejected | None = None  # the first, until an answer comes

    @property
    def served(self) -> str:
        """Name that the server gave to the model."""
        return self.client.served

    def generate(self, prompts: Sequence[str], sampling: Sampling) -> list[list[str]]:
        """Ask for all texts of a prompt in one request, and again where fewer come back."""
        texts: list[list[str]] = [[] for _ in prompts]
        while True:
            missing = [i for i, kept in enumerate(texts) if len(kept) < sampling.samples]
            if not missing:
                return texts
            self.client.require_budget(len(missing))
            bodies = [self._body(prompts[i], len(texts[i]), sampling) for i in missing]
            try:
                for number, more in self._answers(bodies, sampling):
                    kept = texts[missing[number]]
                    kept += more[: sampling.samples - len(kept)]
            except Rejected as error:
                self._leave_out(error, bodies[0])

    def _answers(
        self, bodies: Sequence[dict[str, Any]], sampling: Sampling
    ) -> Iterator[tuple[int, list[str]]]:
        """Yield the number of a request and the texts of its answer."""
        longest = sampling.tokens * LONGEST_TOKEN
        text_bytes = sampling.samples * longest * BYTES_PER_CHARACTER
        largest = min(LARGEST, BESIDE_TEXT + text_bytes)
        answers = self.client.answers(bodies, largest=largest, if_filtered=NO_CHOICE)
        with closing(answers):
            for number, answer in answers:
                texts = self._texts(answer) or [""] * bodies[number].get("n", 1)
                self._refusal = None
                yield number, [text[:longest] for text in texts]

    def _body(self, prompt: str, already: int, sampling: Sampling) -> dict[str, Any]:
        """Return a request for the texts that a prompt lacks."""
        body: dict[str, Any] = {"model": self.name}
        if self.protocol == "chat":
            body["messages"] = [{"role": "user", "content": self.instruction + prompt}]
        else:
            body["prompt"] = prompt
        limit = LIMITS[1] if LIMITS[0] in self.left_out else LIMITS[0]
        body[limit] = sampling.tokens
        optional = {
            "seed": sampling.seed_of(prompt, already),
            "n": sampling.samples - already,
            "temperature": sampling.temperature,
        }
        for name, value in optional.items():
            if name not in self.left_out:
                body[name] = value
        return body

    def _leave_out(self, error: Rejected, body: dict[str, Any]) -> None:
        """Leave out the field that the server names, else the next one.

        Raises InputError where none is left. It tells the first refusal: leaving fields
        out has not helped.
        """
        if error.about_length:
            raise InputError(
                f"{error}; if a record is longer than the server reads, leave it out "
                "or shorten it by a template",
                parameter="template",
            ) from None
        self._refusal = self._refusal or error
        plain = {"n": 1, "temperature": 1}  # what a server does by itself
        sent = [name for name in OPTIONAL if name in body]
        optional = [name for name in sent if body[name] != plain.get(name)]
        if self.protocol != "chat" and LIMITS[0] in optional:
            optional.remove(LIMITS[0])  # completions know no other name of it
        named = [name for name in optional if re.search(rf"\b{name}\b", error.words)]
        chosen = next(iter(named or optional), None)
        if chosen is None:
            raise InputError(f"{self._refusal}; correct what the server names") from None
        self.left_out = (*self.left_out, chosen)

    def _texts(self, answer: Any) -> list[str]:
        """Return the texts of an answer, none where it has no choice."""
        try:
            texts = [_text(choice) for choice in answer["choices"] or ()]
            if not all(isinstance(text, str) for text in texts):
                raise TypeError
        except (AttributeError, LookupError, TypeError):
            raise InputError(
                f"{self.client.url}: no text in the answer; give an address that "
                "writes: /v1 of completions, or /v1/chat/completions"
            ) from None
        self.client.require_same_model(answer.get("model"))
        return [_mended(text) for text in texts]


def _text(choice: dict[str, Any]) -> Any:
    """Return what one choice of an answer says; "" where it was refused or filtered."""
    message = choice.get("message") or {"content": choice.get("text")}
    refused = choice.get("finish_reason") == "content_filter" or message.get("refusal")
    if refused or message["content"] is None:
        return ""
    return message["content"]


def _mended(text: str) -> str:
    """Return a text without half characters, which JSON can hold and no file can."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
