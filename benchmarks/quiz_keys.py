"""The rate at which quizzes reject keys that are redrawn over the answers of a model.

    .venv/bin/python benchmarks/quiz_keys.py MODEL ... --sets mmlu/anatomy mmlu/virology

A model answers both quizzes about each set once. Then 1,000 keys draw anew which of the versions of
each question is the published one; the answers stay. Writes docs/measurements/quiz_keys.csv, a row
for each model, set and quiz: letters given, hits and p of the published key, the share of the keys
with p <= 0.05, and the largest share that the law of the hits allows.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import binom

from contamination.audit.generated_texts import letter_of
from contamination.audit.generation import audit_generation
from contamination.audit.generation_plan import GenerationAudit
from contamination.audit.request import CHOICES, Request
from contamination.files import replacing
from contamination.randomness import random_stream
from contamination.scoring.generation import LocalGenerator
from contamination.scoring.loading import ModelSource
from contamination.scoring.local import TransformersScorer
from contamination.statistics import quiz_test
from contamination.testsets.options import LETTERS
from contamination.testsets.sources import open_test_set

ROOT = Path(__file__).parents[1]
KEYS, ALPHA = 1_000, 0.05
SECRET = "00000000000000000000000000000001"  # open, so that the table can be made again


def measure(work: GenerationAudit) -> dict[str, object]:
    """Let the model answer, and draw the keys."""
    (finding,) = audit_generation(work).findings
    found, _ = work.store.stored()
    given = [letter_of(found[i][0]) for i in range(len(work.prompts))]
    answers = np.array([LETTERS.index(a) if a in {*LETTERS[:CHOICES]} else -1 for a in given])
    rng = random_stream(0, "redrawn keys", work.test_set.revision)
    drawn = rng.integers(CHOICES, size=(KEYS, len(answers)))
    p = [quiz_test(key == answers, choices=CHOICES, test="quiz", alpha=ALPHA).p for key in drawn]
    law = binom(len(answers), 1 / CHOICES)
    return {
        "set": work.test_set.name,
        "quiz": finding.result.test,
        "questions": len(answers),
        "letters": int((answers >= 0).sum()),
        "hits": int(finding.result.statistic),
        "p": finding.result.p,
        "rejected": float(np.mean(np.array(p) <= ALPHA)),
        "allowed": float(law.sf(law.ppf(1 - ALPHA))),
    }


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+")
    parser.add_argument("--sets", nargs="+", required=True)
    parser.add_argument("--max-records", type=int)
    options = parser.parse_args()
    rows = []
    for model in options.models:
        generator = LocalGenerator(TransformersScorer(ModelSource(model)), Path(model).name)
        for name in options.sets:
            examples = open_test_set(name, max_records=options.max_records)
            for axis in ("options", "order"):
                request = Request(axis=axis, directory=ROOT / "build" / "quiz_keys")
                work = GenerationAudit(
                    generator, examples, request, next_record=axis == "order", secret=SECRET
                )
                rows.append({"model": generator.name} | measure(work))
                print(rows[-1], flush=True)
    with replacing(ROOT / "docs" / "measurements" / "quiz_keys.csv") as path:
        pd.DataFrame(rows).to_csv(path, index=False, float_format="%.4g")


if __name__ == "__main__":
    main()
