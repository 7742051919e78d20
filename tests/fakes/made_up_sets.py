"""Small scored sets of made-up numbers, in the places where a run keeps them."""

from pathlib import Path

import numpy as np

from contamination.files import sha256_of
from contamination.scoring.plan import StorePlan
from contamination.scoring.store import create_store, store_of
from contamination.scoring.store_format import Header
from contamination.testsets.example_set import ExampleSet

HOSTILE = "</script><img src=x onerror=alert(1)><b>bold</b> & “é”"
SEED = 7


def make_set(name: str, count: int = 24) -> ExampleSet:
    """Examples that can be told apart, one of them hostile."""
    texts = [
        f"{name} example {i} asks for {'x' * (i * 7 % 5)}?\nAnswer: {i}\n" for i in range(count)
    ]
    texts[3] = f"{HOSTILE}\n"
    records = tuple({"text": text, "answer": str(i * 3 % 4)} for i, text in enumerate(texts))
    return ExampleSet(name, tuple(texts), "text/1", sha256_of(*texts), records)


def random_units(
    header: Header, permutations: int, rng: np.random.Generator, gain: float, *, whole: bool = False
) -> list[tuple[tuple[int, int], np.ndarray, np.ndarray]]:
    """Log-probabilities of all units of a store, drawn at random but for a `gain` (nats).

    The first token of a canonical successor gains; with `whole` the first token of a canonical
    ordering, in place of those of its successors.
    """
    units = []
    store = store_of(Path(), header)
    for unit in store.places(permutations=permutations):
        examples = store.examples(unit)
        stored = header.stored[examples]
        values = rng.normal(-4 if whole else -3, 1, int(stored.sum())).astype(np.float32)
        begins = np.cumsum(stored) - stored
        if header.kind == "orderings" and unit[1] == 0:
            values[begins[:1] if whole else begins[1:]] += np.float32(gain)
        elif header.kind == "successors" and unit[1] < len(examples):
            values[begins[unit[1]]] += np.float32(gain)
        units.append((unit, examples, values))
    return units


def make_store(
    directory: Path,
    model: str,
    test_set: ExampleSet,
    kind: str,
    shards: int,
    *,
    permutations: int = 9,
    tokens_per_example: int | None = None,
    gain: float = 0.0,
) -> Path:
    """Score a set at random, as `random_units` does."""
    lengths = np.random.default_rng(len(test_set.name)).integers(6, 41, len(test_set.examples))
    named = (test_set.name, test_set.revision, test_set.template, SEED, shards)
    sizes = tuple(lengths.tolist())
    header = Header(model, f"{model}-weights", *named, sizes, kind, tokens_per_example)
    path = StorePlan(kind, shards, tokens_per_example).path(directory, model, test_set.name)
    rng = np.random.default_rng([len(model), shards, len(kind), tokens_per_example or 0])
    create_store(path, header).append(random_units(header, permutations, rng, gain))
    return path


def fill(directory: Path) -> dict[str, ExampleSet]:
    """Two sets under two models, as an audit leaves them; `reader` has read `planted`."""
    sets = {name: make_set(name) for name in ("planted", "unread")}
    for model in ("reader", "stranger"):
        for name, test_set in sets.items():
            gain = 3.0 if (model, name) == ("reader", "planted") else 0.0
            for shards in (6, 1):
                make_store(directory, model, test_set, "orderings", shards, gain=gain)
            make_store(
                directory, model, test_set, "successors", 2, tokens_per_example=32, gain=gain
            )
    return sets
