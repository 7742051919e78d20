"""AUC of each score of docs/membership.md on texts of known membership, one row a score.

    .venv/bin/python benchmarks/assumption_scores.py

Texts are those of notebook 08, as many from each domain on both sides. Three phases are judged:

- control: texts that will be read again, before they are; every AUC should be near 0.5;
- read once: texts of the corpus under the clean model;
- read again: the control's texts after the fine-tuning of notebook 08, which is done if it is not.

Directions are those of the scores; none is chosen here. Writes
docs/measurements/assumption_scores.csv.
"""

import argparse
import datetime
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import pandas as pd
from tqdm import tqdm

from contamination.device import describe
from contamination.files import replacing
from contamination.membership.api import membership_scores
from contamination.membership.evaluate import evaluate
from contamination.randomness import random_stream
from contamination.scoring.local import TransformersScorer
from reproduction.run.experiment import Experiment
from reproduction.run.fine_tuning import fine_tune
from reproduction.run.texts import Domain, domain_texts, to_train_on

ROOT = Path(__file__).parents[1]
LENGTH, TEXTS, SPARE, EPOCHS, LEARNING_RATE = 224, 100, 40, 5, 5e-4  # those of notebook 08
REFERENCE = "clean-64"
COLUMNS = ["score", "members", "non_members", "auc", "auc_low", "auc_high"]

Side = dict[str, list[str]]  # domain -> texts


def sides(
    domains: dict[str, Domain], scorer: TransformersScorer, most: int
) -> tuple[Side, Side, Side]:
    """Members, spare texts and non-members of the corpus's domains, `most` of each."""
    found: list[Side] = [{}, {}, {}]
    own = {name: domain for name, domain in domains.items() if domain.members}
    for name, domain in own.items():
        for side, texts in zip(
            found, (domain.members, domain.spare, domain.non_members), strict=True
        ):
            if len(texts) < most:
                raise SystemExit(f"{name}: {len(texts)} texts, {most} wanted; lower --texts")
            side[name] = [scorer.tokenizer.decode(ids) for ids in texts[:most]]
    return found[0], found[1], found[2]


def flat(*sides_of_domains: Side) -> list[str]:
    """Return all texts, side after side."""
    texts: list[str] = []
    for side in sides_of_domains:
        for texts_of_domain in side.values():
            texts += texts_of_domain
    return texts


def judged(table: pd.DataFrame, members: Sequence[int], seed: int, **about: object) -> pd.DataFrame:
    """AUC of every column with its interval, and what else the row tells."""
    found = evaluate(table, members, rng=random_stream(seed, "evaluation"))[COLUMNS]
    return found.assign(**about)


def of_texts(
    scorer: TransformersScorer,
    read: Side,
    others: Side,
    references: dict[str, Path],
) -> Iterator[tuple[pd.DataFrame, str]]:
    """Yield tables of scores, members first, each with the name of its reference model."""
    texts = flat(read, others)
    name, path = next(iter(references.items()))
    scores = membership_scores(scorer, texts, reference=path, neighbours=5)
    of_reference = [column for column in scores if column.startswith("reference")]
    yield scores.drop(columns=of_reference).dropna(axis=1, how="all"), ""
    yield scores[of_reference], name
    for name, path in list(references.items())[1:]:
        again = membership_scores(scorer, texts, reference=path)
        yield again[of_reference], name


def text_scores(options: argparse.Namespace) -> Iterator[pd.DataFrame]:
    """Yield a table for each phase of the profile `laptop`, and set of scores."""
    experiment = Experiment(ROOT / "profiles" / "laptop.yaml", ROOT / "build" / options.laptop)
    clean = experiment.model("clean")
    scorer = TransformersScorer(clean)
    domains = domain_texts(experiment, scorer.tokenizer, length=LENGTH, texts=TEXTS, spare=SPARE)
    tuned = fine_tune(
        clean,
        list(chain.from_iterable(to_train_on(domains).values())),
        experiment.build / "finetuned" / "clean",
        epochs=EPOCHS,
        learning_rate=LEARNING_RATE,
        seed=experiment.profile.seed,
    )
    members, spare, others = sides(domains, scorer, options.texts)
    smaller = {REFERENCE: experiment.model(REFERENCE)}
    phases = {
        "control": (scorer, spare, smaller, 0),
        "read once": (scorer, members, smaller, 1),
        "read again": (
            TransformersScorer(tuned),
            spare,
            smaller | {"before fine-tuning": clean},
            EPOCHS,
        ),
    }
    for phase, (model, read, references, times) in phases.items():
        found = of_texts(model, read, others, references)
        for table, reference in tqdm(found, desc=phase, unit="table"):
            half = len(table) // 2
            yield judged(
                table,
                [1] * half + [0] * half,
                experiment.profile.seed,
                phase=phase,
                model="clean" if times < EPOCHS else "clean, fine-tuned",
                texts=f"{len(read)} domains",
                times=times,
                reference=reference,
                device=describe(model.device),
            )


def main() -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--laptop", default="laptop", help="folder of build/ of that profile")
    parser.add_argument("--texts", type=int, default=40, help="of a domain, on each side")
    parser.add_argument("--measurements", type=Path, default=ROOT / "docs" / "measurements")
    options = parser.parse_args()
    table = pd.concat(text_scores(options), ignore_index=True)
    table = table.fillna({"reference": ""})
    names = ["phase", "model", "texts", "times", "reference", *COLUMNS, "device"]
    table = table[names].round(4).assign(date=datetime.date.today().isoformat())
    with replacing(options.measurements / "assumption_scores.csv") as path:
        table.to_csv(path, index=False, lineterminator="\n")
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
