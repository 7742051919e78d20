"""Damaged stores for `run.py`: what disks, power cuts and strangers leave behind.

After the damage the set is scored again into the same place. The store must then hold what the
undamaged one held, or one line must say why it cannot be used.
"""

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
from records import damage, kept_folder

from contamination.files import sha256_of
from contamination.scoring import work
from contamination.scoring.plan import StorePlan
from contamination.scoring.score import score
from contamination.scoring.store import Store
from contamination.testsets.example_set import ExampleSet
from fakes.made_up_scorer import MadeUpScorer
from reproduction.run.tokenizer import train_tokenizer

Rng = np.random.Generator
SHARDS, PERMUTATIONS, FIRST = 3, 4, 5
work.SMALLEST_PART = 256  # tokens; several parts of a small store


def attack_stores(rng: Rng, folder: Path) -> str:
    """Damage a copy of a store once to thrice, score again, and compare."""
    kind = str(rng.choice(["orderings", "successors"]))
    whole, expected = _whole(kind)
    directory = folder / "store"
    shutil.copytree(whole, directory)
    for _ in range(rng.integers(1, 4)):
        WAYS[int(rng.integers(len(WAYS)))](directory, rng)
    parts = _parts(directory)
    found = _values(_score(directory, kind))
    if not np.array_equal(found, expected):
        raise AssertionError(f"the store has\n{found}\nand not\n{expected}")
    return "survived" if _parts(directory) == parts else "repaired"


@cache
def _whole(kind: str) -> tuple[Path, np.ndarray]:
    """Score once what all attempts of this process damage."""
    directory = kept_folder() / kind
    return directory, _values(_score(directory, kind))


def _score(directory: Path, kind: str) -> Store:
    examples, tokenizer = _set()
    test_set = ExampleSet("set", examples, "text/1", sha256_of("text/1", *examples))
    return score(
        test_set,
        MadeUpScorer(tokenizer),
        directory,
        StorePlan(kind, SHARDS, FIRST if kind == "successors" else None),  # type: ignore[arg-type]
        model="m",
        permutations=PERMUTATIONS,
        seed=1,
    )


@cache
def _set() -> tuple[tuple[str, ...], object]:
    examples = tuple(f"The record of number {i * 37 % 101} says {i}.\n" for i in range(12))
    return examples, train_tokenizer(examples, 300)


def _values(store: Store) -> np.ndarray:
    """Return what tests read of a store: by shard, the sums of its orderings or of its pairs."""
    if store.header.kind == "orderings":
        return store.log_probs(PERMUTATIONS)
    pairs = [store.successors(shard, FIRST) for shard in range(SHARDS)]
    return np.stack([matrix[~np.eye(len(matrix), dtype=bool)] for matrix in pairs])


def _parts(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.glob("part-*") if path.is_file()}


def _any(directory: Path, rng: Rng, pattern: str = "*") -> Path:
    """Choose a file of the store; the header as often as a part."""
    names = sorted(path.name for path in directory.glob(pattern))
    if not names:
        return directory / "store.json"
    return directory / str(rng.choice(names))


def _change(directory: Path, rng: Rng) -> None:
    path = _any(directory, rng)
    if path.is_file():
        path.write_bytes(damage(path.read_bytes(), rng))


def _flip(directory: Path, rng: Rng) -> None:
    path = _any(directory, rng)
    if path.is_file() and (data := bytearray(path.read_bytes())):
        data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
        path.write_bytes(data)


def _replace(directory: Path, rng: Rng) -> None:
    """Put something in the place of a file that is no file, or another file."""
    path = _any(directory, rng)
    other = _any(directory, rng)
    data = other.read_bytes() if other.is_file() else b""
    _remove(path)
    match int(rng.integers(7)):
        case 0:
            path.mkdir()
        case 1:
            path.symlink_to("nowhere")
        case 2:
            path.symlink_to(path.name)
        case 3:
            path.write_bytes(data)
        case 4:
            path.write_bytes(rng.bytes(int(rng.integers(2000))))
        case 5:
            path.write_bytes(bytes(int(rng.integers(2000))))  # what a power cut leaves


def _header(directory: Path, rng: Rng) -> None:
    """Make a header that is JSON and no header, or that of another store."""
    path = directory / "store.json"
    texts = ("[]", "null", "{}", '"x"', "1", "\xff", '{"schema_version": 99}', "{" * 2000)
    text = path.read_text(errors="replace") if path.is_file() else ""
    lines = text.splitlines(keepends=True) or [""]
    fewer = "".join(lines[:-3] + lines[-2:])
    other = text.replace(str(rng.choice(list("0123456789"))), str(rng.integers(10)), 1)
    _remove(path)
    chosen = str(rng.choice([*texts, fewer, other, text.replace("null", "7"), text + text]))
    path.write_text(chosen, encoding="latin-1", errors="replace")


def _swap(directory: Path, rng: Rng) -> None:
    first = _any(directory, rng, "part-*")
    second = _any(directory, rng, "part-*")
    if first.is_file() and second.is_file():
        first_bytes = first.read_bytes()
        first.write_bytes(second.read_bytes())
        second.write_bytes(first_bytes)


def _leave(directory: Path, rng: Rng) -> None:
    """Leave files that belong to nobody, as a killed run does."""
    names = ("part-x.parquet", ".part-00.tmp", "part-0.parquet", "run-x.json", "notes.txt")
    data = (rng.bytes(30), b"{}", b'{"precision": []}', b"")
    (directory / str(rng.choice(names))).write_bytes(data[int(rng.integers(len(data)))])


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


WAYS: tuple[Callable[[Path, Rng], None], ...] = (
    *[_change] * 3,
    *[_flip] * 3,
    *[_replace] * 3,
    _header,
    _swap,
    _leave,
)
