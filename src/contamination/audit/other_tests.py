"""Other tests of a model and a set, by the stores in the same folder.

The smallest of several p-values is no p-value. An audit corrects over the tests of its
own command, and knows of those of other commands by the stores that they filled. A test
that reads a store leaves a small file there, since several tests may read the same
numbers.
"""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from contamination.errors import InputError
from contamination.files import read_json, write_json

if TYPE_CHECKING:
    from contamination.statistics import TestResult

SIDES_HEADER = "sides.json"
# of log-probabilities, of what a model wrote, and of scores of two sides
HEADERS = ("store.json", "completions.json", SIDES_HEADER)
PARTS = "*.parquet"
# Tests of two sides that read the same scores differ by a hash.
NOTE = re.compile(
    r"test-(?P<test>\w+)-(?P<permutations>\d+)(-stopped|-(?P<sides>[0-9a-f]{8}))?\.json"
)
# What another test may have differed in, by the field of the header.
DIFFERENCES = {
    "model_revision": "other weights, precision or context",
    "dataset_revision": "other records or another template",
    "held_out_revision": "other held-out records",
    "scores": "other scores",
    "seed": "another seed",
}
MOST_TOLD = 5  # in a line for people


class OtherTest(NamedTuple):
    """A test of the same model and set: its store, and what it was.

    Of a comparison of two sides the store is the folder of all stores of the set: the
    name of its own is a digest, from which a few held-out records could be guessed.
    """

    store: str
    what: str


def note_test(store: Path, result: "TestResult") -> None:
    """Note in a store that it was tested; nothing where it cannot be written."""
    path = note_of(store, result)
    if path.exists():
        return
    with suppress(InputError):
        write_json(path, {"test": result.test, "permutations": result.permutations})


def noted_tests(store: Path) -> set[str]:
    """Return the names of the tests that have left word in a store."""
    matches = [NOTE.fullmatch(path.name) for path in _notes_in(store)]
    return {match["test"] for match in matches if match is not None}


def count_notes(store: Path) -> int:
    """Return how many tests have left word in a store."""
    return len(_notes_in(store))


def other_tests(stores: Sequence[Path], own: Collection[Path]) -> list[OtherTest]:
    """Return all other tests of a model and a set, the earliest first.

    `stores` are directories that an audit has read: all stores of the model and set lie
    in the same folders. `own` are the notes of its own tests (`note_of`). A store
    without a note counts as one test.
    """
    reference = _header_of(stores[0])
    dated: list[tuple[float, OtherTest]] = []
    for store in _stores_in_folders_of(stores):
        header = _header_of(store)
        notes = _notes_in(store)
        for note in notes:
            if note not in own:
                dated.append(_described(store, note, header, reference))
        if not notes and header and store not in stores:
            dated.append(_described(store, None, header, reference))
    return [other for _, other in sorted(dated)]


def _stores_in_folders_of(stores: Sequence[Path]) -> list[Path]:
    """Return all stores with anything in them in the folders of these."""
    neighbours: set[Path] = set()
    for folder in {store.parent for store in stores}:
        for part in folder.glob(f"*/{PARTS}"):
            neighbours.add(part.parent)
    return sorted(neighbours)


def other_tests_in_words(others: Sequence[OtherTest]) -> str:
    """Return one line that says that there are other tests, and which.

    Examples
    --------
    >>> other_tests_in_words([OtherTest("a", "boundary (4 shards)")])[:45]
    '1 other test of this model and set in the sam'
    """
    count = "1 other test" if len(others) == 1 else f"{len(others)} other tests"
    alike = Counter(other.what for other in others)  # in the order of the first of each
    shown = []
    for what, times in islice(alike.items(), MOST_TOLD):
        shown.append(what if times == 1 else f"{what}, {times} times")
    more = sum(islice(alike.values(), MOST_TOLD, None))
    if more:
        shown.append(f"{more} more")
    return (
        f"{count} of this model and set in the same store, the earliest first: "
        f"{'; '.join(shown)}. Correct over all of them and this one, or quote the first"
    )


def note_of(store: Path, result: "TestResult") -> Path:
    """Return the file of a test's note: its name says all, so no content is trusted."""
    stopped = "-stopped" if hasattr(result, "stopped_at") else ""
    return Path(store) / f"test-{result.test}-{result.permutations}{stopped}.json"


def _notes_in(store: Path) -> list[Path]:
    return [path for path in sorted(store.iterdir()) if NOTE.fullmatch(path.name)]


def _header_of(store: Path) -> dict[str, Any]:
    """Return the header of a store; empty if it has none, or a damaged one."""
    for name in HEADERS:
        with suppress(InputError):
            return read_json(Path(store) / name)
    return {}


def _described(
    store: Path, note: Path | None, header: dict[str, Any], reference: dict[str, Any]
) -> tuple[float, OtherTest]:
    """Return when a test was first made, as far as files say, and what it was."""
    name = _kind_of(header)
    details = []
    if "shards" in header:
        details.append(f"{header['shards']} shards")
    if "temperature" in header:
        details.append(f"{header.get('samples')} x {header.get('tokens')} tokens")
        details.append(f"temperature {header['temperature']}")
    match = None if note is None else NOTE.fullmatch(note.name)
    if note is not None and match is not None:
        name = match["test"]
        if match["sides"]:
            details.append(_how_sides_were_tested(note))
        else:
            details.append(f"{match['permutations']} permutations")
    details += _differences(header, reference)
    file = _header_file(store) if note is None else note
    what = f"{name} ({', '.join(details)})"
    place = store.parent if (store / SIDES_HEADER).exists() else store
    return file.stat().st_mtime, OtherTest(str(place), what)


def _how_sides_were_tested(note: Path) -> str:
    """Return what a note says of a test of two sides; "" if it is damaged."""
    with suppress(InputError):
        return str(read_json(note).get("described", ""))
    return ""


def _header_file(store: Path) -> Path:
    """Return the file of the header of a store that has one."""
    return next(store / name for name in HEADERS if (store / name).is_file())


def _kind_of(header: dict[str, Any]) -> str:
    if "temperature" in header:
        return "generated texts"
    return str(header.get("kind", "a store"))


def _differences(header: dict[str, Any], reference: dict[str, Any]) -> list[str]:
    """Return how a header differs from that of the audit, of stores of one kind."""
    kind = header.get("kind")
    # An endpoint has another revision for texts, and arrangements have their own.
    if kind != reference.get("kind") or kind == "alternatives":
        return []
    differences = []
    for name, text in DIFFERENCES.items():
        if header.get(name) == reference.get(name):
            continue
        if name == "held_out_revision" and header.get("held_out"):
            text += f": {header['held_out']!s:.60}"
        differences.append(text)
    return differences
