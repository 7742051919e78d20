"""Several processes stand here as threads that share a store in memory."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import chain, repeat
from types import SimpleNamespace

import pytest
from torch.distributed import DistError, HashStore, TCPStore

from contamination.errors import InputError
from contamination.scoring import queue as module
from contamination.scoring.queue import SharedQueue, WorkQueue, work_queue


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(module, "POLL_SECONDS", 0.001)
    monkeypatch.setattr(module, "GRACE_SECONDS", 0.3)


def queues(size: int) -> list[SharedQueue]:
    """Return the queues of that many processes."""
    store = HashStore()
    return [SharedQueue(store, rank, size) for rank in range(size)]


class Died(Exception):
    """What ends a thread that stands for a process."""


def work(queue, count: int, during=lambda queue, index: None, decide=lambda: None) -> list[int]:
    """Do the tasks of one process; return which they were."""
    done = []
    queue.agree(decide)
    for index in queue.tasks(count, note=f"device {queue.rank}", show=lambda tokens: None):
        during(queue, index)
        queue.report(10)
        done.append(index)
    return done


def together(processes, *arguments) -> list:
    """Run `work` in all of them at once; a process that died gives None."""

    def guarded(queue):
        try:
            return work(queue, *arguments)
        except Died:
            return None

    with ThreadPoolExecutor(len(processes)) as threads:
        return list(threads.map(guarded, processes))


def test_a_process_alone_does_everything_in_order():
    queue, shown = WorkQueue(), []
    assert queue.agree(lambda: [1, 2]) == [1, 2]
    for _ in queue.tasks(3, note="cpu", show=shown.append):
        queue.report(5)
        queue.report(2)
    assert shown == [5, 7, 12, 14, 19, 21]
    assert (queue.rank, queue.size, queue.lost, queue.notes) == (0, 1, set(), {0: "cpu"})
    assert list(queue.tasks(2, note="cpu", show=shown.append)) == [0, 1]


@pytest.mark.parametrize("count", [0, 1, 2, 40])
def test_every_task_is_done_once_by_someone(count):
    done = together(queues(3), count)
    assert sorted(index for tasks in done for index in tasks) == list(range(count))


def test_all_agree_with_process_0():
    def agreed(queue):
        return queue.agree(lambda: {"parts": [[queue.rank, "é"]]})

    with ThreadPoolExecutor(3) as threads:
        assert list(threads.map(agreed, queues(3))) == [{"parts": [[0, "é"]]}] * 3


def test_what_process_0_complains_of_all_complain_of():
    def fails():
        raise InputError("no such thing")

    def told(queue):
        with pytest.raises(InputError, match=r"^no such thing$"):
            queue.agree(fails if queue.rank == 0 else list)
        return True

    with ThreadPoolExecutor(3) as threads:
        assert list(threads.map(told, queues(3))) == [True] * 3


def test_a_slow_process_gets_fewer_tasks():
    """Process 1 does not finish its first task before process 0 has done all the others."""
    taken, others_done = threading.Event(), threading.Event()
    finished = []

    def during(queue, index):
        if queue.rank == 1:
            taken.set()
            assert others_done.wait(30)
        else:
            assert taken.wait(30)
            finished.append(index)
            if len(finished) == 9:
                others_done.set()

    done = together(queues(2), 10, during)
    assert [len(tasks) for tasks in done] == [9, 1]


def test_process_0_knows_the_devices_and_tokens_of_all():
    processes = queues(3)
    together(processes, 7)
    assert processes[0].notes == {0: "device 0", 1: "device 1", 2: "device 2"}
    assert processes[0].lost == set()
    assert processes[0].tokens == 70


def test_tokens_of_one_that_has_finished_before_the_look_count():
    queue = queues(2)[0]
    queue.agree(lambda: None)
    queue._keys.add("tokens", 30)
    queue._keys.set("finished/1", "device 1")
    queue._wait_for_the_others(0)
    assert queue.tokens == 30


def test_nobody_leaves_before_all_tasks_are_done():
    done, lock = [], threading.Lock()

    def during(queue, index):
        with lock:
            done.append(index)

    def leaves(queue):
        work(queue, 30, during)
        return len(done)

    with ThreadPoolExecutor(3) as threads:
        assert list(threads.map(leaves, queues(3))) == [30] * 3


def test_process_0_stays_until_the_others_have_heard(monkeypatch):
    """Its store ends with it: process 1 is late to look, and finds it still there."""
    monkeypatch.setattr(module, "GRACE_SECONDS", 60.0)
    first, second = queues(2)
    asked, wait_for = [], second._wait_for
    looked_twice = threading.Event()

    def ask(operation, *arguments, real=first._ask):
        asked.append((operation, *arguments))
        if asked.count(("add", "left", 0)) == 2:
            looked_twice.set()
        return real(operation, *arguments)

    def waits(key):
        if key == "complete":
            assert looked_twice.wait(30)
        wait_for(key)

    monkeypatch.setattr(first, "_ask", ask)
    monkeypatch.setattr(second, "_wait_for", waits)
    done = together([first, second], 3)
    assert sorted(index for tasks in done for index in tasks) == [0, 1, 2]


class TestLostProcesses:
    @pytest.fixture(autouse=True)
    def impatient(self, monkeypatch):
        monkeypatch.setattr(module, "PATIENCE_SECONDS", 0.7)
        monkeypatch.setattr(module, "PATIENCE_TASKS", 0.0)

    @pytest.mark.parametrize("lost", [{1}, {1, 2}])
    def test_process_0_does_what_they_left_behind(self, lost):
        processes, taken = queues(3), {rank: threading.Event() for rank in lost}

        def during(queue, index):
            if queue.rank in lost:
                taken[queue.rank].set()
                raise Died
            assert all(event.wait(30) for event in taken.values())

        done = together(processes, 12, during)
        assert sorted(i for tasks in done if tasks is not None for i in tasks) == list(range(12))
        assert [rank for rank, tasks in enumerate(done) if tasks is None] == sorted(lost)
        assert processes[0].lost == lost
        assert sorted(processes[0].notes) == sorted({0, 1, 2} - lost)

    def test_the_next_job_does_not_wait_for_them(self, monkeypatch):
        processes, taken = queues(2), threading.Event()

        def during(queue, index):
            if queue.rank == 1:
                taken.set()
                raise Died
            assert taken.wait(30)

        together(processes, 4, during)
        monkeypatch.setattr(module, "PATIENCE_SECONDS", 1e9)
        assert work(processes[0], 5) == list(range(5))
        assert processes[0].lost == {1}

    def test_one_that_comes_back_works_again(self, monkeypatch):
        """A process that was slow, not dead, finishes its task once more, and then goes on."""
        processes = queues(2)
        taken, given_up, back = threading.Event(), threading.Event(), threading.Event()

        def slow_first(queue, index):
            (taken.set if queue.rank == 1 else taken.wait)()
            if queue.rank == 1:
                assert given_up.wait(30)

        def slow_second(queue, index):
            """Process 0 holds its first task until process 1 has one, too."""
            given_up.set()
            (back.set if queue.rank == 1 else back.wait)()

        def both_jobs(queue):
            first = work(queue, 4, slow_first)
            if queue.rank == 0:
                assert queue.lost == {1}
                monkeypatch.setattr(module, "PATIENCE_SECONDS", 1e9)
            return first, work(queue, 20, slow_second)

        with ThreadPoolExecutor(2) as threads:
            (first, mine), (late, theirs) = threads.map(both_jobs, processes)
        assert sorted(first) == [0, 1, 2, 3]
        assert len(late) == 1
        assert sorted(mine + theirs) == list(range(20))
        assert theirs
        assert processes[0].lost == set()

    def test_patience_grows_with_the_longest_task(self):
        queue = queues(2)[0]
        queue.agree(lambda: None)
        queue._keys.set("done/1", "0.5")
        queue._keys.set("done/4", "7.25")
        assert [queue._longest(count) for count in (1, 4, 6)] == [0.0, 0.5, 7.25]

    @pytest.mark.parametrize(("task", "patience"), [(0.0, 10.0), (2.0, 10.0), (100.0, 300.0)])
    def test_it_lasts_so_long_without_a_token_from_anyone(self, monkeypatch, task, patience):
        clock = [0.0]

        def sleep(seconds):
            clock[0] += 1.0
            if clock[0] == 50.0:
                queue._keys.add("tokens", 1)

        monkeypatch.setattr(
            module, "time", SimpleNamespace(sleep=sleep, monotonic=lambda: clock[0])
        )
        monkeypatch.setattr(module, "PATIENCE_SECONDS", 10.0)
        monkeypatch.setattr(module, "PATIENCE_TASKS", 3.0)
        queue = queues(2)[0]
        queue.agree(lambda: None)
        queue._keys.set("done/0", str(task))
        queue._wait_for_the_others(1)
        assert queue.lost == {1}
        # The token came in time only where patience had not ended before.
        assert clock[0] == pytest.approx(patience + (50.0 if patience > 50.0 else 0.0), abs=2)

    def test_without_process_0_the_others_end_with_a_message(self):
        code = (
            "from torch.distributed import DistError, HashStore, TCPStore\n"
            "store = TCPStore('127.0.0.1', 0, is_master=True, wait_for_workers=False)\n"
            "print(store.port, flush=True)\n"
            "input()\n"
        )
        command = [sys.executable, "-c", code]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as first:
            port = int(first.stdout.readline())
            store = TCPStore("127.0.0.1", port, wait_for_workers=False)
            store.set("job-1/agreed", '{"value": null}')
            queue = SharedQueue(store, 1, 2)

            def during(queue, index):
                first.kill()
                first.wait()

            with pytest.raises(InputError, match=r"process 0 has ended.*run the same command"):
                work(queue, 3, during)


class TestWorkQueue:
    @pytest.fixture(autouse=True)
    def fresh(self):
        work_queue.cache_clear()
        yield
        work_queue.cache_clear()

    @pytest.mark.parametrize("environment", [{}, {"WORLD_SIZE": "1", "RANK": "0"}])
    def test_a_process_alone_needs_no_store(self, monkeypatch, environment):
        monkeypatch.delenv("WORLD_SIZE", raising=False)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        assert type(work_queue()) is WorkQueue
        assert work_queue() is work_queue()

    def test_several_processes_that_cannot_meet_are_told(self, monkeypatch):
        monkeypatch.setenv("WORLD_SIZE", "2")
        for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
            monkeypatch.delenv(name, raising=False)
        with pytest.raises(InputError, match=r"WORLD_SIZE is 2.*start them with torchrun"):
            work_queue()


class TestMeeting:
    """Process 0 tells in one store where it keeps the other."""

    @pytest.fixture(autouse=True)
    def here(self, monkeypatch):
        monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
        monkeypatch.setattr(module, "CONNECT_LIMIT", timedelta(seconds=0.5))

    def test_all_find_the_store_of_process_0(self):
        meeting = HashStore()
        kept = module._keep(meeting)
        assert module._find(meeting).add("count", 2) == 2
        assert kept.add("count", 0) == 2

    def test_after_a_restart_it_is_the_new_one(self, monkeypatch):
        meeting = HashStore()
        monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "0")
        before = module._keep(meeting)
        monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
        with ThreadPoolExecutor(1) as threads:
            found = threads.submit(module._find, meeting)  # before process 0 has told
            kept = module._keep(meeting)
            found.result().add("count", 1)
        assert (before.add("count", 0), kept.add("count", 0)) == (0, 1)

    def test_a_port_where_nobody_listens_any_more_is_given_up(self):
        closed = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False).port
        kept = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        answers = chain([str(closed)], repeat(str(kept.port)))
        meeting = SimpleNamespace(get=lambda key: next(answers).encode())
        module._find(meeting).add("count", 1)
        assert kept.add("count", 0) == 1

    def test_it_is_not_tried_for_ever(self, monkeypatch):
        monkeypatch.setattr(module, "START_LIMIT", timedelta(seconds=0))
        closed = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False).port
        with pytest.raises(DistError):
            module._find(SimpleNamespace(get=lambda key: str(closed).encode()))
