"""Streams of random numbers: one tree for each seed, whose branches have names.

A seed alone is no stream: NumPy pads it with zeros, so that `default_rng(s)` is
`default_rng([s, 0])`, and what two parts of a run draw from them is the same. Here every use has a
name, which is hashed, and no two uses share draws by accident. The linter forbids `default_rng`
everywhere else.
"""

import hashlib
import json

import numpy as np

from contamination.errors import InputError


def random_stream(seed: int, name: str, *keys: int | str) -> np.random.Generator:
    """Open a stream; streams of another seed, name or key are independent of it.

    It is that of `SeedSequence` (O'Neill's hash, in NumPy) with the SHA-256 of name and keys as
    spawn key, so no two of them meet unless SHA-256 collides. Raises InputError for a negative
    seed.

    Parameters
    ----------
    seed : at least 0.
    name : what is drawn, in words; each has one place in the code.
    keys : tell apart the streams of one name, such as those of the shards of a set.
    """
    if seed < 0:
        raise InputError(f"seed is {seed}: give a whole number of at least 0")
    # As JSON, ("a", 11) is not ("a", 1, 1), and 1 not "1".
    path = json.dumps([name, *(key if isinstance(key, str) else int(key) for key in keys)])
    words = np.frombuffer(hashlib.sha256(path.encode()).digest(), dtype="<u4").tolist()
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=words))


def derived_seed(seed: int, name: str, *keys: int | str) -> int:
    """Return 32 bits of the stream of that name, for a generator that is not NumPy's."""
    return int(random_stream(seed, name, *keys).integers(1 << 32))
