"""Requests to an endpoint: through the `openai` client, several at a time, within a budget.

The client deserves ten years: compatible servers are tested against it, and OpenAI keeps it up to
date with connections, keys, time limits and the failures that another try may cure. What is added
here is the budget, one line for every failure, and that the key is never shown.

Requests run on an event loop in a thread of its own, which works in notebooks too (they have a loop
already) and lets an error or Ctrl-C cancel at once what is under way.
"""

import ipaddress
import os
from collections import Counter
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any
from urllib.parse import urlsplit

import openai
from anyio import create_task_group
from anyio.from_thread import start_blocking_portal

from contamination.errors import InputError

ATTEMPTS = 7  # the waits between them grow to 8 s, and are those that the server asks for up to 120
TEMPORARY = {408, 409, 429}  # and everything from 500 on
RETRY = "Run it again later: what is stored is kept"
SHORT = 200  # characters of a server's own message
# What the client would take from the environment and send to whichever server it talks to.
UNSENT = {"OpenAI-Organization": openai.Omit(), "OpenAI-Project": openai.Omit()}


class Rejected(InputError):
    """The server makes nothing of the request: another form of it may do."""


class _Final(openai.OpenAIError):
    """Ends a request without another try: the client retries no error of its own."""


class _CountingHttp(openai.DefaultAsyncHttpxClient):
    """HTTP connections that count every try for the client that they belong to."""

    def __init__(self, owner: "Client", **options: Any) -> None:
        super().__init__(**options)
        self._owner = owner

    async def send(self, request: Any, **options: Any) -> Any:
        """Send within the budget; give up an address where nobody ever answered."""
        owner = self._owner
        if owner.max_requests is not None and owner.requests_made >= owner.max_requests:
            raise _Final(
                f"{owner.url}: the budget is used up ({owner.summary()}); what is stored is kept: "
                "run it again with a larger one"
            )
        owner.requests_made += 1
        try:
            response = await super().send(request, **options)
        except Exception as error:
            # The HTTP library is the `openai` client's choice, so its errors go by their names.
            name = type(error).__name__
            if name.startswith("Connect") and not owner.reached:
                raise _Final(
                    f"{owner.url}: cannot be reached ({owner.shorten(str(error) or name)}); start "
                    "the server or correct the URL"
                ) from None
            owner.failures["no answer in time" if "Timeout" in name else "broken connection"] += 1
            raise
        owner.reached = True
        if _is_temporary(response.status_code):
            owner.failures[f"HTTP {response.status_code}"] += 1
        return response


