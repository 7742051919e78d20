"""The number of copies and items that the order of options needs: chosen, then confirmed.

    .venv/bin/python benchmarks/option_power.py build/laptop

Items of MMLU (of at most `LONGEST` tokens, their options and their order shuffled by a seed) are
planted in continued training of the clean model of a run of `laptop`, as the experiment of notebook
14 plants its own: whole, shuffled, or as single records. Then each item's published arrangement is
compared with seven others, and the order of the records by the successor test beside it.

The rule, written before anything was run: `CANDIDATES` are compared on the first seed, on single
records, by the mean log10 p of sets of 25 items over 2, 4 and 8 copies. The plain
sum with weights 1/sd stays the statistic of the test unless another one is lower there by two
standard errors of the paired difference over sets, and again on the second seed, on which nothing
is chosen. The large design has a seed of its own, on which nothing is chosen either. What came of
it: equal weights were lower on both seeds, and are the statistic since (docs/power.md).

Writes the rows of its designs in docs/measurements/option_power.csv and leaves those of others.
What was computed is kept in build/laptop/option_power.
"""

import argparse
import time
from collections.abc import Callable
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from contamination.audit.registry import TESTS
from contamination.errors import InputError
from contamination.files import replacing
from contamination.randomness import random_stream
from contamination.scoring.local import TransformersScorer
from contamination.scoring.plan import StorePlan
from contamination.scoring.prefix import continuation_logprobs
from contamination.scoring.score import score
from contamination.statistics import (
    centred_tokens,
    sharded_exact_test,
    token_standardised_scores,
)
from contamination.testsets.example_set import ExampleSet, make_test_set
from contamination.testsets.options import items_of
from contamination.testsets.registry import entries
from contamination.testsets.sources import open_test_set
from contamination.testsets.tokens import tokenize
from contamination.testsets.variants import FixedOptions, option_orders, permitted_places
from reproduction.notebooks.options.tables import Cell
from reproduction.run.experiment import Experiment
from reproduction.run.further import PlantedSet, train_further

ROOT = Path(__file__).parents[1]
TEMPLATE = "mmlu/1"
LONGEST = 100  # tokens of an item
OTHERS = 7  # arrangements beside the published one
MOVES = FixedOptions(habits=False)  # numbers as well: their order is ours
BACKGROUND = {
    "choosing": 60_000,
    "confirming": 30_000,
    "large": 200_000,
}  # tokens of the corpus that the model has read before
RATE, BATCH = 1e-3, 4  # as in notebook 09
SIZES = (25, 50, 100, 125, 250, 750, 1500)  # items of a set, cut out of what was planted
CONTROLLED = 50  # items of a cell that the clean model reads, too
LABEL, CONTENT, ANSWER = range(3)  # what a token belongs to

LARGE_IN_ORDER = {1: 250, 2: 250, 4: 250, 8: 100, 16: 100}  # copies -> items, of whole sets


DESIGNS: dict[str, tuple[int, dict[Cell, int]]] = {
    "choosing": (20261122, {Cell("single", n): 125 for n in (1, 2, 4, 8)}),
    "confirming": (
        20261123,
        {Cell("single", n): size for n, size in {1: 125, 2: 125, 4: 100, 8: 50}.items()},
    ),
    "large": (
        20261124,
        {Cell("single", n): size for n, size in {1: 1500, 2: 750, 4: 250, 8: 250, 16: 100}.items()}
        | {Cell("whole", n): size for n, size in LARGE_IN_ORDER.items()}
        | {Cell("shuffled", n): size for n, size in LARGE_IN_ORDER.items()},
    ),
}

Tokens = tuple[np.ndarray, np.ndarray, np.ndarray]  # (N, T) nats; kind and place of each column
CANDIDATES: dict[str, tuple[Callable[[Tokens], np.ndarray], str]] = {
    "sum, 1/sd": (lambda tokens: tokens[0].sum(axis=1), "inverse_sd"),
    "sum, equal weights": (lambda tokens: tokens[0].sum(axis=1), "equal"),
    "token-standardised": (lambda tokens: _standardised(tokens[0]), "inverse_sd"),
    "clipped at 1 nat": (lambda tokens: _clipped(tokens[0]), "inverse_sd"),
    "answer alone": (lambda tokens: tokens[0][:, tokens[1] == ANSWER].sum(axis=1), "inverse_sd"),
    "options alone": (lambda tokens: tokens[0][:, tokens[1] != ANSWER].sum(axis=1), "inverse_sd"),
    "first 4 tokens of an option": (
        lambda tokens: tokens[0][:, (tokens[1] == CONTENT) & (tokens[2] < 4)].sum(axis=1),
        "inverse_sd",
    ),
}


def _standardised(values: np.ndarray) -> np.ndarray:
    return token_standardised_scores(values, np.zeros(values.shape, dtype=bool))


def _clipped(values: np.ndarray) -> np.ndarray:
    centred = centred_tokens(values, np.zeros(values.shape, dtype=bool))
    return np.clip(centred, -1, 1).sum(axis=1)


# --- items ----------------------------------------------------------------------------------------


