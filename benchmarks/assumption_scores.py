"""What each score of docs/membership.md is worth where the truth is known: AUC, one row a score.

    CONTAMINATION_DATA=DIRECTORY .venv/bin/python benchmarks/assumption_scores.py

Texts are those of notebook 08, as many from each domain on both sides. Four phases are judged:

- control: texts that will be read again, before they are; every AUC should be near 0.5;
- read once: texts of the corpus under the clean model;
- read again: the control's texts after the fine-tuning of notebook 08, which is done if it is not;
- planted, planted control: multiple-choice items of the profile `benchmarks`, which planted the
  first ones of two sets; later ones of the same files are the non-members. The control judges the
  same items by the model that has read none of them.

Directions are those of the scores; none is chosen here. Writes
docs/measurements/assumption_scores.csv.
"""

import argparse
import datetime
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from tqdm import tqdm

from contamination.device import describe
from contamination.files import replacing
from contamination.membership.api import DEFAULT_COLUMNS, membership_scores
from contamination.membership.evaluate import evaluate
from contamination.membership.generation import (
    completion_scores,
    generation_variation,
    metadata_gain,
)
from contamination.membership.multiple_choice import Item, option_order, slot_guessing
from contamination.membership.neighbours import blank_neighbours, character_neighbours
from contamination.membership.similarity import ngram_overlap
from contamination.randomness import random_stream
from contamination.scoring.local import TransformersScorer
from contamination.testsets.records import read_records
from contamination.testsets.sources import DATA_VARIABLE
from reproduction.run.corpus import read_documents
from reproduction.run.experiment import Experiment
from reproduction.run.fine_tuning import fine_tune
from reproduction.run.texts import Domain, domain_texts, to_train_on

ROOT = Path(__file__).parents[1]
LENGTH, TEXTS, SPARE, EPOCHS, LEARNING_RATE = 224, 100, 40, 5, 5e-4  # those of notebook 08
SETS = ("mmlu_professional_psychology", "mmlu_high_school_psychology")
CHANGES = {"letters": character_neighbours, "blanks": blank_neighbours}  # besides words
OPTION = 48  # tokens that a context must leave: 32 of an option, and letters
REFERENCE = "clean-64"
METADATA = "Documentation of the Python package {}:\n"
COLUMNS = ["score", "members", "non_members", "auc", "auc_low", "auc_high"]

Side = dict[str, list[str]]  # domain -> texts


def sides(
    domains: dict[str, Domain], scorer: TransformersScorer, most: int
) -> tuple[Side, Side, Side, str]:
    """Members, spare texts and non-members of the corpus's domains, `most` of each, and a prefix.

    The prefix is a non-member that is on no side.
    """
    found: list[Side] = [{}, {}, {}]
    own = {name: domain for name, domain in domains.items() if domain.members}
    for name, domain in own.items():
        for side, texts in zip(
            found, (domain.members, domain.spare, domain.non_members), strict=True
        ):
            if len(texts) < most:
                raise SystemExit(f"{name}: {len(texts)} texts, {most} wanted; lower --texts")
            side[name] = [scorer.tokenizer.decode(ids) for ids in texts[:most]]
    rest = next(iter(own.values())).non_members[most:]
    return *found, scorer.tokenizer.decode(rest[0])


def first_of_each(side: Side, most: int) -> Side:
    """Return at most so many texts of each domain."""
    return {name: texts[:most] for name, texts in side.items()}


def flat(*of: Side) -> list[str]:
    """All texts, side after side."""
    return [text for side in of for texts in side.values() for text in texts]


def judged(table: pd.DataFrame, members: Sequence[int], seed: int, **about: object) -> pd.DataFrame:
    """AUC of every column with its interval, and what else the row tells."""
    found = evaluate(table, members, rng=random_stream(seed, "evaluation"))[COLUMNS]
    return found.assign(**about)


def of_texts(
    scorer: TransformersScorer,
    read: Side,
    others: Side,
    known: Sequence[str],
    prefix: str,
    references: dict[str, Path],
    options: argparse.Namespace,
) -> Iterator[tuple[pd.DataFrame, str]]:
    """Yield tables of scores, members first, each with the name of its reference model."""
    texts = flat(read, others)
    name, path = next(iter(references.items()))
    columns = (*DEFAULT_COLUMNS, "frequent_100")
    scores = membership_scores(
        scorer, texts, reference=path, neighbours=5, prefix=prefix, columns=columns
    )
    of_reference = [column for column in scores if column.startswith("reference")]
    yield scores.drop(columns=of_reference).dropna(axis=1, how="all"), ""
    yield scores[of_reference], name
    for name, path in list(references.items())[1:]:
        again = membership_scores(scorer, texts, reference=path)
        yield again[of_reference], name
    for name, change in CHANGES.items():
        found = membership_scores(scorer, texts, columns=(), neighbours=5, perturbation=change)
        yield found.rename(columns={"neighbour": f"neighbour_{name}"}), ""
    documents = [text for _, text in read_documents(options.corpus)]
    yield pd.DataFrame({"ngram_overlap": ngram_overlap(texts, [*documents, *known])}), ""
    yield completion_scores(scorer, texts), ""
    gains = [
        metadata_gain(scorer, found, METADATA.format(domain))
        for side in (read, others)
        for domain, found in side.items()
    ]
    yield pd.DataFrame({"metadata_gain": np.concatenate(gains)}), ""
    few = flat(*(first_of_each(side, options.few) for side in (read, others)))
    peak = generation_variation(
        scorer, few, share=0.5, samples=options.samples, new_tokens=LENGTH // 2
    )
    yield pd.DataFrame({"generation_variation": peak}), ""