@dataclass
class Client:
    """Posts to one endpoint, with the arguments of `contamination.scoring.endpoint.EndpointScorer`.

    `requests_made` counts the requests, retries included, and `failures` those that failed, by
    reason; `reached` is whether any was answered. Raises InputError for an address that is not
    http(s), that may hold secrets or that would send the key unencrypted over a network, and for a
    key that cannot be sent.
    """

    url: str
    key_variable: str
    concurrency: int
    max_requests: int | None
    timeout: float
    requests_made: int = field(default=0, init=False)
    failures: Counter[str] = field(default_factory=Counter, init=False)
    reached: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        """Take the key from the environment: it is no field, so that nothing prints it."""
        self._key = os.environ.get(self.key_variable, "").strip()
        # A header that cannot be sent would be printed by the HTTP library.
        if not (self._key.isascii() and self._key.isprintable() and " " not in self._key):
            raise InputError(
                f"{self.key_variable}: the key holds a space, a line break or a character outside "
                "ASCII; set the variable to the key alone"
            )
        self.url = self._address()

    def _address(self) -> str:
        """Return the address that `/completions` is to be added to, checked."""
        try:
            parts = urlsplit(self.url.strip().rstrip("/").removesuffix("/completions"))
        except ValueError:
            parts = urlsplit("")
        if "@" in parts.netloc or parts.query or parts.fragment:
            raise InputError(
                "the URL of the endpoint holds a user name, a query or a fragment, which would end "
                f"up in logs; leave that out and put the key into {self.key_variable}"
            )
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError("no URL of an endpoint; give one such as http://127.0.0.1:8000/v1")
        if self._key and parts.scheme == "http" and not _is_loopback(parts.hostname):
            raise InputError(
                f"{parts.geturl()}: the key in {self.key_variable} would cross the network "
                "unencrypted; use https, a tunnel to 127.0.0.1, or unset "
                f"{self.key_variable} if the server needs no key"
            )
        return parts.geturl()

    def require_budget(self, requests: int) -> None:
        """Refuse work that takes more requests than the budget has left."""
        if self.max_requests is None or requests <= self.max_requests - self.requests_made:
            return
        raise InputError(
            f"{self.url}: {requests:,} more requests are needed, but of a budget of "
            f"{self.max_requests:,} {self.requests_made:,} are used; give a larger budget or score "
            "less. What is stored is kept"
        )

    def summary(self) -> str:
        """One line for people: requests made, and what became of those that failed."""
        text = f"{self.requests_made:,} requests"
        if self.failures:
            reasons = ", ".join(f"{n:,} x {kind}" for kind, n in self.failures.most_common())
            text += f", {self.failures.total():,} of them failed ({reasons})"
        return text

    def answers(self, bodies: Iterable[dict[str, Any]]) -> Generator[tuple[int, Any], None, None]:
        """Post the bodies, some at a time; yield (index, JSON of the answer) as they arrive.

        Raises InputError if the server refuses, stays away or answers nonsense, or the budget is
        used up. What is under way is then cancelled, and what is queued is never sent.
        """
        arrived: SimpleQueue[tuple[int, Any] | None] = SimpleQueue()
        with start_blocking_portal() as portal:
            work = portal.start_task_soon(self._post_all, bodies, arrived)
            work.add_done_callback(lambda _: arrived.put(None))
            while (item := arrived.get()) is not None:
                yield item
            error = work.exception()
        if isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if error is not None:
            raise error from None

    async def _post_all(
        self, bodies: Iterable[dict[str, Any]], arrived: "SimpleQueue[tuple[int, Any] | None]"
    ) -> None:
        queue = enumerate(bodies)
        encrypted = self.url.startswith("https")
        http = _CountingHttp(
            self,
            follow_redirects=False,  # they might carry the key to another host
            verify=encrypted,  # to load certificates takes longer than a request
            trust_env=encrypted,  # no proxy gets to read what is not encrypted
        )
        async with (
            openai.AsyncOpenAI(
                base_url=self.url,
                api_key=self._key or "none",
                timeout=self.timeout,
                max_retries=ATTEMPTS - 1,
                http_client=http,
            ) as client,
            create_task_group() as workers,
        ):

            async def work() -> None:
                for index, body in queue:
                    arrived.put((index, await self._post(client, body)))

            for _ in range(self.concurrency):
                workers.start_soon(work)

    async def _post(self, client: openai.AsyncOpenAI, body: dict[str, Any]) -> Any:
        """Return the JSON of the answer to one request; `InputError` if there is none."""
        try:
            raw = await client.completions.with_raw_response.create(
                model=body["model"],
                prompt=body["prompt"],
                extra_body=body,
                extra_headers=UNSENT if self._key else {**UNSENT, "Authorization": openai.Omit()},
            )
            return self._read(raw.http_response)
        except openai.APIStatusError as error:
            return self._read(error.response)
        except openai.APITimeoutError:
            reason = f"no answer within {self.timeout:g} s"
        except openai.APIConnectionError as error:
            cause = error.__cause__ or error
            reason = f"the connection broke ({self.shorten(str(cause) or type(cause).__name__)})"
        except _Final as error:
            raise InputError(str(error)) from None
        raise InputError(f"{self.url}: {reason}; tried {ATTEMPTS} times. {RETRY}")

    def _read(self, response: Any) -> Any:
        """Return the JSON of an answer, or say in one line why it is none and what to do."""
        status = response.status_code
        if response.is_success:
            try:
                found = response.json()
            except ValueError:
                kind = self.shorten(response.headers.get("content-type", "no content type"))
                raise InputError(
                    f"{self.url}: the answer is not JSON ({kind}); give the base URL of an "
                    "OpenAI-compatible API, which mostly ends in /v1"
                ) from None
            if not isinstance(found, dict) or "error" not in found:
                return found
        answer = f"{self.url}: HTTP {status} ({self.shorten(_message(response))})"
        advice = {
            401: f"put a valid key into {self.key_variable}",
            403: f"ask for access to the model, or put another key into {self.key_variable}",
            404: "check the model's name, and the URL, which mostly ends in /v1",
        }
        if status in advice:
            raise InputError(f"{answer}; {advice[status]}") from None
        if response.is_redirect:
            target = self.shorten(response.headers["location"])
            raise InputError(
                f"{self.url}: redirects to {target}; give the address that it ends at"
            ) from None
        if not _is_temporary(status):
            raise Rejected(answer) from None
        tries = 1 + int(response.request.headers.get("x-stainless-retry-count", 0))
        if tries < ATTEMPTS:
            asked = self.shorten(response.headers.get("retry-after", "not now"))
            answer += f"; the server asks to wait (Retry-After: {asked})"
        raise InputError(f"{answer}; tried {tries} times. {RETRY}") from None

    def shorten(self, text: str) -> str:
        """Return a text from outside as one short line without the key, which some repeat."""
        if self._key:
            text = text.replace(self._key, "***")
        text = " ".join(text.split())
        return text if len(text) <= SHORT else text[: SHORT - 1] + "…"


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_temporary(status: int) -> bool:
    return status in TEMPORARY or status >= 500


def _message(response: Any) -> str:
    """What the server says went wrong, in any of the usual places."""
    try:
        found = response.json()
    except ValueError:
        return str(response.text)
    while isinstance(found, dict):
        found = next((found[k] for k in ("error", "message", "detail") if k in found), str(found))
    return str(found)