def shuffled_items(tokenizer: PreTrainedTokenizerBase, count: int, *, seed: int) -> list[dict]:
    """Draw items of all subsets of MMLU that are short enough, and arrangements for them."""
    records = []
    for name in sorted(name for name in entries() if name.startswith("mmlu/")):
        for record in open_test_set(name).records:
            letters = dict(zip("ABCD", (str(text) for text in record["choices"]), strict=True))
            question = str(record["question"])
            answer = str(record["answer"])
            records.append({"input": question, **letters, "target": answer})
    found = make_test_set("mmlu", [("", record) for record in records], TEMPLATE, "mmlu")
    short = [len(ids) <= LONGEST for ids in tokenize(tokenizer, found.examples)]
    items = items_of(found)
    able = [len(places) == 4 for places in permitted_places(items, MOVES)]
    usable = [item for item, *fits in zip(items, short, able, strict=True) if all(fits)]
    rng = random_stream(seed, "items of MMLU")
    if len(usable) < count:
        raise InputError(f"{len(usable)} items of MMLU are short enough, {count} wanted")
    chosen = [usable[i] for i in rng.permutation(len(usable))[:count]]
    return [item.rearranged(rng.permutation(4).tolist()) for item in chosen]


def sets_of(
    tokenizer: PreTrainedTokenizerBase, cells: dict[Cell, int], *, seed: int
) -> dict[Cell, ExampleSet]:
    """Deal the items out."""
    records = shuffled_items(tokenizer, sum(cells.values()), seed=seed)
    sets, start = {}, 0
    for cell, size in cells.items():
        chosen = [(f"item {i}", record) for i, record in enumerate(records[start : start + size])]
        sets[cell] = make_test_set(cell.name, chosen, TEMPLATE, cell.name)
        start += size
    return sets


# --- passes over models ---------------------------------------------------------------------------


def train(
    build: Path, work: Path, sets: dict[Cell, ExampleSet], *, background: int, seed: int
) -> Path:
    """Let the clean model read on."""
    planted_sets = [
        PlantedSet(test_set=one, planting=cell.planting, dup_count=cell.dup_count)
        for cell, one in sets.items()
    ]
    model, tokens, _ = train_further(
        Experiment(ROOT / "profiles" / "laptop.yaml", build),
        planted_sets,
        work / "planted",
        background_tokens=background,
        rng=random_stream(seed, "planting"),
        learning_rate=RATE,
        batch_size=BATCH,
        seed=seed,
    )
    print(f"read {tokens:,} tokens", flush=True)
    return model


def arrangement_tokens(
    scorer: TransformersScorer, test_set: ExampleSet, *, seed: int, most: int | None = None
) -> list[Tokens]:
    """Score the arrangements of every item, or of the first ones, token by token.

    A column is one token: of a label, of an option (wherever it stands), or of the answer.
    """
    items = items_of(test_set)
    orders = option_orders(items, permitted_places(items, MOVES), permutations=OTHERS, seed=seed)
    laid, groups = [], []
    for item, rows in list(zip(items, orders, strict=True))[:most]:
        columns = [_columns(scorer.tokenizer, item.rearranged(order), order) for order in rows]
        ids = [_ids(row) for row in columns]
        shared = _shared_tokens(ids)
        laid.append((columns, shared))
        groups.append((ids[0][:shared], [x[shared:] for x in ids]))
    found: dict[int, Tokens] = {}
    for index, values in continuation_logprobs(scorer, groups):
        columns, shared = laid[index]
        found[index] = _aligned([row[shared:] for row in columns], values)
    return [found[i] for i in range(len(groups))]


def _ids(columns: list[tuple[int, int, int, int]]) -> np.ndarray:
    """Return the token ids of an arrangement."""
    return np.array([column[0] for column in columns])


def _shared_tokens(arrangements: list[np.ndarray]) -> int:
    """Return how many tokens all arrangements share at their start."""
    for i in range(min(map(len, arrangements))):
        if len({int(ids[i]) for ids in arrangements}) > 1:
            return i
    raise ValueError("all arrangements are alike")


def _columns(
    tokenizer: PreTrainedTokenizerBase, record: dict, order: tuple[int, ...]
) -> list[tuple[int, int, int, int]]:
    """Return (id, kind, owner, place) of every token; the owner of content is its option."""
    (text,) = make_test_set("item", [("", record)], TEMPLATE, "item").examples
    encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    start = len(record["input"]) + 1
    spans = []
    for letter, option in zip("ABCD", order, strict=True):
        spans.append((start + 2, start + 3 + len(record[letter]) + 1, option))
        start += len(record[letter]) + 4
    tokens = []
    places: dict[int | str, int] = dict.fromkeys([*range(4), "label", "answer"], 0)
    for ident, (a, b) in zip(encoded["input_ids"], encoded["offset_mapping"], strict=True):
        owner = next((option for low, high, option in spans if low <= a and b <= high), None)
        key: int | str
        if owner is not None:
            key = owner
            kind = CONTENT
        elif a >= start:
            key = "answer"
            kind = ANSWER
        else:
            key = "label"
            kind = LABEL
        tokens.append((ident, kind, -1 if owner is None else owner, places[key]))
        places[key] += 1
    return tokens


