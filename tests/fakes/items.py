"""Multiple-choice records of tests: sets of them, and one of them in another arrangement."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from contamination.files import sha256_of
from contamination.testsets.arrangements import OPTIONS_TEMPLATE
from contamination.testsets.example_set import ExampleSet, make_test_set
from contamination.testsets.options import items_of
from fakes.remembering_scorer import WORDS


def items_set(records: Sequence[dict[str, Any]], template: str | None = None) -> ExampleSet:
    """Return a set of records with options, called "quiz"; without a template, of items alone."""
    if template is None:
        texts = tuple(json.dumps(record) for record in records)
        return ExampleSet("quiz", texts, OPTIONS_TEMPLATE, sha256_of(*texts), tuple(records))
    return make_test_set("quiz", [("", record) for record in records], template, "quiz.jsonl")


def rearranged(record: dict[str, Any], order: Sequence[int]) -> dict[str, Any]:
    """Return a record with option order[i] in the place of option i."""
    return items_of(items_set([record]))[0].rearranged(order)


def drawn_items(count: int, options: int) -> list[dict[str, Any]]:
    """Return records whose options were drawn, and stand in a random order."""
    rng = np.random.default_rng(0)
    return [
        {
            "question": f"Which is number {i}?",
            "choices": [f"{' '.join(rng.permutation(WORDS)[:3])} {i}" for _ in range(options)],
            "answer": int(rng.integers(options)),
        }
        for i in range(count)
    ]
