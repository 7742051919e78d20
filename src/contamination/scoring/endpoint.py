"""`EndpointScorer`: a model behind a server, of which log-probabilities are all that is seen.

This is the black-box setting of Oren (section 2): any OpenAI-compatible server will do if it gives
the log-probabilities of a prompt, and so will SGLang's own `/generate`. The first requests find out
how to ask. Every window of a sequence is one request; the answers count in any order. Requests are
sent in the order of the sequences: a server may drift, so callers that compare sequences give them
in a random order.

===========================  ======================================================================
format                       servers
===========================  ======================================================================
prompt_logprobs              vLLM and what is built on it
echo and token ids           SGLang, Fireworks, vLLM: like the next, and the ids that were read
echo                         OpenAI's legacy completions and those made after them; Together, which
                             has the prompt's part in another place
generate                     SGLang's own protocol: the end of a prompt alone can be asked for
===========================  ======================================================================
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, get_args

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
    Misread,
    NoPromptLogprobs,
    Position,
    Reading,
    Spelling,
    Trust,
    checked,
)
from contamination.scoring.loading import ModelSource, load_tokenizer
from contamination.scoring.windows import Job, assemble, windows_of

LEAST_INPUTS = 14
# Tokens of the context that are no inputs: the last of a window, which is sent behind its inputs,
# and one that is generated. SGLang's own protocol needs no generated one, but seven are kept free.
NOT_INPUTS, NOT_INPUTS_OF_GENERATE = 2, 8
# Of an answer at most; a token with its log-probability, id and text takes about 100 bytes.
BASE_BYTES, TOKEN_BYTES = 1 << 20, 1 << 10
# One token is generated: to some servers 0 means "no limit". The temperature is 1: some servers
# divide the logits of the prompt by it as well.
SAMPLING = {"max_tokens": 1, "temperature": 1.0}

PromptAs = Literal["token ids", "text", "text without the start token"]
Read = Callable[[dict[str, Any], dict[str, Any], Sequence[int]], tuple[list[Position], bool]]


def _read_prompt_logprobs(
    answer: dict[str, Any], choice: dict[str, Any], prompt: Sequence[int]
) -> tuple[list[Position], bool]:
    """Null for the first position, then {id: {"logprob": ...}} of the token, and perhaps others."""
    entries = choice.get("prompt_logprobs")
    if not entries or not any(entries):
        raise NoPromptLogprobs("the answer holds no prompt_logprobs")
    positions = []
    for entry, token in zip_longest(entries, prompt[: len(entries)]):
        if entry is None:
            positions.append(Position(None))
        else:
            found = str(token) if str(token) in entry else next(iter(entry), "none")
            positions.append(Position(entry[found]["logprob"], int(found)))
    return positions, False


def _read_echo(
    answer: dict[str, Any], choice: dict[str, Any], prompt: Sequence[int]
) -> tuple[list[Position], bool]:
    """Lists beside each other: tokens, token_logprobs and, from some servers, the ids."""
    parts = [part for part in answer.get("prompt") or [] if "logprobs" in part]
    found = [*parts, choice][0].get("logprobs") or {}
    logprobs = found.get("token_logprobs") or []
    alone = len(logprobs) == 1 < len(prompt)  # of what was generated
    if alone or all(value is None for value in logprobs[: len(prompt)]):
        raise NoPromptLogprobs("the answer holds no token_logprobs of the prompt")
    tokens = found.get("tokens") or []
    if tokens and len(tokens) != len(logprobs):  # a value too few would move the others
        raise Misread(
            f"the server gives {len(tokens)} tokens and {len(logprobs)} log-probabilities; {ADVICE}"
        )
    ids = found.get("token_ids") or choice.get("prompt_token_ids") or []
    columns = zip_longest(logprobs, ids, tokens)
    positions = [
        Position(value, _id(token), None if text is None else str(text))
        for value, token, text in islice(columns, len(logprobs))
    ]
    return positions, not parts


def _id(token: Any) -> int | None:
    if token is not None and type(token) is not int:  # true is 1 to Python, and 7.5 would become 7
        raise TypeError
    return token


# Name, fields that ask, and the reader of an answer: its first choice is the second argument. The
# most telling first: ids prove more than texts. Strict servers refuse fields unknown to them.
FORMATS: dict[str, tuple[dict[str, Any], Read]] = {
    "prompt_logprobs": ({"prompt_logprobs": 0}, _read_prompt_logprobs),
    "echo and token ids": ({"echo": True, "logprobs": 1, "return_token_ids": True}, _read_echo),
    "echo": ({"echo": True, "logprobs": 1}, _read_echo),
}


@dataclass(frozen=True)
class Completions:
    """One way to ask for completions: a wire format, and the form of the prompt.

    The whole prompt is scored, however little of it is needed.
    """

    spelling: Spelling
    model: str
    start: int
    prompt_as: PromptAs = "token ids"
    format: str = "echo"
    tails: ClassVar[bool] = False

    def body(self, prompt: list[int], skip: int = 0) -> dict[str, Any]:
        """Return the JSON of the request; the first `skip` values are not needed."""
        sent: list[int] | str = prompt
        if self.prompt_as != "token ids":
            server_starts = self.prompt_as != "text" and prompt[0] == self.start
            sent = self.spelling.decode(prompt[server_starts:])
        return {"model": self.model, "prompt": sent, **SAMPLING, **FORMATS[self.format][0]}

    def reading(self, answer: dict[str, Any], prompt: Sequence[int], skip: int) -> Reading:
        """Take an answer apart; an error other than an InputError means another format."""
        found, generated = FORMATS[self.format][1](answer, answer["choices"][0], prompt)
        usage = answer.get("usage")
        counted = usage.get("prompt_tokens") if isinstance(usage, dict) else None
        return Reading(found, generated, counted)

    def served(self, answer: dict[str, Any]) -> Any:
        """Return the name by which the server calls the model."""
        return answer.get("model")


@dataclass(frozen=True)
class Generate:
    """SGLang's own `/generate`: only the log-probabilities of a prompt's end are asked for.

    The answer is then as short as that end, and the server may take what is before it from its
    cache (RadixAttention). `logprob_start_len` is the position of the last token before the end:
    SGLang gives it no value, keeps nothing behind it from the cache, and so computes it again. A
    `rid` names the prompt, which the answer repeats: of the tokens before the end it gives the
    number alone.
    """

    spelling: Spelling
    prompt_as: ClassVar[PromptAs] = "token ids"
    format: ClassVar[str] = "generate"
    tails: ClassVar[bool] = True

    def body(self, prompt: list[int], skip: int = 0) -> dict[str, Any]:
        """Return the JSON of the request; the first `skip` values are not asked for."""
        return {
            "rid": self._name(prompt, skip),
            "input_ids": prompt,
            "sampling_params": {"max_new_tokens": 0, "temperature": 1.0},
            "return_logprob": True,
            "logprob_start_len": skip,
        }

    def reading(self, answer: dict[str, Any], prompt: Sequence[int], skip: int) -> Reading:
        """Take an answer apart: [log-probability, id, text] for each token."""
        found = answer["meta_info"]
        entries = found.get("input_token_logprobs")
        if not entries:
            raise NoPromptLogprobs("the answer holds no input_token_logprobs")
        name, _, _ = str(found["id"]).partition("-")  # behind it stands the number of the try
        if name != self._name(prompt, skip):
            raise Misread(f"the server answers another request; {ADVICE}")
        if any(type(entry[1]) is not int for entry in entries):
            raise TypeError
        positions, last = [], self.spelling.size - 1
        for entry, token in zip_longest(entries, prompt[skip : skip + len(entries)]):
            clipped = entry[1] == 0 and token is not None and token >= last
            # SGLang calls the last id of the vocabulary 0.
            positions.append(Position(entry[0], token if clipped else entry[1]))
        return Reading(positions, False, found["prompt_tokens"])

    def served(self, answer: dict[str, Any]) -> Any:
        """Return the version of the weights, which can be replaced while the server runs."""
        return answer["meta_info"].get("weight_version")

    def _name(self, prompt: Sequence[int], skip: int) -> str:
        return sha256_of(np.asarray(prompt, dtype=np.int64).tobytes(), str(skip))[:32]


Route = Completions | Generate


def read(route: Route, answer: Any, prompt: list[int], skip: int = 0) -> np.ndarray:
    """Return the log-probabilities of prompt[1:], or of prompt[1 + skip:], float32, nats.

    Raises NoPromptLogprobs if the answer holds none, and what
    `contamination.scoring.endpoint_trust.checked` raises.
    """
    try:
        found = route.reading(answer, prompt, skip)
    except InputError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        raise NoPromptLogprobs(f"the answer is not in the format {route.format!r}") from None
    by_text = route.prompt_as != "token ids"
    return checked(found, prompt, skip if route.tails else 0, route.spelling, surely=by_text)


class Asked(NamedTuple):
    """A prompt, token ids, and how many of its first values are not needed."""

    prompt: np.ndarray
    skip: int


class EndpointScorer:
    """A model behind an endpoint, fulfilling `contamination.scoring.contract.Scorer`.

    Raises InputError for an argument that cannot be, an address that would give the key away, or
    no tokenizer.

    Parameters
    ----------
    url : of the API, such as http://127.0.0.1:8000/v1, or of SGLang's own protocol, which ends in
        /generate. model : its name there; to /generate, which serves one model, a label.
    tokenizer : directory or hub id of the model's own tokenizer.
    context : tokens that the server reads and generates at most (vLLM: --max-model-len).
    concurrency : requests under way at the same time, 512 at most.
    max_requests : budget of requests, retries included; None is no limit.
    timeout : seconds after which an answer has to be complete, else it is asked for again; after
        five times as long with all its tries and waits, a request ends the run. An answer may have
        1 MiB, and 1 KiB more for each token of the context.
    api_key_env : environment variable with the key; unset or empty where the server needs none.
    """

    def __init__(
        self,
        url: str,
        model: str,
        tokenizer: Path | str,
        *,
        context: int,
        concurrency: int = 8,
        max_requests: int | None = None,
        timeout: float = 120.0,
        api_key_env: str = "OPENAI_API_KEY",
    ) -> None:
        largest = BASE_BYTES + TOKEN_BYTES * context
        self.client = Client(url, api_key_env, concurrency, max_requests, timeout, largest)
        self.url = self.client.url
        not_inputs = NOT_INPUTS_OF_GENERATE if self.client.speaks_generate else NOT_INPUTS
        if context < (least := LEAST_INPUTS + not_inputs):
            raise InputError(f"context is {context}: give {least} tokens or more")
        self.model = model
        self.tokenizer = load_tokenizer(ModelSource(str(tokenizer)))
        self.start = start_token(self.tokenizer)
        self.context = context - not_inputs
        self.batch_tokens = concurrency * self.context
        # What the tokenizer does, whether it came from a directory or the hub.
        backend = getattr(self.tokenizer, "backend_tokenizer", None)
        rules = backend.to_str() if backend else str(sorted(self.tokenizer.get_vocab().items()))
        self.revision = sha256_of(self.url, model, rules, str(self.context), str(self.start))
        self._trust = Trust(self.url, self.tokenizer, self.start, self.context)
        self._route: Route | None = None
        self._served: Any = None

    @property
    def noise(self) -> float | None:
        """Nats a token by which answers to one prompt differ; None before there were two."""
        return self._trust.noise

    def summary(self) -> str:
        """One line for people: requests made, why some failed, the model's own name, and noise."""
        served = f", answered by {self._name(self._served)}" if self._served else ""
        noise = "" if self.noise is None else f", noise {self.noise:.2g} nats a token"
        return self.client.summary() + served + noise

    def _name(self, served: Any) -> str:
        return repr(self.client.shorten(str(served)))

    def token_logprobs(
        self, sequences: Sequence[np.ndarray], wanted: Sequence[np.ndarray] | None = None
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (index, float32 log-probabilities in nats) as answers arrive.

        Raises InputError if the budget does not suffice (before the first request), the server
        cannot be used, or it stays away.
        """
        masks = [np.ones(len(s), dtype=bool) for s in sequences] if wanted is None else wanted
        jobs = [Job(i, w) for i, mask in enumerate(masks) for w in windows_of(mask, self.context)]
        # Moments that no server foresees, and that are the same when the call is repeated.
        asked = sha256_of(*(ids.tobytes() for ids in sequences))
        rng = random_stream(0, "moments of the probes", asked)
        queue: list[Job | int] = list(jobs)
        for place in self._trust.places(len(jobs), rng):
            queue[place:place] = range(len(PROBES))
        more = LAST_ASKED + FIRST_ASKED * (self._route is None) if jobs else 0
        self.client.require_budget(len(queue) + more)
        return self._compared(sequences, masks, jobs, queue)

    def _compared(
        self,
        sequences: Sequence[np.ndarray],
        masks: Sequence[np.ndarray],
        jobs: Sequence[Job],
        queue: Sequence[Job | int],
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Yield whole sequences after a look at each beside those that came before."""
        begins = {i: window.start for i, window in reversed(jobs)}
        scores = [np.full(len(ids), np.nan, dtype=np.float32) for ids in sequences]
        with closing(self._results(sequences, queue)) as parts:  # a refusal stops all requests
            for index, values in assemble(scores, [job.sequence for job in jobs], parts):
                ids, wanted = sequences[index], masks[index]
                if index in begins:
                    self._trust.compare(ids[begins[index] :], ids[wanted], values[wanted])
                yield index, values

    def _results(
        self, sequences: Sequence[np.ndarray], queue: Sequence[Job | int]
    ) -> Generator[tuple[int, slice, np.ndarray], None, None]:
        """Yield (index of the sequence, the tokens scored, their values) as answers arrive.

        The queue holds jobs, and the numbers of probes.
        """
        if not queue:
            return
        if self._route is None:
            self._route = self._find_route()
            # To find it may have taken more than planned.
            self.client.require_budget(len(queue) + LAST_ASKED)
        asked = [
            self._probe(self._route, item)
            if isinstance(item, int)
            else Asked(
                np.append(
                    item.window.inputs(sequences[item.sequence], self.start),
                    sequences[item.sequence][item.window.stop - 1],
                ),
                item.window.first - item.window.start,
            )
            for item in queue
        ]
        try:
            with closing(self._ask(self._route, asked)) as answers:
                for number, values in answers:
                    item = queue[number]
                    if isinstance(item, int):
                        self._trust.hear(item, values)
                        continue
                    self._trust.watch(values)
                    index, (_, first, stop) = item
                    yield index, slice(first, stop), values[len(values) - (stop - first) :]
            self._ask_probes(self._route, range(len(PROBES)))
        except Rejected as error:
            raise InputError(f"{error}; if it is too long, give a smaller context") from None

    def _probe(self, route: Route, probe: int) -> Asked:
        """Ask for the second probe's end alone where that can be, for the first one as a whole."""
        return Asked(self._trust.prompts[probe], self._trust.shared if route.tails and probe else 0)

    def _ask_probes(self, route: Route, order: Iterable[int]) -> None:
        for probe in order:
            for _, values in self._ask(route, [self._probe(route, probe)]):
                self._trust.hear(probe, values)

    def _ask(
        self, route: Route, asked: Sequence[Asked]
    ) -> Generator[tuple[int, np.ndarray], None, None]:
        """Yield (index in `asked`, log-probabilities of all but the first token, or of the end)."""
        bodies = (route.body(prompt.tolist(), skip) for prompt, skip in asked)
        with closing(self.client.answers(bodies)) as answers:
            for number, answer in answers:
                try:
                    prompt, skip = asked[number]
                    values = read(route, answer, prompt.tolist(), skip)
                except InputError as error:
                    # What the server gave stands in there, and may hold the key.
                    raise type(error)(f"{self.url}: {self.client.redact(str(error))}") from None
                served = route.served(answer)
                self._served = self._served or served
                if served and served != self._served:  # routers and updates change the model
                    raise InputError(
                        f"{self.url}: the answers came from {self._name(self._served)} at first "
                        f"and from {self._name(served)} now; ask for one model by its exact name"
                    )
                yield number, values

    def _find_route(self) -> Route:
        """Try the ways to ask, with text where the server refuses token ids."""
        prompts = [Asked(prompt, 0) for prompt in self._trust.prompts]
        reasons: dict[PromptAs, str] = {}
        ids_understood, spelling = False, Spelling(self.tokenizer)
        routes: list[Route] = [
            Completions(spelling, self.model, self.start, prompt_as, name)
            for prompt_as in get_args(PromptAs)
            for name in FORMATS
        ]
        for route in [Generate(spelling)] if self.client.speaks_generate else routes:
            by_ids = route.prompt_as == "token ids"
            if ids_understood and not by_ids:
                break
            try:
                # One at a time: most formats fail at the first.
                values = [v for prompt in prompts for _, v in self._ask(route, [prompt])]
            except Rejected as error:
                reasons.setdefault(route.prompt_as, str(error))
            except (NoPromptLogprobs, Misread) as error:
                if by_ids and isinstance(error, Misread):
                    raise
                reasons[route.prompt_as] = str(error)
                ids_understood |= by_ids
            else:
                for probe, answer in enumerate(values):
                    self._trust.hear(probe, answer)
                self._ask_probes(route, reversed(range(len(PROBES))))
                return route
        tried = "; ".join(f"asked with {how}: {why}" for how, why in reasons.items())
        raise InputError(f"no way to the log-probabilities of a prompt ({tried}); {ADVICE}")
