"""Input checks of all statistics: they refuse what is not an array of finite numbers.

Each check returns a NumPy array or a Python number, and raises `InputError` with one
line that names the argument, the place and the fix. Masked entries, complex numbers,
text, ragged lists and numbers that no float holds are refused rather than converted.
"""

import math
import operator
from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contamination.errors import InputError

_NUMERIC_KINDS = "biuf"  # bool, whole numbers with and without a sign, floats
_LARGEST_WHOLE = 2**53  # floats above it have no odd numbers
_LARGEST_COUNT = 10**8  # of draws: more take days, or do not fit into memory


def as_floats(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return `values` as a float64 array of any shape, finite or not.

    Raises InputError for masked entries, complex numbers, text, ragged lists and other
    objects.
    """
    try:
        masked = _has_mask(values)
        array = np.asarray(values)
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        # A list that holds itself raises RuntimeError.
        message = f"{name} is not an array of numbers: give rows of equal length"
        raise InputError(message) from error
    if masked:
        raise InputError(f"{name} has masked entries: leave them out, or fill them")
    if array.dtype == object and all(isinstance(entry, Real) for entry in array.flat):
        try:
            array = array.astype(np.float64)
        except OverflowError as error:
            message = f"{name} has a number that no float holds: rescale it"
            raise InputError(message) from error
    if array.dtype.kind not in _NUMERIC_KINDS:
        raise InputError(f"{name} holds {array.dtype} entries: give real numbers")
    with np.errstate(over="ignore"):  # a long double becomes inf, and is named as such
        return array.astype(np.float64)


def check_finite(array: NDArray[np.float64], name: str) -> None:
    """Raise InputError, with the place of the first one, if an entry is not finite."""
    finite = np.isfinite(array)
    if finite.all():
        return
    place = np.argwhere(~finite)[0].tolist()
    raise InputError(
        f"{name}{place} is {array[tuple(place)]}: measure it again, or omit it",
    )


def as_log_probs(
    log_probs: ArrayLike,
    *,
    ndim: int,
    min_shards: int = 1,
) -> NDArray[np.float64]:
    """Return log-probabilities, (m+1,) or (r, m+1), as a finite float64 array, canonical first.

    Raises InputError for another number of dimensions (1 or 2), fewer shards r than
    `min_shards`, no shuffled ordering, or what is not a finite number.
    """
    array = as_floats(log_probs, "log_probs")
    if array.ndim != ndim or array.shape[-1] < 2:
        expected = "(m+1,)" if ndim == 1 else "(r, m+1)"
        raise InputError(
            f"log_probs has shape {array.shape}: this test takes {expected}, the "
            "canonical ordering first, then at least 1 permutation"
        )
    if ndim == 2 and len(array) < min_shards:
        raise InputError(
            f"log_probs has {len(array)} shard(s): this test needs at least "
            f"{min_shards}; split the set into more shards"
        )
    check_finite(array, "log_probs")
    return array


def as_numbers(
    values: ArrayLike,
    name: str,
    least: float,
    most: float,
) -> NDArray[np.float64]:
    """Return `values` as a float64 array (n,), n of 1 or more, each from `least` to `most`.

    Raises InputError for another shape, or the first entry that is not finite or within
    the limits.
    """
    array = as_floats(values, name)
    if array.ndim != 1 or not len(array):
        raise InputError(
            f"{name} has shape {array.shape}: give a list of one or more, shape (n,)",
        )
    valid = np.isfinite(array) & (array >= least) & (array <= most)
    if not valid.all():
        place = int(np.argmin(valid))
        advice = f"give finite numbers{_limits(least, most)}"
        raise InputError(f"{name}[{place}] is {array[place]}: {advice}")
    return array


def as_array(
    values: ArrayLike,
    name: str,
    shape: tuple[int | None, ...],
) -> NDArray[np.float64]:
    """Return `values` as a finite float64 array of a shape, in which None is any length.

    Raises InputError for another shape, or what is not a finite number.
    """
    array = as_floats(values, name)
    _check_shape(array, name, shape)
    check_finite(array, name)
    return array


def as_whole_numbers(
    values: ArrayLike,
    name: str,
    shape: tuple[int | None, ...],
    *,
    least: int = -_LARGEST_WHOLE,
    most: int = _LARGEST_WHOLE,
) -> NDArray[np.int64]:
    """Return `values` as an int64 array of a shape, in which None is any length.

    Raises InputError for another shape, or the first entry that is not a whole number
    from `least` to `most`.
    """
    array = as_floats(values, name)
    _check_shape(array, name, shape)
    valid = np.isfinite(array) & (array >= least) & (array <= most)
    valid &= array == np.rint(array)
    if not valid.all():
        place = np.argwhere(~valid)[0].tolist()
        limits = f"give whole numbers from {least} to {most}"
        raise InputError(f"{name}{place} is {array[tuple(place)]:g}: {limits}")
    return array.astype(np.int64)


def as_booleans(
    values: ArrayLike,
    name: str,
    shape: tuple[int | None, ...],
) -> NDArray[np.bool_]:
    """Return `values`, each true or false, or 1 or 0, as a bool array of a shape.

    In the shape, None is any length. Raises InputError for another shape or another
    value.
    """
    return as_whole_numbers(values, name, shape, least=0, most=1).astype(np.bool_)


def as_codes(labels: ArrayLike, name: str) -> NDArray[np.intp]:
    """Return a whole number for each label (n,), equal where the labels are.

    Raises InputError for labels that cannot be compared, another shape, or no label.
    """
    try:
        values, codes = np.unique(np.asarray(labels), return_inverse=True)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} cannot be compared: give numbers or texts") from error
    if codes.ndim != 1 or len(values) == 0:
        raise InputError(f"{name} has shape {codes.shape}: give one or more, shape (n,)")
    return codes


def as_count(value: int, name: str, least: int, most: int = _LARGEST_COUNT) -> int:
    """Return a whole number from `least` to `most`; raise InputError for anything else."""
    try:
        count = operator.index(value)
    except TypeError:
        count = None
    if count is None or count < least:
        raise InputError(
            f"{name} is {value!r:.40}: give a whole number of {least} or more",
        )
    if count > most:
        raise InputError(f"{name} is too large: give {most:,} or less")
    return count


def as_list(values: Iterable[Any], name: str) -> list[Any]:
    """Return the entries of `values`, whatever they are.

    Raises InputError where it has none.
    """
    try:
        return list(values)
    except TypeError as error:
        raise InputError(f"{name} is {values!r:.40}: give a list") from error


def as_names(names: Iterable[Any] | None, count: int) -> tuple[str, ...]:
    """Return a name for each of `count` scores; "0", "1" and so on if none is given.

    Raises InputError for another number of names.
    """
    if names is None:
        return tuple(str(number) for number in range(count))
    labels = tuple(str(name) for name in as_list(names, "names"))
    if len(labels) != count:
        raise InputError(f"names has {len(labels)} entries: give {count}, one for each score")
    return labels


def as_scalar(value: float, name: str) -> float:
    """Return one number, infinite or not.

    Raises InputError for NaN and anything else.
    """
    array = as_floats(value, name)
    if array.ndim or np.isnan(array):
        raise InputError(f"{name} is {value!r:.40}: give one number")
    return float(array)


def as_number(value: float, name: str, least: float, most: float) -> float:
    """Return a finite number from `least` to `most`; raise InputError for anything else."""
    return float(as_numbers([value], name, least, most)[0])


def as_level(value: float, name: str) -> float:
    """Return a level strictly between 0 and 1. Raises InputError for anything else."""
    array = as_floats(value, name)
    if array.ndim or not 0 < float(array) < 1:
        raise InputError(
            f"{name} is {value!r:.40}: give a number between 0 and 1, such as 0.05",
        )
    return float(array)


def check_generator(rng: np.random.Generator) -> None:
    """Raise InputError unless `rng` is a NumPy generator."""
    if not isinstance(rng, np.random.Generator):
        raise InputError(f"rng is {rng!r:.40}: give a numpy.random.Generator")


def check_bounds(bounds: Sequence[tuple[int, int]]) -> NDArray[np.int64]:
    """Return shards (start, stop) that cover 0 to n one after the other, int64 (r, 2).

    Raises InputError for anything else.
    """
    array = as_whole_numbers(bounds, "bounds", (None, 2), least=0)
    starts = array[:, 0]
    stops = array[:, 1]
    contiguous = len(array) > 0 and starts[0] == 0 and (starts[1:] == stops[:-1]).all()
    if not contiguous or (stops <= starts).any():
        raise InputError(
            "bounds are not contiguous shards from 0: give (0, a), (a, b) and so on",
        )
    return array


def _limits(least: float, most: float) -> str:
    """Return the limits of a number as a phrase; an infinite one is no limit."""
    if math.isinf(least) and math.isinf(most):
        return ""
    if math.isinf(least):
        return f" of at most {most:g}"
    if math.isinf(most):
        return f" of at least {least:g}"
    return f" from {least:g} to {most:g}"


def _check_shape(array: NDArray[Any], name: str, shape: tuple[int | None, ...]) -> None:
    sizes = zip(array.shape, shape, strict=False)
    fits = array.ndim == len(shape)
    if not fits or not all(expected in (None, size) for size, expected in sizes):
        lengths = ["n" if size is None else str(size) for size in shape]
        expected_shape = ", ".join(lengths) + ("," if len(lengths) == 1 else "")
        raise InputError(f"{name} has shape {array.shape}: give ({expected_shape})")


def _has_mask(values: ArrayLike) -> bool:
    """Return whether an array, or one in a list, has entries that are masked."""
    if np.ma.isMaskedArray(values):
        return bool(np.ma.is_masked(values))
    if isinstance(values, list | tuple):
        return any(_has_mask(entry) for entry in values if not isinstance(entry, float))
    return False
