"""Streams of random numbers: one tree for each seed, whose branches have names.

A seed alone is no stream: NumPy pads it with zeros, so that `default_rng(s)` is
`default_rng([s, 0])`, and what two parts of a run draw from them is the same. Here
every use has a name, which is hashed, and no two uses share draws by accident. The
linter forbids `default_rng` everywhere else.

Draws that a stranger has to be able to repeat in another language, and that nobody may
guess, come from a `KeyedStream` instead, which is SHA-256 and nothing of NumPy.
"""

import hashlib
import hmac
import json
from collections.abc import Iterator

import numpy as np

from contamination.errors import InputError


def random_stream(seed: int, name: str, *keys: int | str) -> np.random.Generator:
    """Open a stream; streams of another seed, name or key are independent of it.

    It is that of `SeedSequence` (O'Neill's hash, in NumPy) with the SHA-256 of name and
    keys as spawn key, so no two of them meet unless SHA-256 collides.

    Parameters
    ----------
    seed
        Seed of all streams of a run, 0 or more.
    name
        Says what is drawn, in words, and has one place in the code.
    keys
        Tell apart the streams of that name, such as those of shards.

    Raises
    ------
    InputError
        For a negative seed.

    Examples
    --------
    >>> random_stream(0, "coins", 1).integers(2, size=4)
    array([1, 1, 0, 0])
    """
    if seed < 0:
        raise InputError(f"seed is {seed}: give a whole number of at least 0")
    # As JSON, ("a", 11) is not ("a", 1, 1), and 1 not "1".
    plain_keys = [key if isinstance(key, str) else int(key) for key in keys]
    path = json.dumps([name, *plain_keys])
    words = np.frombuffer(hashlib.sha256(path.encode()).digest(), dtype="<u4").tolist()
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=words))


def derived_seed(seed: int, name: str, *keys: int | str) -> int:
    """Return 32 bits of the stream of that name, for a generator that is not NumPy's."""
    return int(random_stream(seed, name, *keys).integers(1 << 32))


class KeyedStream:
    """Whole numbers from a secret key: HMAC-SHA256 (RFC 2104) of name and counter.

    Block c = 0, 1, 2 ... is the HMAC of the name in UTF-8, a zero byte, and c as 8
    bytes, big end first. Each block is four words of 64 bits, big end first, which are
    used up in turn. Whoever has the key gets the same numbers; without it they cannot
    be told from fair draws, as far as is known of SHA-256. Raises InputError for a key
    of less than 128 bits, which could be guessed.
    """

    def __init__(self, key: bytes, name: str) -> None:
        if len(key) < 16:
            raise InputError(
                f"a key of {8 * len(key)} bits can be guessed; give 128 or more",
            )
        self._words = _keyed_words(key, name.encode())

    def below(self, bound: int) -> int:
        """Draw a number from 0 to bound - 1, each as likely: word mod bound.

        The bound is at most 2^64.
        The words from the largest multiple of the bound on, which would favour small
        numbers, are passed over.
        """
        fair = (1 << 64) - (1 << 64) % bound
        return next(word for word in self._words if word < fair) % bound

    def permutation(self, count: int) -> list[int]:
        """Draw an order of 0 ... count - 1, each as likely (Fisher and Yates).

        For i = count - 1 down to 1, entry i changes places with entry `below(i + 1)`.
        """
        order = list(range(count))
        for i in range(count - 1, 0, -1):
            j = self.below(i + 1)
            order[i], order[j] = order[j], order[i]
        return order


def _keyed_words(key: bytes, name: bytes) -> Iterator[int]:
    counter = 0
    while True:
        block = hmac.digest(key, name + b"\0" + counter.to_bytes(8, "big"), "sha256")
        yield from (int.from_bytes(block[i : i + 8], "big") for i in range(0, 32, 8))
        counter += 1
