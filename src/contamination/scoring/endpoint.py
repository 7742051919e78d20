"""`EndpointScorer`: a model behind a server, of which log-probabilities are all that is seen.

This is the black-box setting of Oren (section 2): any OpenAI-compatible server will do if it gives
the log-probabilities of a prompt, and so will SGLang's own `/generate`, which gives those that are
wanted alone. How to ask is found out with the first requests. Every window of a sequence is one
request; the answers count in any order. Requests are sent in the order of the sequences: a server
may drift, so whoever compares sequences gives them in a random order.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np

from contamination.errors import InputError
from contamination.files import sha256_of
from contamination.randomness import random_stream
from contamination.scoring.contract import start_token
from contamination.scoring.endpoint_answers import (
    ADVICE,
    Misread,
    NoPromptLogprobs,
    PromptAs,
    Route,
    Spelling,
)
from contamination.scoring.endpoint_client import Client, Rejected
from contamination.scoring.endpoint_completions import FORMATS, CompletionsRoute
from contamination.scoring.endpoint_generate import GenerateRoute
from contamination.scoring.endpoint_trust import FIRST_ASKED, LAST_ASKED, PROBES, Trust
from contamination.scoring.loading import ModelSource, load_tokenizer
from contamination.scoring.windows import Job, assemble, windows_of

LEAST_INPUTS = 14
# Tokens of the context that are no inputs: the last of a window, which is sent behind its inputs,
# and one that is generated. SGLang's own protocol needs no generated one, but seven are kept free.
NOT_INPUTS, NOT_INPUTS_OF_GENERATE = 2, 8
# Of an answer at most; a token with its log-probability, id and text takes about 100 bytes.
BASE_BYTES, TOKEN_BYTES = 1 << 20, 1 << 10


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
    concurrency : requests under way at the same time.
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
        if concurrency < 1:
            raise InputError(f"concurrency is {concurrency}: give 1 request at a time or more")
        if timeout <= 0:
            raise InputError(f"timeout is {timeout}: give more than 0 seconds")
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
        begins = {i: window.start for i, window in reversed(jobs)}
        # Moments that no server foresees, and that are the same when the call is repeated.
        asked = sha256_of(*(ids.tobytes() for ids in sequences))
        rng = random_stream(0, "moments of the probes", asked)
        queue: list[Job | int] = list(jobs)
        for place in self._trust.places(len(jobs), rng):
            queue[place:place] = range(len(PROBES))
        more = LAST_ASKED + FIRST_ASKED * (self._route is None) if jobs else 0
        self.client.require_budget(len(queue) + more)
        scores = [np.full(len(ids), np.nan, dtype=np.float32) for ids in sequences]
        owners = [job.sequence for job in jobs]
        wholes = assemble(scores, owners, self._results(sequences, queue))
        return self._compared(sequences, masks, begins, wholes)

    def _compared(
        self,
        sequences: Sequence[np.ndarray],
        masks: Sequence[np.ndarray],
        begins: dict[int, int],
        wholes: Iterator[tuple[int, np.ndarray]],
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Yield what comes, after a look at it beside what came before."""
        for index, values in wholes:
            ids, wanted = sequences[index], masks[index]
            if index in begins:
                self._trust.compare(ids[begins[index] :], ids[wanted], values[wanted])
            yield index, values

    def _results(
        self, sequences: Sequence[np.ndarray], queue: Sequence[Job | int]
    ) -> Iterator[tuple[int, slice, np.ndarray]]:
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
            for number, values in self._ask(self._route, asked):
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

    def _ask(self, route: Route, asked: Sequence[Asked]) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (index in `asked`, log-probabilities of all but the first token, or of the end)."""
        bodies = (route.body(prompt.tolist(), skip) for prompt, skip in asked)
        with closing(self.client.answers(bodies)) as answers:
            for number, answer in answers:
                try:
                    prompt, skip = asked[number]
                    values = route.read(answer, prompt.tolist(), skip)
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

    def _routes(self) -> Iterator[Route]:
        """Yield the ways to ask, those by token ids first."""
        spelling = Spelling(self.tokenizer)
        if self.client.speaks_generate:
            yield GenerateRoute(spelling, "token ids")
            return
        for prompt_as in get_args(PromptAs):
            for wire in FORMATS:
                yield CompletionsRoute(spelling, prompt_as, self.model, wire, self.start)

    def _find_route(self) -> Route:
        """Try the ways to ask, with text where the server refuses token ids."""
        prompts = [Asked(prompt, 0) for prompt in self._trust.prompts]
        reasons: dict[PromptAs, str] = {}
        ids_understood = False
        for route in self._routes():
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
