"""A server over a small model, honest or not, with OpenAI's protocol: a test may tamper with it."""

import json
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerBase

from contamination.scoring.endpoint import EndpointScorer
from contamination.scoring.generation import CONTINUE, LIMITS, LocalGenerator, Sampling
from contamination.testsets.tokens import tokenize
from fakes.hub_server import LocalHandler, LocalServer

# The styles are vllm, sglang, openai and chat, which writes alone. What the others understand:
KNOWN = {"model", "prompt", "max_tokens", "temperature", "echo", "logprobs"}
FIELDS = {"vllm": {"prompt_logprobs"}}  # beyond; of the rest, openai alone refuses any


class Network:
    """A causal model and its tokenizer, one prompt at a time."""

    def __init__(self, directory: Path | str) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(directory, local_files_only=True)
        self._model = AutoModelForCausalLM.from_pretrained(directory, local_files_only=True).eval()
        self._lock = threading.Lock()
        self.context = self._model.config.max_position_embeddings
        self._named = torch.tensor(named_tokens(self.tokenizer))

    @torch.inference_mode()
    def score(self, ids: list[int], temperature: float) -> tuple[list[float | None], int, float]:
        """Log-probability of each id (None for the first), a generated id and its own.

        The temperature is applied to all of them, as some servers do. Pieces of characters are not
        generated.
        """
        with self._lock:
            logits = self._model(torch.tensor([ids])).logits[0].float() / max(temperature, 0.1)
        table = logits.log_softmax(-1)
        values = table[:-1].gather(1, torch.tensor(ids[1:])[:, None])[:, 0].tolist()
        generated = int(self._named[table[-1][self._named].argmax()])
        return [None, *values], generated, float(table[-1][generated])


class RowsShifted(Network):
    """Gives to each token of a prompt the log-probability of another row, as llama-cpp-python did.

    What it generates is right. `rows` is 1 for a row too far, -1 for one too early.
    """

    rows = 1

    def score(self, ids: list[int], temperature: float) -> tuple[list[float | None], int, float]:
        """Return what `Network.score` does, the values of the prompt from the wrong row."""
        _, generated, its_value = super().score(ids, temperature)
        with torch.inference_mode():
            table = self._model(torch.tensor([ids])).logits[0].float().log_softmax(-1)
        own = range(1, len(ids))
        values = [float(table[max(0, at - 1 + self.rows), ids[at]]) for at in own]
        return [None, *values], generated, its_value