def items(
    scorer: TransformersScorer, name: str, first: int, most: int
) -> tuple[list[Item], list[Item]]:
    """Planted items of a set, and later ones of the same file that ask something else.

    Items that do not fit the context of the model, with an option once more, are left out.
    """
    path = Path(os.environ[DATA_VARIABLE]) / "canaries" / f"{name}.jsonl"
    found = [
        Item(record["input"], tuple(record[key] for key in "ABCD"), "ABCD".index(record["target"]))
        for _, record in read_records(path)
    ]
    planted, known = found[:first], {item.question for item in found[:first]}
    later = [item for item in found[first:] if item.question not in known]
    room = scorer.context - OPTION
    fitting = [
        [
            item
            for item in side
            if len(scorer.tokenizer("\n".join([item.question, *item.options])).input_ids) <= room
        ]
        for side in (planted, later)
    ]
    return fitting[0][:most], fitting[1][:most]


def of_items(
    scorer: TransformersScorer, planted: Sequence[Item], others: Sequence[Item]
) -> pd.DataFrame:
    """Scores of multiple-choice items, the planted ones first."""
    asked = [*planted, *others]
    order = option_order(scorer, asked, rng=random_stream(0, "options"))
    slots = slot_guessing(scorer, asked, rng=random_stream(0, "slots"))
    return pd.concat([order[["option_order"]], slots], axis=1)


def multiple_choice(options: argparse.Namespace) -> Iterator[pd.DataFrame]:
    """Yield a table for each set and model of the profile `benchmarks`."""
    experiment = Experiment(
        ROOT / "profiles" / "benchmarks.yaml", ROOT / "build" / options.benchmarks
    )
    phases = {"contaminated": "planted", "clean": "planted control"}
    for model, phase in phases.items():
        scorer = TransformersScorer(experiment.model(model))
        for name in tqdm(SETS, desc=phase, unit="set"):
            spec = experiment.spec(name)
            planted, others = items(scorer, name, spec.examples, options.items)
            yield judged(
                of_items(scorer, planted, others),
                [1] * len(planted) + [0] * len(others),
                experiment.profile.seed,
                phase=phase,
                model=model,
                texts=name,
                times=spec.dup_count if model == "contaminated" else 0,
                device=describe(scorer.device),
            )


def text_scores(options: argparse.Namespace) -> Iterator[pd.DataFrame]:
    """Yield a table for each phase of the profile `laptop`, and set of scores."""
    experiment = Experiment(ROOT / "profiles" / "laptop.yaml", ROOT / "build" / options.laptop)
    options.corpus = experiment.corpus / "documents.jsonl"
    clean = experiment.model("clean")
    scorer = TransformersScorer(clean)
    domains = domain_texts(experiment, scorer.tokenizer, length=LENGTH, texts=TEXTS, spare=SPARE)
    tuned = fine_tune(
        clean,
        [ids for found in to_train_on(domains).values() for ids in found],
        experiment.build / "finetuned" / "clean",
        epochs=EPOCHS,
        learning_rate=LEARNING_RATE,
        seed=experiment.profile.seed,
    )
    members, spare, others, prefix = sides(domains, scorer, options.texts)
    smaller = {REFERENCE: experiment.model(REFERENCE)}
    phases = {
        "control": (scorer, spare, [], smaller, 0),
        "read once": (scorer, members, [], smaller, 1),
        "read again": (
            *(TransformersScorer(tuned), spare, flat(spare)),
            *(smaller | {"before fine-tuning": clean}, EPOCHS),
        ),
    }
    for phase, (model, read, known, references, times) in phases.items():
        found = of_texts(model, read, others, known, prefix, references, options)
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
    parser.add_argument("--benchmarks", default="benchmarks", help="the same of that profile")
    parser.add_argument("--texts", type=int, default=40, help="of a domain, on each side")
    parser.add_argument("--few", type=int, default=12, help="the same for generation variation")
    parser.add_argument("--samples", type=int, default=20, help="of generation variation")
    parser.add_argument("--items", type=int, default=30, help="of a set, on each side")
    parser.add_argument("--measurements", type=Path, default=ROOT / "docs" / "measurements")
    options = parser.parse_args()
    if DATA_VARIABLE not in os.environ:
        parser.error(f"{DATA_VARIABLE} names no directory with canaries/; data/README.md says how")
    choices = list(multiple_choice(options))
    table = pd.concat([*text_scores(options), *choices], ignore_index=True)
    table = table.fillna({"reference": ""})
    names = ["phase", "model", "texts", "times", "reference", *COLUMNS, "device"]
    table = table[names].round(4).assign(date=datetime.date.today().isoformat())
    with replacing(options.measurements / "assumption_scores.csv") as path:
        table.to_csv(path, index=False, lineterminator="\n")
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
