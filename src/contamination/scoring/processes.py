"""The processes of one run: torchrun or accelerate starts them, and each takes its share.

They meet twice: before the work, to agree on what is missing, and after it. A process
that dies in between ends the run; what it had finished is stored, and the next run does
the rest.
"""

import atexit
import os
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import cache
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from accelerate import PartialState
from tqdm import tqdm

from contamination.errors import InputError
from contamination.scoring.status import FAILURES, status_of

T = TypeVar("T")

# For the slowest process; one that has died is noticed at once.
PATIENCE = timedelta(days=30)


@cache
def processes() -> PartialState:
    """Return the number of this process, that of all of them, and the device of this one.

    Raises InputError if the environment names several processes that cannot meet.
    """
    size = int(os.environ.get("WORLD_SIZE", "1"))
    reason = ""
    try:
        # Without `cpu`, accelerate takes each of several processes on CPUs for one that
        # is alone.
        state = PartialState(cpu=size > 1 and not torch.accelerator.is_available())
    except (ValueError, dist.DistError) as error:
        reason = f" ({error})"
    if reason or state.num_processes != size:
        raise InputError(
            f"WORLD_SIZE is {size}, and the processes do not find each other{reason}; "
            "start them with torchrun"
        )
    if size > 1:
        atexit.register(_leave)
    return state


def own_parts(parts: Sequence[T], *, alone: bool = False) -> Sequence[T]:
    """Return the parts of a work that are this process's: every n-th, so that all end together.

    With `alone` the first process gets all of them, as for a model that is spread over
    all devices.
    """
    state = processes()
    if alone:
        return parts if state.is_main_process else []
    return parts[state.process_index :: state.num_processes]


def gather(work: Callable[[], T]) -> list[T]:
    """Do this process's work, wait for the others, and return the results of all, in order.

    If one fails, all raise: that one its own error, the others an InputError that names
    it. So they stay together, whether they go on with another model or end.
    Raises InputError if another process has ended.
    """
    state = processes()
    value = None
    failure = None
    try:
        value = work()
    except FAILURES as error:
        failure = error
    problem = None if failure is None else status_of(failure)
    outcomes: list[Any] = [(value, problem)] * state.num_processes
    try:
        if state.num_processes > 1:
            dist.all_gather_object(outcomes, (value, problem), group=_group())
    except RuntimeError as error:
        raise InputError(
            f"process {state.process_index}: another process has ended; what is "
            "finished is stored, run the same command again for the rest"
        ) from error
    if failure is not None:
        raise failure
    for number, (_, problem) in enumerate(outcomes):
        if problem:
            raise InputError(f"process {number} {problem}")
    return [result for result, _ in outcomes]


def run_in_all(work: Callable[[], T]) -> T:
    """Do the same in all processes, and return this process's result.

    If one process fails, all raise, as in `gather`.
    """
    results: list[T] = []

    def keep_result() -> None:  # that of another process need not travel
        results.append(work())

    gather(keep_result)
    return results[0]


def distribute(
    label: str,
    tasks: Sequence[Callable[[], T]],
    *,
    alone: bool = False,
) -> list[T]:
    """Distribute tasks over the processes, and return all results in the order of the tasks.

    Each process does every n-th task, or the first process all of them if it is
    `alone`. Results do not depend on the number of processes. If one process fails, all
    raise, as in `gather`. The label is the title of the progress bar of the first
    process.
    """
    state = processes()
    hidden = None if state.is_main_process else True  # None: on a terminal alone
    own = tqdm(own_parts(tasks, alone=alone), label, leave=False, disable=hidden)
    results = gather(lambda: [task() for task in own])
    if alone:
        return results[0]
    size = state.num_processes
    return [results[number % size][number // size] for number in range(len(tasks))]


@cache
def _group() -> Any:
    # Of its own: that of a GPU's network would give up on the slowest after ten
    # minutes.
    return dist.new_group(backend="gloo", timeout=PATIENCE)


def _leave() -> None:
    # While Python still runs: a thread of gloo that needs it afterwards aborts the
    # process.
    _group.cache_clear()
    if dist.is_initialized():
        dist.destroy_process_group()
