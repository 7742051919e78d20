"""Requests to an endpoint: several at a time, repeated where that helps, within a budget.

They run on an event loop in a thread of its own, which works in notebooks too (they have a loop
already) and lets an error or Ctrl-C cancel at once what is under way.
"""

from collections import Counter
from collections.abc import Generator, Iterable
from queue import SimpleQueue
from typing import Any

import httpx
from anyio import create_task_group, sleep
from anyio.from_thread import start_blocking_portal
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception_type,
    stop_after_attempt,
    wait_exponential,
    wait_random,
)

from contamination.errors import InputError
from contamination.scoring.endpoint_address import Key, base_url
from contamination.scoring.endpoint_answers import Temporary, read_answer, short

ATTEMPTS = 7
BACKOFF = wait_exponential(multiplier=0.5, max=30) + wait_random(0, 0.5)  # some 30 s in all


class Client:
    """Posts to one endpoint.

    Parameters
    ----------
    url : of the API, without `/completions`. key : from the environment.
    concurrency : requests under way at the same time.
    max_requests : budget of requests, retries included; None is no limit.
    timeout : seconds of silence after which a request is given up.

    Attributes
    ----------
    requests_made : so far, retries included. failures : how many of them failed, by reason.
    """

    def __init__(
        self, url: str, key: Key, *, concurrency: int, max_requests: int | None, timeout: float
    ) -> None:
        base = base_url(url, key)
        self.url = str(base)
        self._key = key
        self._encrypted = base.scheme == "https"
        # Made once: it takes longer than a request. Plain http has no certificates to verify.
        self._verify = httpx.create_ssl_context() if self._encrypted else False
        self.concurrency = concurrency
        self.max_requests = max_requests
        self.timeout = timeout
        self.requests_made = 0
        self.failures: Counter[str] = Counter()
        self._reached = False

    def require(self, requests: int) -> None:
        """Refuse work that takes more requests than the budget has left."""
        if self.max_requests is None or requests <= self.max_requests - self.requests_made:
            return
        raise InputError(
            f"{self.url}: {requests:,} more requests are needed, but of a budget of "
            f"{self.max_requests:,} {self.requests_made:,} are used; give a larger budget or score "
            "less. What is stored is kept"
        )

    def answers(self, bodies: Iterable[dict[str, Any]]) -> Generator[tuple[int, Any], None, None]:
        """Post the bodies, some at a time; yield (index, JSON of the answer) as they arrive.

        Raises
        ------
        InputError
            The server refuses, stays away or answers nonsense, or the budget is used up. What is
            under way is cancelled, and what is queued is never sent.
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
        async with (
            httpx.AsyncClient(
                auth=self._key,
                timeout=self.timeout,
                limits=httpx.Limits(
                    max_connections=self.concurrency, max_keepalive_connections=self.concurrency
                ),
                follow_redirects=False,  # they might carry the key to another host
                verify=self._verify,
                trust_env=self._encrypted,  # no proxy gets to read what is not encrypted
            ) as http,
            create_task_group() as workers,
        ):

            async def work() -> None:
                for index, body in queue:
                    arrived.put((index, await self._post(http, body)))

            for _ in range(self.concurrency):
                workers.start_soon(work)

    async def _post(self, http: httpx.AsyncClient, body: dict[str, Any]) -> Any:
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(Temporary),
            wait=_wait,
            stop=stop_after_attempt(ATTEMPTS),
            after=self._count,
            sleep=sleep,
            reraise=True,
        )
        try:
            return await retrying(self._post_once, http, body)
        except Temporary as error:
            raise InputError(
                f"{error}; tried {ATTEMPTS} times. Run it again later: what is stored is kept"
            ) from None

    async def _post_once(self, http: httpx.AsyncClient, body: dict[str, Any]) -> Any:
        if self.max_requests is not None and self.requests_made >= self.max_requests:
            raise InputError(
                f"{self.url}: the budget is used up ({self.summary()}); what is stored is kept: "
                "run it again with a larger one"
            )
        self.requests_made += 1
        try:
            response = await http.post(f"{self.url}/completions", json=body)
        except httpx.TimeoutException:
            message = f"{self.url}: no answer within {self.timeout:g} s"
            raise Temporary("no answer in time", message) from None
        except httpx.RequestError as error:
            reason = short(str(error) or type(error).__name__, self._key)
            if isinstance(error, httpx.ConnectError) and not self._reached:
                raise InputError(
                    f"{self.url}: cannot be reached ({reason}); start the server or correct the URL"
                ) from None
            message = f"{self.url}: the connection broke ({reason})"
            raise Temporary("broken connection", message) from None
        self._reached = True
        return read_answer(response, self.url, self._key)

    def _count(self, state: RetryCallState) -> None:
        self.failures[_failure(state).kind] += 1

    def summary(self) -> str:
        """One line for people: requests made, and what became of those that failed."""
        text = f"{self.requests_made:,} requests"
        if self.failures:
            reasons = ", ".join(f"{n:,} x {kind}" for kind, n in self.failures.most_common())
            text += f", {self.failures.total():,} of them failed ({reasons})"
        return text


def _failure(state: RetryCallState) -> Temporary:
    assert state.outcome is not None
    error = state.outcome.exception()
    assert isinstance(error, Temporary)
    return error


def _wait(state: RetryCallState) -> float:
    """Seconds until the next try: as long as the server asks, and never less than our own wait."""
    return max(BACKOFF(state), _failure(state).retry_after)
