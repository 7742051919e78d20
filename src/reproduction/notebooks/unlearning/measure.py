"""The passes of notebook 11: a model learns a text and forgets a part of it.

Eldan and Russinovich (2023) fine-tune a model on the text to be forgotten with generic
expressions in the place of its own. In their spirit, and no more than that: a model
that knows questions and answers is fine-tuned on some of the questions with answers to
other questions. It reads the rest as it is, the retain set of other methods. Which is
which is known.
"""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from contamination.errors import InputError
from contamination.membership.api import cut_spans, membership_scores
from contamination.membership.rouge import rouge_l
from contamination.randomness import random_stream
from contamination.scoring.generation import LocalGenerator, Sampling
from contamination.scoring.local import TransformersScorer
from contamination.scoring.processes import distribute
from contamination.testsets.tokens import tokenize
from reproduction.notebooks.unlearning.settings import (
    CLEAN,
    ORIGINAL,
    UNLEARNED,
    Settings,
)
from reproduction.run.experiment import Experiment
from reproduction.run.fine_tuning import fine_tune

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

MARKER = "\nAnswer:"  # what stands before the answer
SPAN = 128  # tokens that fine-tuning reads at once, or the context if that is less


def measure(experiment: Experiment, settings: Settings) -> dict[str, pd.DataFrame]:
    """Teach the contaminated model a text, make it forget a share, and ask three models.

    Returns
    -------
    chunks : chunk (number), and treated: whether it is to be forgotten.
    counts : chunks, treated ones and other_answers, that take the place of theirs.
    original, unlearned, clean : of `ask_model`, a row per chunk.
    """
    chunks = list(experiment.test_set(settings.dataset).examples[: settings.chunks])
    others = _other_records(experiment, settings.dataset, chunks)
    rng = random_stream(experiment.profile.seed, "unlearning")
    treated = draw_treated(len(chunks), settings.share, rng=rng)
    to_learn = shuffled_copies(chunks, settings.dup_count, rng=rng)
    to_forget = texts_to_forget_by(
        chunks,
        treated,
        others,
        dup_count=settings.forget_dup_count,
        keep_dup_count=settings.keep_dup_count,
        rng=rng,
    )
    task = partial(_train_models, experiment, settings, to_learn, to_forget)
    distribute("fine-tune", [task])
    folder = experiment.build / "unlearning"
    scorers = {
        ORIGINAL: TransformersScorer(folder / ORIGINAL),
        UNLEARNED: TransformersScorer(folder / UNLEARNED),
        CLEAN: TransformersScorer(experiment.model(CLEAN)),
    }
    tokenizers = {name: scorer.tokenizer for name, scorer in scorers.items()}
    require_same_tokens(tokenizers, chunks)
    ask = partial(ask_model, chunks=chunks, k=settings.k)
    tasks = [partial(ask, scorer) for scorer in scorers.values()]
    answers = dict(zip(scorers, distribute("ask", tasks), strict=True))
    counts = {
        "chunks": len(chunks),
        "treated": treated.sum(),
        "other_answers": len(others),
    }
    return answers | {
        "chunks": pd.DataFrame({"chunk": range(len(chunks)), "treated": treated}),
        "counts": pd.DataFrame([counts]),
    }


def _other_records(
    experiment: Experiment,
    dataset: str,
    chunks: Sequence[str],
) -> list[str]:
    """Return the other records of all canary sets with the template of this one."""
    template = experiment.test_set(dataset).template
    records: dict[str, None] = {}  # in their order, each once
    for spec in experiment.profile.canaries:
        test_set = experiment.test_set(spec.name)
        if test_set.template == template:
            records |= dict.fromkeys(test_set.examples)
    return [record for record in records if record not in set(chunks)]


def _train_models(
    experiment: Experiment,
    settings: Settings,
    to_learn: Sequence[str],
    to_forget: Sequence[str],
) -> None:
    """Train the original model from the contaminated one, and the unlearned from it."""
    folder = experiment.build / "unlearning"
    base = experiment.model("contaminated")
    span = min(SPAN, experiment.profile.model.n_positions)
    scorer = TransformersScorer(base)
    original = fine_tune(
        base,
        cut_spans(scorer, to_learn, span),
        folder / ORIGINAL,
        learning_rate=settings.learning_rate,
        seed=experiment.profile.seed,
        batch_size=settings.batch_size,
    )
    fine_tune(
        original,
        cut_spans(scorer, to_forget, span),
        folder / UNLEARNED,
        learning_rate=settings.forgetting_rate,
        seed=experiment.profile.seed,
        batch_size=settings.batch_size,
    )


