"""The passes of notebook 11: one process makes a model that forgets, then all ask three models.

Eldan and Russinovich (2023) fine-tune a model on the text to be forgotten with generic expressions
in the place of its own. In their spirit, and no more than that: a model that knows a set of
questions and answers is fine-tuned on a part of the questions with answers to other questions. On
the other part it is fine-tuned as it is, the retain set of other methods. Which is which is known.
"""

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from contamination.errors import InputError
from contamination.files import sha256_of
from contamination.membership.stored import stored_rows
from contamination.membership.unlearning import probe_model, split_question
from contamination.randomness import random_stream
from contamination.scoring.local import TransformersScorer
from contamination.scoring.processes import deal
from contamination.testsets.tokens import tokenize
from reproduction.run.experiment import Experiment, parts_of
from reproduction.run.fine_tuning import fine_tune

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
    template = experiment.test_set(dataset).template
    examples = experiment.test_set(dataset).examples[:chunks]
    sets = [experiment.test_set(spec.name) for spec in experiment.profile.canaries]
    every = [text for one in sets if one.template == template for text in one.examples]
    others = [text for text in dict.fromkeys(every) if text not in set(examples)]
    rng = random_stream(seed, "unlearning")
    treated = draw_treated(len(examples), share, rng=rng)
    again = _repeat_shuffled(examples, dup_count, rng)
    counts = {"dup_count": forget_dup_count, "keep_dup_count": keep_dup_count}
    forget = texts_to_forget_by(examples, treated, others, **counts, rng=rng)
    teach = partial(fine_tune, seed=seed, batch_size=batch_size)

    def make() -> None:
        known, made = experiment.model("contaminated"), directory / "unlearned"
        original = teach(known, again, directory / "original", learning_rate=learning_rate)
        teach(original, forget, made, learning_rate=forgetting_rate)

    deal("fine-tune", [make])
    probed = {}
    for name in MODELS:
        path = experiment.model(name) if name == "clean" else directory / name
        scorer = TransformersScorer(path)

        def probe(rows: list[int], scorer: TransformersScorer = scorer) -> pd.DataFrame:
            texts = [examples[i] for i in rows]
            return probe_model(scorer, texts, [split_question(text) for text in texts], k=k)

        parts = parts_of(experiment, "unlearning") / name
        work = [len(ids) for ids in tokenize(scorer.tokenizer, examples)]
        key = sha256_of(scorer.revision, repr(k), *examples)
        probed[name] = stored_rows(parts, key, probe, work, scorer)
    sizes = {"chunks": len(examples), "treated": treated.sum(), "other_answers": len(others)}
    return {
        "chunks": pd.DataFrame({"chunk": range(len(examples)), "treated": treated}),
        "counts": pd.DataFrame([sizes]),
        **probed,
    }


def draw_treated(chunks: int, share: float, *, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Draw the chunks to be forgotten, (chunks,): that share of them, and at least one.

    Raises InputError for a share that leaves no chunk on one of the sides.
    """
    count = max(1, round(share * chunks))
    if not 0 < share < 1 or count >= chunks:
        raise InputError(f"a share of {share:g} of {chunks} chunks: leave some on both sides")
    return np.isin(np.arange(chunks), rng.choice(chunks, size=count, replace=False))


def _repeat_shuffled(texts: Sequence[str], times: int, rng: np.random.Generator) -> list[str]:
    """Repeat texts, each time in another order."""
    return [texts[i] for _ in range(times) for i in rng.permutation(len(texts))]


def texts_to_forget_by(
    examples: Sequence[str],
    treated: NDArray[np.bool_],
    others: Sequence[str],
    *,
    dup_count: int,
    keep_dup_count: int,
    rng: np.random.Generator,
) -> list[str]:
    """Return texts that make a model forget the treated examples and keep the others, shuffled.

    A treated question stands there `dup_count` times with answers of `others`, drawn without
    replacement as long as there are any; each other example `keep_dup_count` times as it is. Raises
    InputError without another answer, and for a text without a marker.
    """
    if not others:
        raise InputError("no other canary set has the template of this one: no answers to swap")
    forget, keep = (
        [text for text, drawn in zip(examples, treated, strict=True) if drawn == side]
        for side in (True, False)
    )
    rounds = math.ceil(dup_count * len(forget) / len(others))
    answers = _repeat_shuffled([split_question(text)[1] for text in others], rounds, rng)
    prompts = [split_question(text)[0] for text in forget] * dup_count
    swapped = [f"{prompt} {answer}\n" for prompt, answer in zip(prompts, answers, strict=False)]
    return _repeat_shuffled(swapped + keep * keep_dup_count, 1, rng)
