"""Requests to an endpoint: several at a time, tried again where that may help, within a budget.

Every failure is one line with the server's own words, time and size are limited, and
the key is never shown. A refusal that no second try can change is not tried again.
Requests run on an event loop in a thread of its own, which works in notebooks too; an
error or Ctrl-C cancels what is under way, and a request is sent only once the answer
before it has been taken.
"""

import os
import re
from collections import Counter
from collections.abc import Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from random import uniform
from typing import Any
from urllib.parse import SplitResult, urlsplit

import anyio
import httpx2
from anyio.from_thread import start_blocking_portal

from contamination.errors import InputError, printable
from contamination.scoring.endpoint_refusals import (
    WORDS_OF_A_FILTER,
    WORDS_OF_NAN,
    WORDS_OF_QUOTA,
    Filtered,
    Rejected,
    may_pass,
)
from contamination.scoring.redaction import shortened, whole_repr

ATTEMPTS = 7  # tries of a request
PATIENCE = 600.0  # seconds after which no try begins
LONGEST_TIMEOUT = 86_400.0  # seconds
LONGEST_WAIT = 8.0  # seconds between tries, of our own
LONGEST_RETRY_AFTER = 120.0  # seconds, where a server says when to come back
MOST_AT_A_TIME = 512  # each has a connection, and systems allow about a thousand
LARGEST = 1 << 24  # bytes of an answer, unpacked
KEPT = (b"location", b"retry-after")  # headers
LOOPBACK = ("127.0.0.1", "::1", "localhost")


def require_name(model: str) -> str:
    """Return the name of a model; raise InputError if it is empty or no Unicode text."""
    # A byte or half an emoji that the shell passed on can stand neither in JSON nor in
    # a file.
    if not model.strip() or not model.isprintable():
        raise InputError(
            f"{model!r} is no name of a model: give the name that the server lists",
        )
    return model


