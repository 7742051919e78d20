"""One queue of work for all processes, on all nodes.

Under torchrun the processes draw their tasks from one counter, so that each takes as many as it can
manage. Process 0 keeps the counter, in a TCPStore of its own; the others find it through the
rendezvous that torchrun has set up. Nothing here is a collective operation: a process that dies
costs its unfinished task, which process 0 does in the end, and no other process waits for it. If
process 0 dies, the connection breaks and the others say so. A process that is alone has the same
queue without the store.
"""

import json
import os
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import cache
from typing import Any

from torch.distributed import (  # type: ignore[attr-defined]
    DistError,
    PrefixStore,
    Store,
    TCPStore,
    rendezvous,
)

from contamination.errors import InputError

POLL_SECONDS = 0.05
REPORT_SECONDS = 0.5  # between two reports of tokens from a process
PATIENCE_SECONDS = 120.0  # without a token from anyone, before who has not finished counts as lost
PATIENCE_TASKS = 3.0  # the same in multiples of the longest task
GRACE_SECONDS = 10.0  # for the others to hear that all is done
START_LIMIT = timedelta(minutes=30)  # between the first and the last process
CONNECT_LIMIT = timedelta(seconds=30)


class WorkQueue:
    """The queue of a process that is alone: all tasks are its own.

    Attributes
    ----------
    rank, size : of this process, of all of them.
    lost : processes that did not finish. notes : what each of the others said of itself.
    tokens : reported by all of them, for the tasks under way.
    """

    rank = 0
    size = 1

    def __init__(self) -> None:
        self.lost: set[int] = set()
        self.notes: dict[int, str] = {}
        self.tokens = 0
        self._show: Callable[[int], None] = lambda tokens: None

    def agree(self, decide: Callable[[], Any]) -> Any:
        """Return what `decide` returns in process 0, or raise its `InputError`, in all of them.

        The value must be one that JSON can hold. Every process calls this before `tasks`.
        """
        return decide()

    def tasks(self, count: int, *, note: str, show: Callable[[int], None]) -> Iterator[int]:
        """Yield the tasks of this process, of 0..count-1; all are done when it is exhausted.

        A task is done when the next one is asked for. `show` is told the tokens of all processes.
        """
        self.notes, self.tokens, self._show = {0: note}, 0, show
        yield from range(count)

    def report(self, tokens: int) -> None:
        """Count tokens of the task under way."""
        self.tokens += tokens
        self._show(self.tokens)


