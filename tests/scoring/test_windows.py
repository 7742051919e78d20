"""Windows against a loop over the tokens of a sequence, for every small length and context."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contamination.scoring.windows import Window, windows, windows_of

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


def test_a_sequence_of_no_tokens_has_nothing_to_score():
    assert [w for w in windows(0, 4) if w.stop > w.first] == []
    assert list(windows_of(np.zeros(0, dtype=bool), 4)) == []


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_inputs_are_the_tokens_before_each_target(dtype):
    ids = np.arange(10, 23, dtype=dtype)
    stream = [START, *ids.tolist()]  # the token before token t is stream[t]
    for window in windows(len(ids), 6):
        inputs = window.inputs(ids, START)
        assert len(inputs) == window.width
        assert inputs.tolist() == stream[window.start : window.stop]


@st.composite
def masks(draw) -> np.ndarray:
    return np.array(draw(st.lists(st.booleans(), max_size=60)), dtype=bool)


@given(masks(), st.integers(2, 12))
def test_masked_windows_are_those_of_the_whole_cut_behind_the_last_wanted_token(wanted, context):
    expected = []
    for window in windows(len(wanted), context):
        hits = [t for t in range(window.first, window.stop) if wanted[t]]
        if hits:
            expected.append(Window(window.start, window.first, hits[-1] + 1))
    found = list(windows_of(wanted, context))
    assert found == expected
    assert [t for w in found for t in range(w.first, w.stop) if wanted[t]] == (
        np.flatnonzero(wanted).tolist()
    )


def test_nothing_wanted_needs_no_window():
    assert list(windows_of(np.zeros(40, dtype=bool), 8)) == []


def test_windows_without_wanted_tokens_are_skipped_and_the_last_is_cut():
    wanted = np.zeros(40, dtype=bool)
    wanted[[1, 26]] = True
    assert list(windows_of(wanted, 8)) == [Window(0, 0, 2), Window(20, 24, 27)]
