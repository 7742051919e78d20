"""Sides that no random draw has divided: what `contamination compare` says of them.

    .venv/bin/python benchmarks/held_out_dated.py build/laptop

Three pairs of sides are compared under both models of a run of `laptop`.

- *dated pages*: made-up pages of the same words, older ones that mention years from 2005 to 2018,
  and newer ones that mention 2023 to 2025, built as `contamination wikimia build` does.
- *dated pages, drawn*: the same pages, divided by a seeded draw instead.
- *packages*: docstrings of packages that the models have read, and of packages that they have not.

Writes docs/measurements/held_out_dated.csv: a row for each pair and model, with p, the p-value of
the baselines that never ask a model, and the verdict.
"""

import argparse
import json
import tempfile
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd

from contamination.audit.held_out import SidesRequest, compare
from contamination.files import replacing
from contamination.membership.dated import Rules, build_dated_set, split_name
from contamination.randomness import random_stream
from contamination.scoring.local import TransformersScorer
from contamination.testsets.example_set import ExampleSet, make_test_set
from contamination.testsets.records import read_records

OUT = Path(__file__).parents[1] / "docs" / "measurements" / "held_out_dated.csv"
SEED = 20261128
SIDE = 100  # texts
OLDER, NEWER = (2005, 2018), (2023, 2025)  # years, both inclusive
CUTOFF = date(2020, 1, 1)
WORDS = 24  # of a page
PLACES = ("harbour", "library", "station", "theatre", "bridge", "museum", "market", "tower")
DEEDS = ("opened", "closed", "moved", "rebuilt", "renamed", "sold", "painted", "extended")
PEOPLE = ("council", "architect", "company", "society", "mayor", "family", "school", "bank")
CHARACTERS = 400  # of a docstring


def as_set(name: str, texts: list[str]) -> ExampleSet:
    """Return texts as a set."""
    records = [(f"text {number}", {"text": text}) for number, text in enumerate(texts)]
    return make_test_set(name, records, "{text}", name)


def dated_texts(folder: Path) -> tuple[list[str], list[str]]:
    """Return older and newer texts of a benchmark of made-up pages."""
    rng = random_stream(SEED, "held-out dated, pages")
    pages = []
    for number in range(2 * SIDE):
        first, last = OLDER if number % 2 else NEWER
        year = int(rng.integers(first, last + 1))
        sentences = []
        for _ in range(3):
            place = rng.choice(PLACES)
            deed = rng.choice(DEEDS)
            people = rng.choice(PEOPLE)
            sentences.append(f"In {year} the {place} was {deed} by the {people}.")
        pages.append(
            {
                "title": f"page {number}",
                "text": " ".join([*sentences, "Nobody knows more about it today."]),
                "date": f"{year}-06-01",
            }
        )
    path = folder / "pages.jsonl"
    path.write_text("".join(json.dumps(page) + "\n" for page in pages), encoding="utf-8")
    build_dated_set(path, folder / "made", Rules(cutoff=CUTOFF, lengths=(WORDS,), seed=SEED))
    sides: dict[int, list[str]] = {0: [], 1: []}
    for _, row in read_records(folder / "made" / f"{split_name(WORDS)}.jsonl"):
        sides[int(row["label"])].append(str(row["input"]))
    return sides[1], sides[0]


def package_texts(corpus: Path) -> tuple[list[str], list[str]]:
    """Return docstrings of packages in the corpus, and of packages outside it."""
    rng = random_stream(SEED, "held-out dated, packages")
    sides = []
    for name in ("members", "non_members"):
        records = read_records(corpus / f"{name}.jsonl")
        chosen = rng.permutation(len(records))[:SIDE]
        sides.append([str(records[place][1]["text"])[:CHARACTERS] for place in chosen])
    return sides[0], sides[1]


def main() -> None:
    """Compare the sides under both models, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("build", type=Path, help="directory of a finished run of laptop")
    parser.add_argument("--out", type=Path, default=OUT)
    chosen = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        older, newer = dated_texts(Path(folder))
        mixed = np.array(sorted([*older, *newer]))
        mixed = random_stream(SEED, "held-out dated, draw").permutation(mixed)
        sides = {
            "dated pages": (older, newer),
            "dated pages, drawn": (mixed[: len(older)].tolist(), mixed[len(older) :].tolist()),
            "packages": package_texts(chosen.build / "corpus"),
        }
        request = SidesRequest(directory=Path(folder) / "stores")
        for model in ("clean", "contaminated"):
            scorer = TransformersScorer(chosen.build / "models" / model)
            for name, (first, second) in sides.items():
                found = compare(scorer, as_set("first", first), as_set("second", second), request)
                verdict = found.verdict()
                rows.append(
                    {
                        "sides": name,
                        "model": model,
                        "texts": len(first) + len(second),
                        "auc_min_k_20": found.aucs["min_k_20"],
                        "log10_p": found.result.log10_p,
                        "blind": found.blind.best,
                        "blind_p": found.blind.p,
                        "verdict": verdict.conclusion,
                        "status": verdict.status,
                    }
                )
    table = pd.DataFrame(rows).round(4)
    print(table.to_string(index=False))
    with replacing(chosen.out) as temporary:
        table.to_csv(temporary, index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