@dataclass
class Client:
    """Posts JSON to one address.

    Raises InputError for limits that cannot be, an address that is not http(s), that
    may hold secrets or that would send the key unencrypted over a network, and for a
    key that cannot be sent.

    Attributes
    ----------
    url
        Address of the API, such as http://127.0.0.1:8000/v1.
    concurrency
        Requests under way at the same time, 512 at most.
    max_requests
        Budget of requests, retries included; None is no limit.
    timeout
        Seconds after which an answer has to be complete, else it is asked for again: 7
        tries, of which none begins later than ten minutes after the first. A day at
        most.
    api_key_env
        Environment variable with the key; unset or empty where the server needs none.
    served
        Name that the server gave to the model in its answers; "" before the first
        answer.
    requests_made, failures
        Requests with their retries, and those that failed, by reason.
    reached, understood
        Whether any was answered, and whether any answer was an object of JSON.
    """

    url: str
    concurrency: int = 8
    max_requests: int | None = None
    timeout: float = 120.0
    api_key_env: str = "OPENAI_API_KEY"
    served: str = field(default="", init=False)
    requests_made: int = field(default=0, init=False)
    failures: Counter[str] = field(default_factory=Counter, init=False)
    reached: bool = field(default=False, init=False)
    understood: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        """Check the limits.

        Take the key from the environment: a field would be printed.
        """
        if not 1 <= self.concurrency <= MOST_AT_A_TIME:
            raise InputError(
                f"concurrency is {self.concurrency}: give 1 to {MOST_AT_A_TIME} requests at a time"
            )
        self._key = os.environ.get(self.api_key_env, "").strip()
        if not re.fullmatch("[!-~]*", self._key):  # the HTTP library would print it
            raise InputError(
                f"{self.api_key_env}: the key holds a space, a line break or a "
                "character outside ASCII; set the variable to the key alone"
            )
        if not 0 < self.timeout <= LONGEST_TIMEOUT:  # NaN is not above 0
            raise InputError(
                f"timeout is {self.timeout:g}: give more than 0 and up to {LONGEST_TIMEOUT:g} s"
            )
        parts = _parts_of(self.url)
        if "@" in parts.netloc or parts.query or parts.fragment:
            raise InputError(
                "the URL of the endpoint holds a user name, a query or a fragment, "
                f"which would end up in logs; put the key into {self.api_key_env} "
                "instead"
            )
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError(
                "no URL of an endpoint; give one such as http://127.0.0.1:8000/v1",
            )
        self.url = parts.geturl()
        if self._key and parts.scheme == "http" and parts.hostname not in LOOPBACK:
            raise InputError(
                f"{self.url}: the key in {self.api_key_env} would cross the network "
                "unencrypted; use https or a tunnel to 127.0.0.1, or unset the variable"
            )

    def require_budget(self, requests: int) -> None:
        """Refuse work that takes more requests than the budget has left."""
        if self.max_requests is None:
            return
        if requests > self.max_requests - self.requests_made:
            raise InputError(
                f"{self.url}: {requests:,} more requests are needed, and the budget is "
                f"{self.max_requests:,} ({self.summary()}); give a larger one or score "
                "less. What is stored is kept"
            )

    def summary(self) -> str:
        """Return requests made, why some failed, and the model's own name, as a line."""
        text = f"{self.requests_made:,} requests"
        if self.failures:
            counts = self.failures.most_common()
            reasons = ", ".join(f"{count:,} x {kind}" for kind, count in counts)
            text += f", {self.failures.total():,} of them failed ({reasons})"
        if self.served:
            text += f", answered by {self.served!r}"
        return text

    def require_same_model(self, model: Any) -> None:
        """Take what an answer calls the model.

        Raises InputError where it had another name before.
        """
        name = printable(self.shorten(model)) if isinstance(model, str) else ""
        self.served = self.served or name
        if name and name != self.served:  # routers and updates change the model
            raise InputError(
                f"{self.url}: the answers came from {self.served!r} at first and from "
                f"{name!r} now; ask for one model by its exact name"
            )

    def answers(
        self,
        bodies: Iterable[dict[str, Any]],
        *,
        largest: int | None = None,
        if_filtered: Any = None,
    ) -> Generator[tuple[int, Any], None, None]:
        """Post the bodies, some at a time; yield (index, object of JSON) as answers arrive.

        An answer of more than `largest` bytes, unpacked, is refused; None is 16 MiB.
        `if_filtered` stands for the answer to a prompt that a filter refuses; None
        raises Filtered. Raises InputError if the server refuses, stays away or answers
        nonsense, or the budget is used up. What is under way is then cancelled, as when
        the caller closes the generator.
        """
        waiting = enumerate(bodies)
        running: dict[Future[Any], int] = {}
        most_bytes = largest or LARGEST
        encrypted = self.url.startswith("https")
        client = httpx2.AsyncClient(
            headers=self._authorization(),  # no local: tracebacks show those
            timeout=self.timeout,
            follow_redirects=False,  # they might carry the key to another host
            verify=encrypted,  # to load certificates takes longer than a request
            trust_env=encrypted,  # no proxy gets to read what is not encrypted
            limits=httpx2.Limits(),
        )
        with (
            start_blocking_portal() as portal,
            portal.wrap_async_context_manager(client),
        ):

            def send(count: int) -> None:
                for index, body in islice(waiting, count):
                    task = portal.start_task_soon(self._post, client, body, most_bytes)
                    running[task] = index

            try:
                send(self.concurrency)
                while running:
                    for done in wait(running, return_when=FIRST_COMPLETED).done:
                        index = running.pop(done)
                        try:
                            answer = done.result()
                        except Filtered:
                            if if_filtered is None:
                                raise
                            answer = if_filtered
                        send(1)
                        yield index, answer
            finally:
                for future in running:
                    future.cancel()

    def _authorization(self) -> dict[str, str]:
        """Return the header with the key, if there is one."""
        return {"Authorization": f"Bearer {self._key}"} if self._key else {}

    async def _post(
        self,
        client: httpx2.AsyncClient,
        body: dict[str, Any],
        largest: int,
    ) -> dict[str, Any]:
        """Return the object of JSON that answers one request.

        Raises `InputError` if there is none.
        """
        reason = ""
        last = anyio.current_time() + PATIENCE
        for tried in range(1, ATTEMPTS + 1):
            self.require_budget(1)
            self.requests_made += 1
            pause = min(LONGEST_WAIT, 0.25 * 2**tried) * uniform(0.75, 1)
            try:
                with anyio.fail_after(self.timeout):
                    response = await self._try(client, body, largest)
            except (TimeoutError, httpx2.RequestError) as error:
                reason = self._broken(error)
            else:
                self.reached = True
                if not may_pass(response):
                    answer = self._read(response)
                    if answer is not None:
                        return answer
                reason = self._failed(response)
                seconds = response.headers.get("retry-after", "")  # or a date
                if seconds.isascii() and seconds.isdecimal():
                    pause = min(float(seconds), LONGEST_RETRY_AFTER)
            if tried == ATTEMPTS or anyio.current_time() + pause > last:
                break
            await anyio.sleep(pause)
        again = "Run it again later: what is stored is kept"
        raise InputError(f"{self.url}: {reason}; tried {tried} times. {again}")

    async def _try(
        self, client: httpx2.AsyncClient, body: dict[str, Any], largest: int
    ) -> httpx2.Response:
        """Return one whole answer, with its body unpacked."""
        content = bytearray()
        url = f"{self.url}/completions"
        async with client.stream("POST", url, json=body) as response:
            client.cookies.clear()  # requests say nothing of each other
            async for piece in response.aiter_bytes():
                content += piece
                if len(content) > largest:
                    raise InputError(
                        f"{self.url}: the answer is larger than {largest:,} bytes, the "
                        "most that what was asked for takes; let the server keep to "
                        "max_tokens"
                    )
        # As bytes: they may be of any encoding, or of none.
        headers = [pair for pair in response.headers.raw if pair[0].lower() in KEPT]
        return httpx2.Response(
            response.status_code,
            headers=headers,
            content=bytes(content),
        )

    def _broken(self, error: Exception) -> str:
        """Count a try without an answer, and return why there is none.

        Raises InputError if no connection was ever made.
        """
        problem = self.shorten(str(error) or type(error).__name__)
        no_connection = isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)
        if no_connection and not self.reached:
            raise InputError(
                f"{self.url}: cannot be reached ({problem}); start the server or correct the URL"
            ) from None
        if isinstance(error, TimeoutError | httpx2.TimeoutException):
            late = f"no answer in {self.timeout:g} s"
            self.failures[late] += 1
            return late
        self.failures["broken connection"] += 1
        return f"broken connection ({problem})"

    def _failed(self, response: httpx2.Response) -> str:
        """Count an answer that another try may better, and return what is wrong with it."""
        if response.is_success:
            self.failures["broken answer"] += 1
            return "the answer is no JSON object, unlike others before"
        self.failures[f"HTTP {response.status_code}"] += 1
        return f"HTTP {response.status_code} ({self._words(response)})"

    def _read(self, response: httpx2.Response) -> dict[str, Any] | None:
        """Return the object of JSON in an answer; InputError says why it is none, and the fix.

        It is None for an answer that broke on its way: others before were objects.
        """
        if response.is_redirect:
            target = self.shorten(response.headers.get("location", "no address"))
            raise InputError(
                f"{self.url}: redirects to {target}; give the address that it ends at",
            )
        if not response.is_success:
            raise self._refusal(response)
        answer: Any = None
        with suppress(ValueError, RecursionError):
            answer = response.json()
        if not isinstance(answer, dict):
            if self.understood:
                return None
            raise InputError(
                f"{self.url}: the answer is no JSON object; give the base URL of an "
                "OpenAI-compatible API, which mostly ends in /v1"
            )
        if answer.get("error"):
            raise self._refusal(response)
        self.understood = True
        return answer

    def _refusal(self, response: httpx2.Response) -> InputError:
        """Return the error for a refusal that lasts: the server's words, and the fix."""
        status = response.status_code
        words = self._words(response)
        problem = f"{self.url}: HTTP {status} ({words})"
        if status in (400, 403, 422) and WORDS_OF_A_FILTER.search(response.text):
            return Filtered(problem, words)
        if WORDS_OF_NAN.search(words):
            return InputError(
                f"{problem}; serve the model in another precision, such as float32",
            )
        if status == 402 or WORDS_OF_QUOTA.search(response.text):
            return InputError(
                f"{problem}; raise the quota and run it again: what is stored is kept",
            )
        key = self.api_key_env
        fixes = {
            401: f"put a valid key into {key}",
            403: f"ask for access to the model, or put another key into {key}",
            404: "check the model's name, and the URL, which mostly ends in /v1",
            405: "check the URL, which mostly ends in /v1",
        }
        if status in fixes:
            return InputError(f"{problem}; {fixes[status]}")
        return Rejected(problem, words)

    def _words(self, response: httpx2.Response) -> str:
        """Return what the server says went wrong, else all that it says, shortened."""
        try:
            error = response.json()["error"]
            words = str(error if isinstance(error, str) else error["message"])
        except (LookupError, RecursionError, TypeError, ValueError):
            words = response.text
        return self.shorten(words)

    def shorten(self, text: str) -> str:
        """Return a text from outside as one short line without the key."""
        return shortened(self._key, text)

    def shown(self, value: Any) -> str:
        """Return a value of an answer as one short line without the key."""
        return self.shorten(whole_repr(value))


def _parts_of(url: str) -> SplitResult:
    """Return the parts of the URL of an API; all are empty if it is no URL."""
    try:
        parts = urlsplit(url.strip().rstrip("/").removesuffix("/completions"))
        _ = parts.port  # raises ValueError for one above 65,535
        httpx2.URL(parts.geturl())
        # As the system does when it looks the name up.
        (parts.hostname or "").encode("idna")
    except (ValueError, httpx2.InvalidURL):
        return urlsplit("")
    return parts
