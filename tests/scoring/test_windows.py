"""Windows against a loop over the tokens of a sequence, for every small length and context."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from contamination.scoring.windows import PADDING, Batches, Job, Window, windows, windows_of

START = 99


def scored_alone(length: int, context: int) -> list[tuple[int, int]]:
    """(start, token) in the order of scoring: windows begin every context // 2, in a plain loop."""
    result: list[tuple[int, int]] = []
    begin = 0
    while len(result) < length:
        while len(result) < min(begin + context, length):
            result.append((begin, len(result)))
        begin += context // 2
    return result


@pytest.mark.parametrize("context", range(2, 13))
def test_every_length_agrees_with_the_loop(context):
    for length in range(1, 61):
        found = list(windows(length, context))
        assert [(w.start, t) for w in found for t in range(w.first, w.stop)] == scored_alone(
            length, context
        )
        for window in found:
            assert window.start <= window.first < window.stop <= window.start + context
            for token in range(window.first, window.stop):
                # Inputs before the token, without the start token.
                assert token - max(window.start - 1, 0) >= min(token, context // 2)


@given(st.lists(st.booleans(), max_size=60), st.integers(2, 12))
@example([], 4)
@example([False] * 40, 8)
@example([token in (1, 26) for token in range(40)], 8)  # only the first and the sixth window
def test_masked_windows_are_those_of_the_whole_from_the_first_wanted_token_to_the_last(
    mask, context
):
    wanted, expected = np.array(mask, dtype=bool), []
    for window in windows(len(wanted), context):
        hits = [t for t in range(window.first, window.stop) if wanted[t]]
        if hits:
            expected.append(Window(window.start, hits[0], hits[-1] + 1))
    found = list(windows_of(wanted, context))
    assert found == expected
    assert [t for w in found for t in range(w.first, w.stop) if wanted[t]] == (
        np.flatnonzero(wanted).tolist()
    )


def jobs_of(widths: list[int]) -> list[Job]:
    return [Job(i, Window(0, 0, width)) for i, width in enumerate(widths)]


def area(batch: list[Job]) -> int:
    return len(batch) * max(j.window.width for j in batch)


WIDTHS = st.lists(st.integers(1, 40), max_size=60)
BUDGET = st.integers(1, 200)


@given(WIDTHS, BUDGET)
def test_every_job_is_done_once_longest_first_within_the_budget(widths, budget):
    jobs = jobs_of(widths)
    batches = list(Batches(jobs, budget))
    flat = [j for batch in batches for j in batch]
    assert sorted(flat) == jobs
    assert [j.window.width for j in flat] == sorted(widths, reverse=True)
    for batch in batches:
        assert area(batch) <= budget or len(batch) == 1
    for batch, following in pairwise(batches):
        # Full, or at least half full where the next one would have to be padded.
        width, size = batch[0].window.width, budget // batch[0].window.width
        padded = following[0].window.width < (1 - PADDING) * width
        assert len(batch) >= size or (len(batch) >= size // 2 and padded)


@given(WIDTHS, st.integers(40, 400), st.integers(1, 40))
@example([6, 6], 40, 6)  # the last batch is split
def test_a_machine_with_little_memory_gets_everything_done(widths, budget, room):
    """A batch fits if its area is at most `room` or it is a single job."""
    jobs = jobs_of(widths)
    batches = Batches(jobs, budget)
    done = []
    for batch in batches:
        if area(batch) > room and len(batch) > 1:
            before = batches.batch_tokens
            batches.split(batch)
            assert batches.batch_tokens <= before // 2
        else:
            done += batch
    assert sorted(done) == jobs
    assert [j.window.width for j in done] == sorted(widths, reverse=True)
