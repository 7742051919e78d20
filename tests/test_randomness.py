"""Streams of random numbers: no two uses share one, and nobody opens one without a name."""

import ast
import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import contamination
from contamination.errors import InputError
from contamination.randomness import KeyedStream, derived_seed, random_stream

ROOT = Path(__file__).parents[1]
SOURCE = Path(contamination.__file__).parents[1]  # of both packages
OPENERS = {"random_stream": 1, "derived_seed": 1, "store_stream": 1}  # place of the name

KEYS = st.lists(st.integers(0, 20) | st.text('01,[]" a', max_size=4), max_size=3)
PATHS = st.tuples(st.integers(0, 3) | st.integers(0, 2**200), st.text("ab 01", max_size=4), KEYS)


def first_draws(seed, name, *keys) -> tuple[int, ...]:
    return tuple(random_stream(seed, name, *keys).integers(1 << 62, size=3).tolist())


@given(PATHS, PATHS)
def test_streams_are_the_same_exactly_if_seed_name_and_keys_are(one, other):
    same = first_draws(*one[:2], *one[2]) == first_draws(*other[:2], *other[2])
    assert same == (one == other)


def test_numbers_of_numpy_are_numbers():
    assert first_draws(np.int64(3), "a", np.int32(4)) == first_draws(3, "a", 4)
    assert 0 <= derived_seed(3, "a") < 2**32
    assert derived_seed(3, "a") != derived_seed(3, "b")


def _sources() -> dict[str, str]:
    """Text of every module and notebook."""
    found = {str(path): path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")}
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        found[str(path)] = "\n".join(code)
    return found


def test_a_name_is_used_in_one_place():
    """So no two places of a run share a stream."""
    places = defaultdict(list)
    for file, text in _sources().items():
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            if (place := OPENERS.get(node.func.id)) and not file.endswith("randomness.py"):
                name = node.args[place]
                if isinstance(name, ast.Constant):
                    places[name.value].append(f"{file}:{node.lineno}")
                else:
                    # It hands on the names of its streams.
                    assert file.endswith("shard_scores.py")
    assert len(places) > 20
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


KEY = bytes(range(32))


def test_a_word_that_would_favour_small_numbers_is_passed_over(monkeypatch):
    from contamination import randomness

    top = (1 << 64) - 1  # 2^64 = 1 mod 3: of all words, this one is too many
    words = iter([top, top - 1])
    monkeypatch.setattr(randomness, "_keyed_words", lambda *_: words)
    assert KeyedStream(KEY, "a").below(3) == 2  # 2^64 - 2 is 2 mod 3


def test_what_no_stream_can_be_opened_with_is_refused():
    with pytest.raises(InputError, match="120 bits"):
        KeyedStream(bytes(15), "a")
    with pytest.raises(InputError, match="seed is -1"):
        random_stream(-1, "a")
