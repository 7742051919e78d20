"""Windows against a loop over the tokens of a sequence, for every small length and context."""

from itertools import chain, pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from contamination.scoring.windows import PADDING, Window, take_batch, windows

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
        found = list(windows([length], context))
        scored = []
        for window in found:
            scored += [(window.start, token) for token in range(window.first, window.stop)]
        assert scored == scored_alone(length, context)
        for window in found:
            assert window.start <= window.first < window.stop <= window.start + context
            for token in range(window.first, window.stop):
                # Inputs before the token, without the start token.
                assert token - max(window.start - 1, 0) >= min(token, context // 2)


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60))), st.integers(2, 12))
@example([(0, 0)], 4)
@example([(40, 40), (40, 26), (40, 1)], 8)
def test_windows_before_the_first_token_asked_for_are_left_out(pairs, context):
    lengths = [n for n, _ in pairs]
    firsts = [first for _, first in pairs]
    expected = []
    for i, (length, first) in enumerate(pairs):
        whole = [w._replace(sequence=i) for w in windows([length], context)]
        expected += [w._replace(first=max(w.first, first)) for w in whole if w.stop > first]
    assert list(windows(lengths, context, firsts)) == expected
    scored = []
    for window in expected:
        scored += [(window.sequence, token) for token in range(window.first, window.stop)]
    wanted = []
    for i, (length, first) in enumerate(pairs):
        wanted += [(i, token) for token in range(first, length)]
    assert scored == wanted


def jobs_of(widths: list[int]) -> list[Window]:
    return [Window(i, 0, 0, width) for i, width in enumerate(widths)]


def area(batch: list[Window]) -> int:
    return len(batch) * max(j.width for j in batch)


WIDTHS = st.lists(st.integers(1, 40), max_size=60)
BUDGET = st.integers(1, 200)


@given(WIDTHS, BUDGET)
def test_every_job_is_done_once_longest_first_within_the_budget(widths, budget):
    jobs = jobs_of(widths)
    left = sorted(jobs, key=lambda j: (j.width, j))
    batches = []
    while left:
        batches.append(take_batch(left, budget))
    flat = list(chain.from_iterable(batches))
    assert sorted(flat) == jobs
    assert [j.width for j in flat] == sorted(widths, reverse=True)
    for batch in batches:
        assert area(batch) <= budget or len(batch) == 1
    for batch, following in pairwise(batches):
        # Full, or at least half full where the next one would have to be padded.
        width = batch[0].width
        size = budget // batch[0].width
        padded = following[0].width < (1 - PADDING) * width
        assert len(batch) >= size or (len(batch) >= size // 2 and padded)


@given(WIDTHS, st.integers(40, 400), st.integers(1, 40))
@example([6, 6], 40, 6)  # the last batch is split
def test_a_machine_with_little_memory_gets_everything_done(widths, budget, room):
    """A batch fits if its area is at most `room` or it is a single job."""
    jobs = jobs_of(widths)
    left = sorted(jobs, key=lambda j: (j.width, j))
    done = []
    while left:
        batch = take_batch(left, budget)
        if area(batch) > room and len(batch) > 1:  # as `TransformersScorer.results` does
            before = budget
            budget = batch[0].width * (len(batch) // 2)
            left.extend(reversed(batch))
            assert budget <= before // 2
        else:
            done += batch
    assert sorted(done) == jobs
    assert [j.width for j in done] == sorted(widths, reverse=True)