def draw_treated(
    chunks: int,
    share: float,
    *,
    rng: np.random.Generator,
) -> NDArray[np.bool_]:
    """Draw the chunks to be forgotten, (chunks,): this share of them, and at least one.

    Raises InputError for a share that leaves no chunk on one of the sides.
    """
    count = max(1, round(share * chunks))
    if not 0 < share < 1 or count >= chunks:
        raise InputError(
            f"a share of {share:g} of {chunks} chunks: leave some on both sides",
        )
    return np.isin(np.arange(chunks), rng.choice(chunks, size=count, replace=False))


def shuffled_copies(
    texts: Sequence[str],
    times: int,
    *,
    rng: np.random.Generator,
) -> list[str]:
    """Return the texts several times over, each time in another order."""
    copies: list[str] = []
    for _ in range(times):
        copies += [texts[i] for i in rng.permutation(len(texts))]
    return copies


def texts_to_forget_by(
    chunks: Sequence[str],
    treated: NDArray[np.bool_],
    others: Sequence[str],
    *,
    dup_count: int,
    keep_dup_count: int,
    rng: np.random.Generator,
) -> list[str]:
    """Return texts that make a model forget the treated chunks and keep the others.

    Parameters
    ----------
    chunks
        Questions with answers.
    treated
        Whether each chunk is to be forgotten.
    others
        Records whose answers replace those of the treated chunks; none is used twice
        before all were used.
    dup_count
        Number of copies of each treated question.
    keep_dup_count
        Number of copies of each other chunk.
    rng
        Draws answers and order.

    Raises
    ------
    InputError
        Without other records, and for a text without a question and an answer.
    """
    if not others:
        raise InputError(
            "no other canary set has the template of this one: no answers to swap",
        )
    forget = list(compress(chunks, treated))
    keep = list(compress(chunks, ~treated))
    questions = [split_question(chunk)[0] for chunk in forget] * dup_count
    answers = [split_question(record)[1] for record in others]
    drawn = shuffled_copies(answers, math.ceil(len(questions) / len(answers)), rng=rng)
    texts = [f"{question} {answer}\n" for question, answer in zip(questions, drawn, strict=False)]
    texts += keep * keep_dup_count
    return shuffled_copies(texts, 1, rng=rng)


def split_question(text: str) -> tuple[str, str]:
    """Divide a record into its question, marker included, and the expected answer.

    Raises InputError if the text has no marker, or no answer behind it.
    """
    before, marker, answer = text.partition(MARKER)
    if not marker or not answer.strip():
        raise InputError(
            f"{text[:40]!r}: no answer after {MARKER!r}; take a set of questions",
        )
    return before + marker, answer.strip()


def require_same_tokens(
    tokenizers: Mapping[str, "PreTrainedTokenizerBase"],
    chunks: Sequence[str],
) -> None:
    """Raise InputError unless all models cut the chunks into the same tokens."""
    (first, *_) = tokenizers
    expected = tokenize(tokenizers[first], chunks)
    for name, tokenizer in tokenizers.items():
        tokens = tokenize(tokenizer, chunks)
        for number, (ours, theirs) in enumerate(zip(expected, tokens, strict=True)):
            if not np.array_equal(ours, theirs):
                raise InputError(
                    f"chunk {number} has other tokens under the {name} model than under "
                    f"the {first} one, so the ratio of their scores means nothing; give "
                    "models with one tokenizer",
                )


def ask_model(
    scorer: TransformersScorer,
    chunks: Sequence[str],
    *,
    k: float,
) -> pd.DataFrame:
    """Score every chunk under one model, and compare the model's continuation with it.

    All is written greedily, and as many tokens as are expected.

    Returns
    -------
    min_k : Min-K% Prob, nats.
    loss : mean log-probability of a token, nats.
    completion : ROUGE-L recall of the second half, written after the first.
    exact : whether the second half comes back word for word.
    answers : ROUGE-L recall of the answer, of the line written after the question
        alone.
    """
    table = membership_scores(scorer, chunks, columns=[f"min_k_{k:g}", "loss"])
    rows = []
    for chunk in chunks:
        words = chunk.split(" ")
        half = " ".join(words[: len(words) // 2])
        rest = chunk.removeprefix(half).rstrip()
        completion = write_after(scorer, half, rest)
        question, answer = split_question(chunk)
        line = write_after(scorer, question, f" {answer}").strip().partition("\n")[0]
        rows.append(
            {
                "completion": rouge_l(completion, rest).recall,
                "exact": completion.split() == rest.split(),
                "answers": rouge_l(line, answer).recall,
            },
        )
    scores = table.set_axis(["min_k", "loss"], axis=1)
    return pd.concat([scores, pd.DataFrame(rows)], axis=1)


def write_after(scorer: TransformersScorer, prompt: str, expected: str) -> str:
    """Return the greedy continuation of a prompt, as long as the expected text."""
    (ids,) = tokenize(scorer.tokenizer, [expected])
    sampling = Sampling(samples=1, tokens=len(ids), temperature=0)
    ((text,),) = LocalGenerator(scorer, "the model").generate([prompt], sampling)
    return text
