"""What a model still knows that was made to forget (Shi, section 7).

Shi et al. audit LLaMA2-7B-WhoIsHarryPotter (Eldan and Russinovich 2023). A chunk of the forgotten
text is suspicious where unlearning hardly moved its Min-K% Prob: the ratio of the scores of the
unlearned and the original model lies within (1 / 1.15, 1.15). The unlearned model is then asked to
complete such chunks, and to answer questions about them. What it brings back is measured by ROUGE-L
recall, beside the same for other chunks and for a model that never read the text.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from contamination.errors import InputError
from contamination.membership.generation import completion_scores, continuations
from contamination.membership.scores import min_k
from contamination.membership.signals import log_prob_signals
from contamination.membership.similarity import rouge_l
from contamination.scoring.contract import Scorer
from contamination.scoring.local import TransformersScorer
from contamination.testsets.tokens import tokenize

Floats = NDArray[np.float64]
Question = tuple[str, str]  # prompt, expected answer

WINDOW = 1.15
MARKER = "\nAnswer:"


def score_ratio(original: ArrayLike, unlearned: ArrayLike) -> Floats:
    """Score under the unlearned model by that under the original one, (n,).

    Scores are Min-K% Prob of the same chunks: mean log-probabilities (nats), so below 0. A ratio
    above 1 is a chunk that unlearning made less likely, below 1 one that it made likelier, and 1
    one that it left alone. A chunk that the original model knows by heart has a score near 0, where
    a small change is a large ratio. Raises InputError for other lengths, and for a score that is
    not a finite number below 0.
    """
    before, after = (np.asarray(side, dtype=np.float64) for side in (original, unlearned))
    if before.ndim != 1 or before.shape != after.shape:
        raise InputError(
            f"scores of shape {before.shape} and {after.shape}: give those of the same chunks"
        )
    for number, pair in enumerate(zip(before, after, strict=True)):
        for score in pair:
            if not -np.inf < score < 0:
                raise InputError(
                    f"chunk {number} has score {score}: a ratio needs log-probabilities below 0; "
                    "leave the chunk out"
                )
    ratio: Floats = after / before
    return ratio


def is_suspicious(ratio: ArrayLike, *, window: float = WINDOW) -> NDArray[np.bool_]:
    """Which ratios (n,) lie within (1 / window, window), its ends left out.

    Raises InputError for a window of 1 or less.
    """
    if not window > 1:
        raise InputError(f"a window of {window}: give a number above 1, such as {WINDOW}")
    values = np.asarray(ratio, dtype=np.float64)
    return (values > 1 / window) & (values < window)


def chunk_scores(scorer: Scorer, chunks: Sequence[str], *, k: float = 20) -> Floats:
    """Min-K% Prob of every chunk (nats), (n,).

    Raises InputError for a chunk of fewer than 2 tokens, or a k that is no percentage.
    """
    ids = tokenize(scorer.tokenizer, chunks)
    for number, one in enumerate(ids):
        if len(one) < 2:
            raise InputError(
                f"chunk {number} has {len(one)} token(s), and a score needs 2: leave it out"
            )
    return np.array([min_k(signals, k) for signals in log_prob_signals(scorer, ids)])


def split_question(text: str, marker: str = MARKER) -> Question:
    """Divide the text of a question into a prompt, marker included, and the expected answer.

    Raises InputError if the text has no marker, or no answer behind it.
    """
    before, found, answer = text.partition(marker)
    if not (found and answer.strip()):
        raise InputError(f"{text[:40]!r}: no answer after {marker!r}; give the marker before it")
    return before + found, answer.strip()


def answer_recall(
    scorer: TransformersScorer, questions: Sequence[Question], *, most: int = 64
) -> Floats:
    """ROUGE-L recall of the expected answer in what the model writes after each prompt, (n,).

    The model writes greedily, as many tokens as the expected answer has but `most` at most, and
    what comes after a line end is left out. Raises InputError for a model that does not run here,
    and for an answer as long as its context.
    """
    prompts = tokenize(scorer.tokenizer, [prompt for prompt, _ in questions])
    answers = [ids[:most] for ids in tokenize(scorer.tokenizer, [f" {a}" for _, a in questions])]
    written = continuations(scorer, prompts, new_tokens=max(len(ids) for ids in answers))
    found = []
    for ids, (said,) in zip(answers, written, strict=True):
        text = scorer.tokenizer.decode(said[: len(ids)]).lstrip("\n").partition("\n")[0]
        found.append(rouge_l(text, scorer.tokenizer.decode(ids)).recall)
    return np.array(found)


def audit_unlearning(
    models: Mapping[str, TransformersScorer],
    chunks: Sequence[str],
    *,
    questions: Sequence[Sequence[Question]] = (),
    k: float = 20,
    window: float = WINDOW,
    most: int = 64,
) -> pd.DataFrame:
    """Audit an unlearned model chunk by chunk.

    Returns chunk (number, from 0), min_k_original, min_k_unlearned, ratio, suspicious, and for
    every model NAME completion_NAME (ROUGE-L recall of the rest), exact_NAME (whether all tokens
    come back) and, with questions, answers_NAME (mean ROUGE-L recall). Raises InputError if one of
    the two models or every chunk is missing, and what scoring and writing raise.

    Parameters
    ----------
    models : `original` and `unlearned`, and models of other names to compare with, such as one that
        never read the text.
    chunks : of the text that was to be forgotten.
    questions : of every chunk; without any, nothing is asked.
    most : tokens of the second half of a chunk, and of an answer, that are compared.
    """
    if not {"original", "unlearned"} <= set(models) or not chunks:
        raise InputError("give the models `original` and `unlearned`, and at least one chunk")
    if questions and len(questions) != len(chunks):
        raise InputError(
            f"questions of {len(questions)} chunks, and there are {len(chunks)}: give a list for "
            "each chunk"
        )
    before, after = (chunk_scores(models[name], chunks, k=k) for name in ("original", "unlearned"))
    table = pd.DataFrame({"chunk": range(len(chunks)), "min_k_original": before})
    table["min_k_unlearned"] = after
    table["ratio"] = score_ratio(before, after)
    table["suspicious"] = is_suspicious(table["ratio"], window=window)
    of_chunk = [number for number, some in enumerate(questions) for _ in some]
    asked = [question for some in questions for question in some]
    for name, scorer in models.items():
        completed = completion_scores(scorer, chunks, most=most)
        table[f"completion_{name}"] = completed["rouge_l_recall"]
        table[f"exact_{name}"] = completed["verbatim"] == 1
        if asked:
            # By chunk; a chunk without a question has none.
            recall = pd.Series(answer_recall(scorer, asked, most=most))
            table[f"answers_{name}"] = recall.groupby(of_chunk).mean()
    return table
