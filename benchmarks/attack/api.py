"""Bad calls of the Python API for `run.py`: statistics of p-values, and measures of membership.

One half of the attempts spoils an argument of a good call: the call has to be refused. The other
half multiplies all scores by a positive number, or adds one: no result without a unit may move.
"""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from api_calls import CALLS, Call

from contamination.errors import InputError

Rng = np.random.Generator
Way = Callable[[Any, Rng], Any]

SHIFTS = (-1e6, -3.0, 1e-3, 1.0, 1e6)
MOST_MOVED = 1e-4  # share of a result by which rounding may move it


def attack_api(rng: Rng, folder: Path) -> str:
    """Make a bad call, which has to be refused, or a good one in another unit."""
    names = list(CALLS)
    name = names[rng.integers(len(names))]
    call = CALLS[name]
    if call.without_unit is not None and rng.random() < 0.5:
        _change_unit(name, call, rng)
        return "survived"
    arguments = call.make(rng)
    kinds = list(call.kinds)
    spoilt = kinds[rng.integers(len(kinds))]
    ways = WAYS[call.kinds[spoilt]]
    way = ways[rng.integers(len(ways))]
    arguments[spoilt] = way(arguments[spoilt], rng)
    found = call.function(**arguments)
    raise AssertionError(f"{name}: {spoilt} = {arguments[spoilt]!r} gave {found}")


def _change_unit(name: str, call: Call, rng: Rng) -> None:
    """Compare a result with that of scores in another unit, or with a constant added."""
    assert call.without_unit is not None
    state = rng.bit_generator.state
    expected = call.without_unit(call.function(**call.make(rng)))
    rng.bit_generator.state = state
    arguments = call.make(rng)  # the same, with a generator that has drawn nothing
    scores = np.asarray(arguments[call.scaled])
    if rng.random() < 0.5:
        factor = 10.0 ** rng.uniform(-300, 300)
        change = f"times {factor}"
        arguments[call.scaled] = scores * factor
    else:
        shift = SHIFTS[rng.integers(len(SHIFTS))]
        change = f"plus {shift}"
        arguments[call.scaled] = scores + shift
    try:
        found = call.without_unit(call.function(**arguments))
    except InputError as error:
        raise AssertionError(f"{name}, scores {change}: {error}") from error
    if not np.allclose(found, expected, rtol=MOST_MOVED, atol=MOST_MOVED, equal_nan=True):
        raise AssertionError(f"{name}, scores {change}: {found} is not {expected}")


def _with_entry(values: Any, entry: Any, rng: Rng) -> np.ndarray:
    """Put an entry into a random place of an array, whose type changes with it."""
    array = np.array(values, dtype=np.asarray([entry]).dtype if _is_number(entry) else object)
    array[_place(array, rng)] = entry
    return array


def _place(array: np.ndarray, rng: Rng) -> tuple[int, ...]:
    """Draw a place of an array; not on the diagonal of pairs, which nothing reads."""
    place = rng.integers(array.shape)
    if array.ndim == 2 and place[0] == place[1]:
        place[1] = (place[1] + 1) % array.shape[1]
    return tuple(place.tolist())


def _is_number(entry: Any) -> bool:
    return isinstance(entry, float | complex)


def _nan_entry(values: Any, rng: Rng) -> Any:
    return _with_entry(values, float("nan"), rng)


def _infinite_entry(values: Any, rng: Rng) -> Any:
    return _with_entry(values, float("inf"), rng)


def _complex_entry(values: Any, rng: Rng) -> Any:
    return _with_entry(values, 1j, rng)


def _odd_entry(values: Any, rng: Rng) -> Any:
    odd = (None, "x", "1.5", b"1", 10**400, {}, [], [1.0, 2.0], datetime(2026, 1, 1), object())
    return _with_entry(values, odd[rng.integers(len(odd))], rng).tolist()


def _masked_entry(values: Any, rng: Rng) -> Any:
    masked = np.ma.masked_array(values, mask=False)
    masked[_place(masked, rng)] = np.ma.masked
    return masked if rng.random() < 0.5 else list(masked)


def _as_text(values: Any, rng: Rng) -> Any:
    return np.asarray(values).astype(str)


def _as_complex(values: Any, rng: Rng) -> Any:
    return np.asarray(values).astype(complex)


def _as_dates(values: Any, rng: Rng) -> Any:
    return np.asarray(values).astype(int).astype("datetime64[s]")


def _ragged(values: Any, rng: Rng) -> Any:
    return [*np.asarray(values).tolist(), [[0.0]]]


def _deeper(values: Any, rng: Rng) -> Any:
    return np.asarray(values)[None, None]


def _single(values: Any, rng: Rng) -> Any:
    return float(np.asarray(values).flat[0])


def _empty(values: Any, rng: Rng) -> Any:
    return np.asarray(values)[..., :0]


def _other_thing(values: Any, rng: Rng) -> Any:
    things = (None, "x", b"x", {}, {"a": 1}, set(), object(), float, iter([1.0]))
    return things[rng.integers(len(things))]


def _half_entry(values: Any, rng: Rng) -> Any:
    return _with_entry(values, 0.5, rng)


def _large_entry(values: Any, rng: Rng) -> Any:
    return _with_entry(values, 1e9, rng)


def _negative_entry(values: Any, rng: Rng) -> Any:
    return _with_entry(values, -1.0, rng)


def _one_of(*values: Any) -> tuple[Way, ...]:
    """Return ways to put each of these values in the place of an argument."""
    return tuple(partial(_instead, value) for value in values)


def _instead(value: Any, good: Any, rng: Rng) -> Any:
    return value


OF_ARRAYS: tuple[Way, ...] = (
    _nan_entry,
    _infinite_entry,
    _complex_entry,
    _odd_entry,
    _masked_entry,
    _as_text,
    _as_complex,
    _as_dates,
    _ragged,
    _deeper,
    _single,
    _empty,
    _other_thing,
)
OF_WHOLE_NUMBERS = (*OF_ARRAYS, _half_entry, _large_entry, _negative_entry)
OF_HITS = tuple(way for way in OF_ARRAYS if way is not _empty)  # no question, no hit: p = 1
NAN = float("nan")
HUGE = 10**400
NO_NUMBER = ("0.05", None, NAN, [0.05], 1j, HUGE, {}, np.ma.masked)
# What spoils an argument of each kind: functions of the good one, or values.
WAYS: dict[str, tuple[Way, ...]] = {
    "numbers": OF_ARRAYS,
    "whole": OF_WHOLE_NUMBERS,
    "hits": OF_HITS,
    "count": _one_of(-1, 1.5, 3.0, "3", None, NAN, float("inf"), -HUGE, [3], 1j),
    "level": _one_of(*NO_NUMBER, 0, 1, -0.1, 1.5, float("inf")),
    "share": _one_of(*NO_NUMBER, -0.1, 1.5, float("inf")),
    "threshold": _one_of(*NO_NUMBER),
    "ddof": _one_of(-1, 2, 100, 1.5, "1", None, NAN, [1]),
    "generator": _one_of(None, 0, np.random, np.random.RandomState(0), np.random.Generator),
}
