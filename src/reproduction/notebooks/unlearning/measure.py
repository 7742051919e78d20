"""The passes of notebook 11: one process makes a model that forgets, then all ask three models."""

import pandas as pd

from contamination.files import sha256_of
from contamination.membership.stored import stored_rows
from contamination.membership.unlearning import probe_model, split_question
from contamination.randomness import random_stream
from contamination.scoring.local import TransformersScorer
from contamination.scoring.processes import deal
from contamination.testsets.tokens import tokenize
from reproduction.notebooks.unlearning.forgetting import (
    draw_treated,
    find_other_examples,
    repeat_shuffled,
    texts_to_forget_by,
)
from reproduction.run.experiment import Experiment
from reproduction.run.fine_tuning import fine_tune_on_texts
from reproduction.run.measured import parts_of

MODELS = ("original", "unlearned", "clean")


def measure(
    experiment: Experiment,
    *,
    dataset: str,
    chunks: int,
    dup_count: int,
    learning_rate: float,
    share: float,
    forget_dup_count: int,
    keep_dup_count: int,
    forgetting_rate: float,
    k: float,
    batch_size: int,
) -> dict[str, pd.DataFrame]:
    """Teach the contaminated model a text, make it forget a share, and probe the models.

    Tables: `chunks` (chunk, treated: whether it is to be forgotten), `counts` (of chunks, treated
    ones and other_answers) and one table of `probe_model` for each of `MODELS`.
    """
    seed, directory = experiment.profile.seed, experiment.build / "unlearned"
    examples = experiment.test_set(dataset).examples[:chunks]
    rng = random_stream(seed, "unlearning")
    treated = draw_treated(len(examples), share, rng=rng)
    again = repeat_shuffled(examples, dup_count, rng=rng)
    others = find_other_examples(experiment, dataset, examples)
    forget = texts_to_forget_by(
        examples,
        treated,
        others,
        dup_count=forget_dup_count,
        keep_dup_count=keep_dup_count,
        rng=rng,
    )

    def make() -> None:
        original = fine_tune_on_texts(
            experiment.model("contaminated"),
            again,
            directory / "original",
            learning_rate=learning_rate,
            seed=seed,
            batch_size=batch_size,
        )
        fine_tune_on_texts(
            original,
            forget,
            directory / "unlearned",
            learning_rate=forgetting_rate,
            seed=seed,
            batch_size=batch_size,
        )

    deal("fine-tune", [make])
    paths = {"clean": experiment.model("clean")}
    probed = {}
    for name in MODELS:
        scorer = TransformersScorer(paths.get(name, directory / name))

        def probe(rows: list[int], scorer: TransformersScorer = scorer) -> pd.DataFrame:
            texts = [examples[i] for i in rows]
            return probe_model(scorer, texts, [[split_question(text)] for text in texts], k=k)

        parts = parts_of(experiment, "unlearning") / name
        work = [len(ids) for ids in tokenize(scorer.tokenizer, examples)]
        key = sha256_of(scorer.revision, repr(k), *examples)
        probed[name] = stored_rows(parts, key, probe, work, scorer)
    counts = {"chunks": [len(examples)], "treated": [treated.sum()], "other_answers": [len(others)]}
    return {
        "chunks": pd.DataFrame({"chunk": range(len(examples)), "treated": treated}),
        "counts": pd.DataFrame(counts),
        **probed,
    }