def _aligned(columns: list[list[tuple[int, int, int, int]]], values: list[np.ndarray]) -> Tokens:
    """Bring the same token into the same column; what an arrangement shares with all counts 0."""
    keys = sorted({column[1:] for column in chain.from_iterable(columns)})
    place = {key: i for i, key in enumerate(keys)}
    table = np.zeros((len(columns), len(keys)))
    for row, (cells, found) in enumerate(zip(columns, values, strict=True)):
        for cell, value in zip(cells, found, strict=True):
            table[row, place[cell[1:]]] = value
    return table, np.array([key[0] for key in keys]), np.array([key[2] for key in keys])


def order_scores(
    scorer: TransformersScorer, test_set: ExampleSet, directory: Path, *, seed: int
) -> np.ndarray:
    """Scores of the successor test, a row for every ten records."""
    test = TESTS["successor"]
    store = score(
        test_set,
        scorer,
        directory / test_set.name,
        StorePlan("successors", len(test_set.examples) // 10, test.tokens_per_example),
        model=directory.name,
        permutations=0,
        seed=seed,
    )
    return test.scores(store, 0)


# --- outcomes -------------------------------------------------------------------------------------


def cut(rows: np.ndarray, size: int) -> list[np.ndarray]:
    """Cut disjoint sets of a size out of what was planted."""
    return [rows[i : i + size] for i in range(0, len(rows) - size + 1, size)]


def outcomes(
    role: str,
    cell: Cell,
    model: str,
    rows: np.ndarray,
    weights: str = "inverse_sd",
    per_row: int = 1,
) -> list[dict]:
    """Return log10 p of every set of every size."""
    results = []
    for size in SIZES:
        if size % per_row:
            continue
        for number, part in enumerate(cut(rows, size // per_row)):
            results.append(
                {
                    "sets": role,
                    "planting": cell.planting,
                    "dup_count": cell.dup_count,
                    "model": model,
                    "items": size,
                    "set": number,
                    "log10_p": sharded_exact_test(part, weights=weights).log10_p,
                }
            )
    return results


def study(build: Path, role: str) -> pd.DataFrame:
    """Train and score one seed; a row for each set, size, test and model."""
    seed, cells = DESIGNS[role]
    work = build / "option_power" / role
    tokenizer = AutoTokenizer.from_pretrained(build / "models" / "clean")
    sets = sets_of(tokenizer, cells, seed=seed)
    started = time.process_time()
    planted = train(build, work, sets, background=BACKGROUND[role], seed=seed)
    print(f"{role}: trained in {time.process_time() - started:.0f} s of CPU", flush=True)
    rows = []
    for model, path in (("planted", planted), ("clean", build / "models" / "clean")):
        scorer = TransformersScorer(path)
        for cell, test_set in sets.items():
            began = time.process_time()
            most = CONTROLLED if model == "clean" else None
            tokens = arrangement_tokens(scorer, test_set, seed=seed, most=most)
            for name, (scores, weights) in CANDIDATES.items():
                table = np.stack([scores(one) for one in tokens])
                rows += [r | {"test": name} for r in outcomes(role, cell, model, table, weights)]
            if model == "planted" and role == "large":
                scored = order_scores(scorer, test_set, work / "stores" / model, seed=seed)
                ordered = outcomes(role, cell, model, scored, per_row=10)
                rows += [r | {"test": "order of records"} for r in ordered]
            print(f"{model} {cell.name}: {time.process_time() - began:.0f} s of CPU", flush=True)
    return pd.DataFrame(rows)


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Mean log10 p over sets with its standard error, and shares rejected."""
    keys = ["sets", "planting", "dup_count", "model", "items", "test"]
    found = table.groupby(keys, sort=False)["log10_p"].agg(
        number="count",
        mean_log10_p="mean",
        se_log10_p="sem",
        rejected_at_5_percent=lambda p: float((p <= np.log10(0.05)).mean()),
        rejected_at_1_permille=lambda p: float((p <= -3).mean()),
    )
    names = {"sets": "design", "number": "sets"}
    return found.reset_index().rename(columns=names).round(4)


def main() -> None:
    """Run both seeds, or read what is there, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("build", type=Path, help="directory of a finished run of laptop")
    parser.add_argument("--roles", nargs="+", choices=DESIGNS, default=["choosing", "confirming"])
    parser.add_argument("--out", type=Path, default=ROOT / "docs/measurements/option_power.csv")
    chosen = parser.parse_args()
    tables = []
    for role in chosen.roles:
        path = chosen.build / "option_power" / f"{role}.parquet"
        if not path.is_file():
            table = study(chosen.build, role)
            with replacing(path) as temporary:
                table.to_parquet(temporary)
        tables.append(pd.read_parquet(path))
    rows = [summary(pd.concat(tables))]
    if chosen.out.is_file():
        before = pd.read_csv(chosen.out)
        rows.insert(0, before[~before["design"].isin(chosen.roles)])
    with replacing(chosen.out) as temporary:
        pd.concat(rows).to_csv(temporary, index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
