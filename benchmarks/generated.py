"""Power of the generated successor, by the amount of text and by the measure of similarity.

    make PROFILE=generated build/generated/models/{contaminated,clean}/training.json
    .venv/bin/python benchmarks/generated.py generated generated-2

The grid below was written before anything ran. Each row of SETTINGS changes one thing of the
default. A setting is *chosen* if on the first profile its mean z over the sets of the contaminated
model exceeds that of the default by more than the standard error of the difference; the second
profile confirms. Texts are sampled once for each temperature, and shorter ones are their first
tokens, fewer ones the first of them. Beside them stands the successor test on log-probabilities
(32 tokens, shards of 10). For both models 1,000 redrawn orders of the texts of the default show the
level at 0.05, with 499 orderings each.

Writes docs/measurements/generated.csv, a row for each profile, model, set and setting, and prints
means. Set OMP_NUM_THREADS=1 where other jobs run beside it.
"""

import argparse
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd
from rapidfuzz import fuzz, process

from contamination.audit.generated_texts import words
from contamination.audit.generation_plan import ORDERINGS, GenerationAudit
from contamination.audit.registry import TESTS
from contamination.audit.request import Request
from contamination.files import replacing
from contamination.randomness import random_stream
from contamination.scoring.generation import LocalGenerator, Sampling
from contamination.scoring.local import TransformersScorer
from contamination.statistics import generated_successor_test, generated_successors
from contamination.testsets.tokens import tokenize
from reproduction.run.experiment import MODELS, Experiment, profile_plan

ROOT = Path(__file__).parents[1]
REDRAWN, OF = 1_000, 499  # orders, and orderings that each is compared with
LONGEST_RUN = 8  # words


@dataclass(frozen=True)
class Setting:
    """The amount of text, and the measure of similarity."""

    samples: int = 16
    tokens: int = 16
    temperature: float = 0.8
    similarity: str = "n-grams"


DEFAULT = Setting()
SETTINGS = (
    DEFAULT,
    Setting(samples=4),
    Setting(samples=32),
    Setting(tokens=8),
    Setting(tokens=32),
    Setting(temperature=0.4),
    Setting(temperature=1.2),
    Setting(similarity="words"),
    Setting(similarity="longest run"),
    Setting(similarity="partial ratio"),
)
SAMPLED = {0.8: (32, 32), 0.4: (16, 16), 1.2: (16, 16)}  # temperature: samples, tokens


def by_grams(longest: int) -> Callable[..., np.ndarray]:
    """The statistic of the package, with n-grams up to this number of words."""
    return lambda records, texts: generated_successors(*divided(records, texts), longest=longest)


def divided(
    records: Sequence[str], texts: Sequence[Sequence[str]]
) -> tuple[list[list[str]], list[list[list[str]]]]:
    """Words of records and of the texts after each."""
    return list(map(words, records)), [list(map(words, each)) for each in texts]


def longest_runs(records: Sequence[str], texts: Sequence[Sequence[str]]) -> np.ndarray:
    """Sum over the texts of log(1 + words of the longest run that a text shares with a record)."""
    ids, written = divided(records, texts)
    scores = np.zeros((len(records), len(records)))
    holders: dict[tuple[str, ...], set[int]] = defaultdict(set)
    for record, own in enumerate(ids):
        for size in range(1, LONGEST_RUN + 1):
            for at in range(len(own) - size + 1):
                holders[tuple(own[at : at + size])].add(record)
    for a, each in enumerate(written):
        for own in each:
            longest = np.zeros(len(records))
            for size in range(1, LONGEST_RUN + 1):
                for at in range(len(own) - size + 1):
                    longest[list(holders.get(tuple(own[at : at + size]), ()))] = size
            scores[a] += np.log1p(longest)
    return scores


def partial_ratios(records: Sequence[str], texts: Sequence[Sequence[str]]) -> np.ndarray:
    """Mean over the texts of rapidfuzz's partial ratio of a text and a record."""
    means = [process.cdist(each, records, scorer=fuzz.partial_ratio).mean(axis=0) for each in texts]
    return np.array(means)


SIMILARITIES = {
    "n-grams": by_grams(4),
    "words": by_grams(1),
    "longest run": longest_runs,
    "partial ratio": partial_ratios,
}


