"""What a model still says of a text: how likely it is, its completion, answers to questions on it.

Shi et al. (section 7) ask an unlearned model to go on with the story, and for answers.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

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

MARKER = "\nAnswer:"


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


def probe_model(
    scorer: TransformersScorer,
    chunks: Sequence[str],
    questions: Sequence[Sequence[Question]] = (),
    *,
    k: float = 20,
    most: int = 64,
) -> pd.DataFrame:
    """Score every chunk under one model, and see what the model brings back of it, a row per chunk.

    Columns: min_k (Min-K% Prob, nats), completion (ROUGE-L recall of the rest), exact (whether all
    tokens come back) and, with questions, answers (mean ROUGE-L recall; NaN without a question).
    Raises InputError for questions of other chunks, and what scoring and writing raise.

    Parameters
    ----------
    chunks : of the text that was to be forgotten.
    questions : of every chunk; without any, nothing is asked.
    k : per cent of Min-K% Prob.
    most : tokens of the second half of a chunk, and of an answer, that are compared.
    """
    if questions and len(questions) != len(chunks):
        raise InputError(
            f"questions of {len(questions)} chunks, and there are {len(chunks)}: give a list for "
            "each chunk"
        )
    table = pd.DataFrame({"min_k": chunk_scores(scorer, chunks, k=k)})
    completed = completion_scores(scorer, chunks, most=most)
    table["completion"] = completed["rouge_l_recall"]
    table["exact"] = completed["verbatim"] == 1
    if questions:
        of_chunk = [number for number, some in enumerate(questions) for _ in some]
        asked = [question for some in questions for question in some]
        recall = pd.Series(answer_recall(scorer, asked, most=most) if asked else [], dtype=float)
        table["answers"] = recall.groupby(np.array(of_chunk, dtype=int)).mean()
    return table