class SharedQueue(WorkQueue):
    """The queue of one of several processes.

    Parameters
    ----------
    store : kept by process 0, the same for all.
    meeting : another one to keep open as long as this queue is there.

    Raises
    ------
    InputError
        From every method of the others, if process 0 has ended.
    """

    def __init__(self, store: Store, rank: int, size: int, meeting: Store | None = None) -> None:
        super().__init__()
        self.rank, self.size = rank, size
        self._meeting = meeting
        self._store = self._keys = store
        self._job = 0
        self._unreported, self._reported_at = 0, 0.0

    def agree(self, decide: Callable[[], Any]) -> Any:
        """See `WorkQueue.agree`."""
        self._job += 1
        self._keys = PrefixStore(f"job-{self._job}", self._store)
        if self.rank == 0:
            try:
                value = decide()
            except InputError as error:
                self._ask("set", "agreed", json.dumps({"error": str(error)}))
                raise
            self._ask("set", "agreed", json.dumps({"value": value}))
            return value
        self._wait_for("agreed")
        answer = json.loads(self._ask("get", "agreed"))
        if "error" in answer:
            raise InputError(answer["error"])
        return answer["value"]

    def tasks(self, count: int, *, note: str, show: Callable[[int], None]) -> Iterator[int]:
        """See `WorkQueue.tasks`."""
        self.tokens, self._show, self._reported_at = 0, show, time.monotonic()
        self._ask("set", f"started/{self.rank}", "")
        while (index := self._ask("add", "next", 1) - 1) < count:
            yield from self._timed(index)
        self._ask("set", f"finished/{self.rank}", note)
        if self.rank != 0:
            self._wait_for("complete")
            self._ask("add", "left", 1)
            return
        self._wait_for_the_others(count)
        for index in range(count):
            if not self._is_set(f"done/{index}"):
                yield from self._timed(index)
        finished = [rank for rank in range(self.size) if rank not in self.lost]
        self.notes = {r: self._ask("get", f"finished/{r}").decode() for r in finished}
        self._ask("set", "complete", "")
        # With this process its store would end, and with the store what the others wait for.
        deadline = time.monotonic() + GRACE_SECONDS
        while self._ask("add", "left", 0) < len(finished) - 1 and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)

    def report(self, tokens: int) -> None:
        """See `WorkQueue.report`; the other processes hear of it within half a second."""
        self._unreported += tokens
        if time.monotonic() - self._reported_at > REPORT_SECONDS:
            self._flush()

    def _flush(self) -> None:
        self.tokens = self._ask("add", "tokens", self._unreported)
        self._unreported, self._reported_at = 0, time.monotonic()
        self._show(self.tokens)

    def _timed(self, index: int) -> Iterator[int]:
        started = time.monotonic()
        yield index
        self._flush()
        self._ask("set", f"done/{index}", str(time.monotonic() - started))

    def _wait_for_the_others(self, count: int) -> None:
        """Wait until every process has finished, or is lost: nobody else reports a token."""
        tokens, since = -1, time.monotonic()
        while True:
            late = {r for r in range(1, self.size) if not self._is_set(f"finished/{r}")}
            self._flush()  # after the look: of those that have finished, nothing is left to hear
            # Of those that were lost before, only one that has come back is worth waiting for.
            awaited = {r for r in late if r not in self.lost or self._is_set(f"started/{r}")}
            idle = time.monotonic() - since
            if not awaited or (
                idle > PATIENCE_SECONDS and idle > PATIENCE_TASKS * self._longest(count)
            ):
                break
            if self.tokens > tokens:
                tokens, since = self.tokens, time.monotonic()
            time.sleep(POLL_SECONDS)
        self.lost = late

    def _longest(self, count: int) -> float:
        done = [key for index in range(count) if self._is_set(key := f"done/{index}")]
        return max((float(self._ask("get", key)) for key in done), default=0.0)

    def _wait_for(self, key: str) -> None:
        while not self._is_set(key):
            time.sleep(POLL_SECONDS)

    def _is_set(self, key: str) -> bool:
        return bool(self._ask("check", [key]))

    def _ask(self, operation: str, *arguments: Any) -> Any:
        try:
            return getattr(self._keys, operation)(*arguments)
        except DistError as error:
            raise InputError(
                f"process {self.rank}: process 0 has ended; what is finished is stored, run the "
                "same command again for the rest"
            ) from error


@cache
def work_queue() -> WorkQueue:
    """Return the queue of this process: shared if there are several (WORLD_SIZE, RANK ...).

    Raises
    ------
    InputError
        The environment names several processes, and no way to meet them.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return WorkQueue()
    try:
        meeting, rank, size = next(rendezvous("env://", timeout=START_LIMIT))
        store = _keep(meeting) if rank == 0 else _find(meeting)
    except (ValueError, DistError) as error:
        raise InputError(
            f"WORLD_SIZE is {os.environ['WORLD_SIZE']}, and the processes do not find each other "
            f"({error}); start them with torchrun"
        ) from error
    return SharedQueue(store, rank, size, meeting)


def _port_key() -> str:
    # What was set before torchrun started all processes again is still there.
    return f"contamination/port/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}"


def _keep(meeting: Store) -> TCPStore:
    """Start the store of process 0, and tell where it is."""
    store = TCPStore(os.environ["MASTER_ADDR"], 0, is_master=True, wait_for_workers=False)
    meeting.set(_port_key(), str(store.port))
    return store


def _find(meeting: Store) -> TCPStore:
    """Connect to the store of process 0."""
    deadline = time.monotonic() + START_LIMIT.total_seconds()
    while True:
        port = int(meeting.get(_port_key()))
        try:
            return TCPStore(
                os.environ["MASTER_ADDR"], port, wait_for_workers=False, timeout=CONNECT_LIMIT
            )
        except DistError:
            # When a node joins, torchrun starts again and counts as before: the port is the old
            # one until process 0 has set it.
            if time.monotonic() > deadline:
                raise