def rows_of(profile: str) -> list[dict[str, object]]:
    """Rows of both models and all sets of a profile."""
    run = Experiment(ROOT / "profiles" / f"{profile}.yaml", ROOT / "build" / profile)
    found: list[dict[str, object]] = []
    for model in MODELS:
        generator = LocalGenerator(TransformersScorer(run.model(model)), model)
        for spec in run.profile.canaries:
            about = {"profile": profile, "model": model, "dataset": spec.name}
            about |= {"examples": spec.examples, "dup_count": spec.dup_count}
            found += [about | row for row in of_set(run, generator, spec.name)]
            print(pd.DataFrame(found[-len(SETTINGS) - 1 :]).to_string(), flush=True)
    return found


def of_set(run: Experiment, generator: LocalGenerator, name: str) -> list[dict[str, object]]:
    """Rows of all settings on one set, and of the test on log-probabilities."""
    test_set = run.test_set(name)
    seed = run.profile.seed
    texts = {}
    for temperature, (samples, tokens) in SAMPLED.items():
        request = Request(seed=seed, directory=run.build / "texts", name=generator.name)
        work = GenerationAudit(generator, test_set, request, Sampling(samples, tokens, temperature))
        work.store.fill(generator, work.prompts, work.effective_sampling)
        stored, _ = work.store.stored()
        texts[temperature] = [stored[i] for i in range(len(test_set.examples))]
    rows = []
    for setting in SETTINGS:
        each = [written[: setting.samples] for written in texts[setting.temperature]]
        if setting.tokens < SAMPLED[setting.temperature][1]:
            each = [shortened(generator, written, setting.tokens) for written in each]
        scores = SIMILARITIES[setting.similarity](test_set.examples, each)
        rng = random_stream(seed, "study of generated text", name)
        result = generated_successor_test(scores, resamples=ORDERINGS, rng=rng)
        row = asdict(setting) | {"z": result.z, "p": result.p, "log10_p": result.log10_p}
        if setting == DEFAULT:
            row["redrawn_rejected"] = redrawn(scores, rng)
        rows.append(row)
    test = TESTS["successor"]
    plan, permutations = profile_plan(run.profile.scoring, test, len(test_set.examples))
    result = test.result(run.score(generator.name, name, plan, permutations), permutations)
    found = {"similarity": "log-probabilities", "z": result.z}
    return [*rows, found | {"p": result.p, "log10_p": result.log10_p}]


def shortened(generator: LocalGenerator, texts: Sequence[str], tokens: int) -> list[str]:
    """Return the first tokens of each text."""
    tokenizer = generator.scorer.tokenizer
    return [str(tokenizer.decode(ids[:tokens])) for ids in tokenize(tokenizer, texts)]


def redrawn(scores: np.ndarray, rng: np.random.Generator) -> float:
    """Share of redrawn orders that are rejected at 0.05."""
    orders = (rng.permutation(len(scores)) for _ in range(REDRAWN))
    p = [
        generated_successor_test(scores[np.ix_(order, order)], resamples=OF, rng=rng).p
        for order in orders
    ]
    return float(np.mean(np.array(p) <= 0.05))


def differences(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean z of each setting on the planted sets, and its difference from the default."""
    keys = list(asdict(DEFAULT))
    planted = rows[(rows["model"] == "contaminated") & rows["samples"].notna()]
    z = planted.pivot(index=["profile", "dataset"], columns=keys, values="z")
    less = z.sub(z[tuple(asdict(DEFAULT).values())], axis=0)
    by = less.groupby("profile")
    means = {"z": z.groupby("profile").mean(), "difference": by.mean(), "error": by.sem()}
    return pd.concat({name: each.T for name, each in means.items()}, axis=1)


def main() -> None:
    """Run the study on the profiles of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("profiles", nargs="+")
    profiles = parser.parse_args().profiles
    rows = pd.DataFrame(chain.from_iterable(map(rows_of, profiles)))
    with replacing(ROOT / "docs" / "measurements" / "generated.csv") as path:
        rows.round(6).to_csv(path, index=False, lineterminator="\n")
    print(differences(rows).round(2).to_string())


if __name__ == "__main__":
    main()
