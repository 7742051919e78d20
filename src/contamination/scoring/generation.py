"""What a model must offer to be audited by what it writes, and two that do: one here, one served.

Where an endpoint gives no log-probabilities, as with chat, it still writes. A `Generator` continues
prompts; `Completions` asks each of them once, in a random order, and keeps the texts whole.
"""

import json
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import torch
from tqdm import tqdm
from transformers import Cache

from contamination.errors import InputError
from contamination.files import check_directory, read_json, sha256_of, write_json
from contamination.randomness import derived_seed, random_stream
from contamination.scoring.endpoint_client import Client, Rejected
from contamination.scoring.local import TransformersScorer
from contamination.scoring.store_format import check_same, read_table, write_table
from contamination.testsets.tokens import tokenize

CONTINUE = (
    "The following is the end of a part of a file. Continue the file where it ends, with what "
    "comes next in it. Write nothing but the text of the file.\n\n"
)
PROMPTS = 32  # of a part of the store
LIMITS = ("max_tokens", "max_completion_tokens")  # newer chat models refuse the first


@dataclass(frozen=True)
class Sampling:
    """How much is written after each prompt; InputError for what cannot be.

    `samples` texts of up to `tokens` tokens, at a `temperature` that divides the logits (0 takes
    the likeliest token), with noise from `seed`.
    """

    samples: int = 16
    tokens: int = 16
    temperature: float = 0.8
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse numbers that cannot be, before a model is loaded."""
        limits = {"samples": (1, 1_000), "tokens": (1, 4_096), "temperature": (0, 10)}
        for name, (least, most) in limits.items():
            if not least <= (value := getattr(self, name)) <= most:
                raise InputError(f"--{name} is {value}: give {least} to {most:,}")
        if self.temperature == 0 and self.samples > 1:
            raise InputError(
                f"--temperature 0 writes one text {self.samples} times: give --samples 1, or more "
                "than 0"
            )

    def seed_of(self, prompt: str, already: int = 0) -> int:
        """Return 31 bits of noise for a prompt, by its content, with so many texts already."""
        return derived_seed(self.seed, "written text", sha256_of(prompt), already) >> 1


class Generator(Protocol):
    """A language model, seen as a source of text.

    Attributes
    ----------
    name : for people. revision : names weights and precision, or address and name of a server.
    protocol : by which it is asked. instruction : that stands before every prompt.
    """

    name: str
    revision: str
    protocol: str
    instruction: str

    @property
    def served(self) -> str:
        """What a server called the model in its answers; "" before the first, and of one here."""

    def generate(self, prompts: Sequence[str], sampling: Sampling) -> list[list[str]]:
        """Continue each prompt `samples` times; a text that was refused is empty.

        Each prompt is read alone: what is written depends on it and the sampling, not on the order
        of the prompts.
        """


class LocalGenerator:
    """A causal model that runs here, fulfilling `Generator`.

    Of a prompt that leaves no room in the context the last tokens count. Raises InputError for more
    tokens than the context holds.
    """

    protocol, instruction, served = "local", "", ""

    def __init__(self, scorer: TransformersScorer, name: str) -> None:
        self.scorer, self.name, self.revision = scorer, name, scorer.revision

    def generate(self, prompts: Sequence[str], sampling: Sampling) -> list[list[str]]:
        """Continue the prompts one by one, each in one batch of all its texts."""
        return [self.texts(prompt, sampling, sampling.seed_of(prompt)) for prompt in prompts]

    @torch.inference_mode()
    def texts(self, prompt: str, sampling: Sampling, seed: int) -> list[str]:
        """Continue one prompt, with the noise of this seed."""
        scorer, tokens = self.scorer, sampling.tokens
        if tokens >= scorer.context:
            raise InputError(f"--tokens is {tokens}: {self.name} reads {scorer.context} at once")
        (ids,) = tokenize(scorer.tokenizer, [prompt])
        scorer.require_known_tokens([ids])
        inputs = np.append(scorer.start, ids)[tokens - scorer.context :]
        # One uniform number a token: which token it picks hardly moves with the engine's rounding.
        noise = random_stream(seed, "sampled tokens").random((tokens, sampling.samples))
        step = scorer.model(input_ids=scorer.send(inputs[None]), use_cache=True)
        logits = step.logits[:, -1].expand(sampling.samples, -1)
        # An architecture with a state of another kind reads all of it again for each token.
        if shared := isinstance(keys := getattr(step, "past_key_values", None), Cache):
            keys.batch_repeat_interleave(sampling.samples)
        rows = np.tile(inputs, (sampling.samples, 1))
        for number, uniform in enumerate(noise, start=1):
            rows = np.column_stack([rows, drawn(logits, uniform, sampling.temperature)])
            if number < tokens:
                read = {"past_key_values": keys, "use_cache": True} if shared else {}
                ids = rows[:, -1:] if shared else rows
                logits = scorer.model(input_ids=scorer.send(ids), **read).logits[:, -1]
        return [self._text(row) for row in rows[:, len(inputs) :]]

    def _text(self, ids: np.ndarray) -> str:
        ends = np.flatnonzero(ids == self.scorer.tokenizer.eos_token_id)  # None equals no id
        kept = ids[: ends[0]] if len(ends) else ids
        return str(self.scorer.tokenizer.decode(kept, skip_special_tokens=True))


def drawn(logits: torch.Tensor, uniform: np.ndarray, temperature: float) -> np.ndarray:
    """One token a row: the likeliest, or where the cumulated probability exceeds the uniform."""
    if temperature == 0:
        return np.asarray(logits.argmax(-1).cpu().numpy())
    shares = (logits.cpu().double() / temperature).softmax(-1).cumsum(-1).numpy()
    below = (shares < uniform[:, None] * shares[:, -1:]).sum(axis=1)
    return np.asarray(np.minimum(below, shares.shape[1] - 1))


class EndpointGenerator:
    """A model behind an endpoint that writes, fulfilling `Generator`.

    Raises InputError as `Client`, and while it writes if the server cannot be used or stays away,
    or its answers come from another model than the first ones did.

    Parameters
    ----------
    url : ends in /v1 for completions, in /v1/chat/completions for chat.
    model : its name there. instruction : before the prompt of a chat; others get the prompt alone.
    limits : concurrency, max_requests, timeout and api_key_env of the client.
    """

    def __init__(self, url: str, model: str, *, instruction: str = CONTINUE, **limits: Any) -> None:
        self.client = Client(url, **limits)
        self.name, self.revision = model, sha256_of(self.client.url, model)
        chat = self.client.url.endswith("/chat")
        self.protocol = "chat" if chat else "completions"
        self.instruction, self._limit = instruction * chat, LIMITS[0]

    @property
    def served(self) -> str:
        """What the server called the model."""
        return self.client.served

    def generate(self, prompts: Sequence[str], sampling: Sampling) -> list[list[str]]:
        """Ask for all texts of a prompt in one request, and again where fewer come back."""
        found: list[list[str]] = [[] for _ in prompts]
        while missing := [i for i, texts in enumerate(found) if len(texts) < sampling.samples]:
            self.client.require_budget(len(missing))
            bodies = (self._body(prompts[i], len(found[i]), sampling) for i in missing)
            try:
                with closing(self.client.answers(bodies)) as answers:
                    for number, answer in answers:
                        texts = found[missing[number]]
                        texts += self._texts(answer)[: sampling.samples - len(texts)]
            except Rejected as error:
                if self.protocol != "chat" or self._limit == LIMITS[-1]:
                    raise InputError(f"{error}; is a record longer than the context?") from None
                self._limit = LIMITS[-1]
        return found

    def _body(self, prompt: str, already: int, sampling: Sampling) -> dict[str, Any]:
        count = {"n": sampling.samples - already, "temperature": sampling.temperature}
        text: dict[str, Any] = {"prompt": prompt}
        if self.protocol == "chat":
            text = {"messages": [{"role": "user", "content": self.instruction + prompt}]}
        own = {"seed": sampling.seed_of(prompt, already), self._limit: sampling.tokens}
        return {"model": self.name, **text, **count, **own}

    def _texts(self, answer: Any) -> list[str]:
        """Return the texts of an answer, one at least."""
        try:
            texts = list(map(_text, answer["choices"]))
            if not texts or not all(isinstance(text, str) for text in texts):
                raise TypeError
        except (AttributeError, LookupError, TypeError):
            raise InputError(
                f"{self.client.url}: no text in the answer; give an address that writes: /v1 of "
                "completions, or /v1/chat/completions"
            ) from None
        self.client.require_same_model(answer.get("model"))
        return texts


def _text(choice: dict[str, Any]) -> Any:
    """What one choice of an OpenAI-compatible answer says; "" where it was refused or filtered."""
    said = choice.get("message") or {"content": choice.get("text")}
    refused = choice.get("finish_reason") == "content_filter" or said.get("refusal")
    return "" if refused or said["content"] is None else said["content"]


@dataclass(frozen=True)
class CompletionHeader:
    """What was asked: of which model, about which set, and how.

    `prompts` is the SHA-256 of all of them, in canonical order, and `count` their number. The
    fields before them are as in `contamination.scoring.store_format.Header`, protocol and
    instruction as in `Generator`, the last four as in `Sampling`.
    """

    model: str
    model_revision: str
    dataset: str
    dataset_revision: str
    template: str
    prompts: str
    count: int
    protocol: str
    instruction: str
    samples: int
    tokens: int
    temperature: float
    seed: int


class Completions:
    """The store of what a model wrote: a directory, bound to its header.

    The header (`completions.json`) says what was asked, and Parquet parts hold the texts of
    `PROMPTS` prompts each. The prompts are asked in a random order, which decides the part of each.
    What no part holds is missing; of a model here, an interrupted run that is started again writes
    the bytes of one that was not interrupted. Raises InputError if the directory holds a store of
    something else, and names the difference.
    """

    def __init__(self, directory: Path, header: CompletionHeader) -> None:
        self.directory, self.header, self._fields = directory, header, asdict(header)
        columns = {"prompt": pa.int32(), "texts": pa.list_(pa.string()), "served": pa.string()}
        key = sha256_of(json.dumps(self._fields, sort_keys=True))
        self._schema = pa.schema(columns.items(), metadata={"key": key})
        check_directory(directory)
        self._path = directory / "completions.json"
        if self._path.is_file():
            check_same(self._path, read_json(self._path), self._fields)

    @cached_property
    def parts(self) -> dict[Path, list[int]]:
        """Prompts of each part, in the random order in which they are asked."""
        rng = random_stream(self.header.seed, "order of requests", self.header.prompts)
        order = rng.permutation(self.header.count).tolist()
        cut = (order[at : at + PROMPTS] for at in range(0, len(order), PROMPTS))
        return {self.directory / f"part-{i:05d}.parquet": part for i, part in enumerate(cut)}

    def stored(self) -> tuple[dict[int, list[str]], str]:
        """Texts after each prompt, by its number, and what the server called the model.

        As far as they are stored and undamaged.
        """
        found: dict[int, list[str]] = {}
        named = ""
        for path, prompts in self.parts.items():
            with suppress(InputError):
                columns = read_table(path, self._schema).columns
                numbers, texts, served = (column.to_pylist() for column in columns)
                if numbers == prompts:
                    found |= zip(numbers, texts, strict=True)
                    named = named or served[0]
        return found, named

    def fill(self, generator: Generator, prompts: Sequence[str], sampling: Sampling) -> None:
        """Ask for what is missing, part by part; a damaged part is written anew.

        Raises InputError as the generator, and where the server called the model by another name
        when it wrote what is stored.
        """
        texts, before = self.stored()
        missing = [each for each in self.parts.items() if each[1][0] not in texts]
        for path, part in tqdm(missing, f"{self.header.model}: texts", leave=False, disable=None):
            written = generator.generate([prompts[i] for i in part], sampling)
            if before not in ("", generator.served):
                raise InputError(
                    f"{self.directory}: its texts came from {before!r}, and {generator.served!r} "
                    "answers now; ask for one model by its exact name, or remove the directory"
                )
            before = generator.served
            if not self._path.is_file():  # what is refused before the first text leaves no store
                write_json(self._path, self._fields)
            write_table(path, (part, written, [before] * len(part)), self._schema)
