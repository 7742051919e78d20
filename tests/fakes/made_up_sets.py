"""Small scored sets of made-up numbers, in the places where a run keeps them."""

from pathlib import Path

import numpy as np

from contamination.files import sha256_of
from contamination.scoring.plan import StorePlan
from contamination.scoring.store import Store
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
    """Score a set at random; `gain` nats for the first token of a canonical successor."""
    lengths = np.random.default_rng(len(test_set.name)).integers(6, 41, len(test_set.examples))
    header = Header(
        model,
        f"{model}-weights",
        test_set.name,
        test_set.revision,
        test_set.template,
        SEED,
        shards,
        tuple(lengths.tolist()),
        kind,
        tokens_per_example,
    )
    path = StorePlan(kind, shards, tokens_per_example).path(directory, model, test_set.name)
    store = Store(path, header)
    rng = np.random.default_rng([len(model), shards, len(kind), tokens_per_example or 0])
    units = []
    for unit in header.units(permutations):
        examples = header.examples(unit)
        values = rng.normal(-3, 1, int(header.stored[examples].sum())).astype(np.float32)
        begins = np.cumsum(header.stored[examples]) - header.stored[examples]
        if kind == "orderings" and unit[1] == 0:
            values[begins[1:]] += np.float32(gain)
        elif kind == "successors" and unit[1] < len(examples):
            values[begins[unit[1]]] += np.float32(gain)
        units.append((unit, examples, values))
    store.append(units)
    return path


def fill(directory: Path) -> dict[str, ExampleSet]:
    """Two sets under two models, as an audit leaves them; `reader` has read `planted`."""
    sets = {name: make_set(name) for name in ("planted", "unread")}
    for model in ("reader", "stranger"):
        for name, test_set in sets.items():
            gain = 3.0 if (model, name) == ("reader", "planted") else 0.0
            for kind, shards, tokens in (
                ("orderings", 6, None),
                ("orderings", 4, None),
                ("orderings", 1, None),
                ("successors", 2, 32),
                ("successors", 4, 32),
            ):
                make_store(
                    directory, model, test_set, kind, shards, tokens_per_example=tokens, gain=gain
                )
    return sets