def named_tokens(tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """Tokens whose text is that of no other token, nor a piece of a character."""
    texts = [tokenizer.decode([token]) for token in range(len(tokenizer))]
    ids = tokenize(tokenizer, texts)
    special = tokenizer.all_special_ids
    return [t for t, own in enumerate(ids) if own.tolist() == [t] and t not in special]


@dataclass
class Failure:
    """One answer that is not a result."""

    status: int = 200
    body: bytes = b'{"error": {"message": "out of order"}}'
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False  # close the connection in the middle of the body
    silent: bool = False  # no answer until the server is closed
    raw: bytes | None = None  # everything that is sent, in place of all the above
    forever: bytes = b""  # sent behind that, again and again until the client goes away
    pause: float = 0.0  # seconds between the times


def _read_as_sent(ids: list[int]) -> list[int]:
    return ids


def _leave_answer(answer: dict[str, Any], number: int) -> None:
    pass


def _hold_nothing(body: Any) -> None:
    pass


def _refuse_nothing(body: Any) -> str:
    return ""


class CompletionsServer(LocalServer):
    """A server that records requests, and misbehaves as told.

    Attributes
    ----------
    seen : (headers by their names in lower case, JSON) of every request.
    failures : instead of the next answers, in order.
    read : the token ids that the server makes of those it was sent.
    tamper : changes an answer before it is sent; its second argument is the number of the request.
    hold : called with the JSON before the answer; may wait.
    refuses : says why a request is refused with 400, from its JSON; "" where it is not.
    writer : writes text instead, in the styles openai and chat. fewest : texts of an answer, at
        most.
    """

    def __init__(
        self, network: Network | None, style: str = "vllm", writer: LocalGenerator | None = None
    ) -> None:
        self.network = network
        self.writer = writer
        self.fewest = 1_000
        self.style = style
        self.seen: list[tuple[dict[str, str], Any]] = []
        self.failures: deque[Failure] = deque()
        self.read: Callable[[list[int]], list[int]] = _read_as_sent
        self.tamper: Callable[[dict[str, Any], int], None] = _leave_answer
        self.hold: Callable[[Any], None] = _hold_nothing
        self.refuses: Callable[[Any], str] = _refuse_nothing
        self.closing = threading.Event()
        super().__init__(_Handler)

    @property
    def path(self) -> str:
        return "/v1/chat/completions" if self.style == "chat" else "/v1/completions"

    @property
    def url(self) -> str:
        return super().url + self.path.removesuffix("/completions")

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the result for a request that is in order."""
        ids = self.read(body["prompt"])
        values, generated, its_value = self.network.score(ids, body["temperature"])
        choice: dict[str, Any] = {"index": 0, "text": self.text(generated), "logprobs": None}
        answer = {
            "object": "text_completion",
            "model": body["model"],
            "choices": [choice],
            "usage": {"prompt_tokens": len(ids), "completion_tokens": 1},
        }
        asked = body.keys() & FIELDS.get(self.style, set())
        if "prompt_logprobs" in asked:
            choice["prompt_logprobs"] = [
                None if value is None else {str(token): {"logprob": value, "rank": 1}}
                for token, value in zip(ids, values, strict=True)
            ]
        if body.get("logprobs") is None:
            return answer
        echoed, known = (ids, values) if body.get("echo") else ([], [])
        choice["logprobs"] = {
            "tokens": [self.text(i) for i in (*echoed, generated)],
            "token_logprobs": [*known, its_value],
        }
        return answer

    def written(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return texts of the writer, with the noise of the seed that was sent."""
        assert self.writer is not None
        chat = self.style == "chat"
        prompt = body["messages"][0]["content"].removeprefix(CONTINUE) if chat else body["prompt"]
        limit = next(body[name] for name in LIMITS if name in body)
        sampling = Sampling(body.get("n", 1), limit, body.get("temperature", 1.0))
        texts = self.writer.texts(prompt, sampling, body.get("seed", 0))[: self.fewest]
        if chat:
            said = [{"message": {"role": "assistant", "content": text}} for text in texts]
        else:
            said = [{"text": text} for text in texts]
        choices = [{"finish_reason": "length", **each} for each in said]
        return {"model": body["model"], "choices": choices}

    def text(self, token: int) -> str:
        return self.network.tokenizer.decode([token])


class _Handler(LocalHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # an answer is one packet
    server: CompletionsServer

    def do_POST(self) -> None:
        server = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server.seen.append(({k.lower(): v for k, v in self.headers.items()}, body))
        number = len(server.seen)
        server.hold(body)
        if server.failures:
            self.send_failure(server.failures.popleft())
        elif self.path != server.path:
            self.refuse(404, "no such path")
        elif server.refuses(body):
            self.refuse(400, server.refuses(body))
        elif server.writer is not None:
            answer = server.written(body)
            server.tamper(answer, number)
            self.send(200, json.dumps(answer).encode())
        elif server.style == "openai" and not body.keys() <= KNOWN:
            self.refuse(400, f"Unrecognized request arguments: {sorted(body.keys() - KNOWN)}")
        elif len(server.read(body["prompt"])) + body["max_tokens"] > server.network.context:
            self.refuse(400, f"the maximum context length is {server.network.context} tokens")
        else:
            answer = server.answer(body)
            server.tamper(answer, number)
            self.send(200, json.dumps(answer).encode())

    def send_failure(self, failure: Failure) -> None:
        if failure.silent:
            self.server.closing.wait()
            self.close_connection = True
        elif failure.raw is not None:
            self.close_connection = True
            self.wfile.write(failure.raw)
            self.wfile.flush()
            while failure.forever and not self.server.closing.wait(failure.pause):
                self.wfile.write(failure.forever)
                self.wfile.flush()
        else:
            self.send(failure.status, failure.body, failure.headers, cut=failure.cut)

    def refuse(self, status: int, message: str) -> None:
        self.send(status, json.dumps({"error": {"message": message}}).encode())


def scorer_of(server: CompletionsServer, directory: Path, **changes: Any) -> EndpointScorer:
    """Open the server's model, with the whole context unless said otherwise."""
    arguments = {"context": server.network.context, "timeout": 60.0} | changes
    return EndpointScorer(server.url, "tiny", directory, **arguments)


@contextmanager
def serving(
    network: Network | None, style: str = "vllm", writer: LocalGenerator | None = None
) -> Iterator[CompletionsServer]:
    """Serve from a thread until the block ends."""
    with CompletionsServer(network, style, writer) as server:
        try:
            yield server
        finally:
            server.closing.set()
            server.shutdown()
