"""A model that is made to forget a part of what it knows by heart, so that an audit can be judged.

Eldan and Russinovich (2023) fine-tune a model on the text to be forgotten with generic expressions
in the place of its own. In their spirit, and no more than that: a model that knows a set of
questions and answers reads a part of the questions again, with answers to other questions. The
other part it reads again as it is, the retain set of other methods. Which is which is known.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from contamination.errors import InputError
from contamination.experiments.unlearning.audit import split_question
from contamination.pretraining.experiment import Experiment


def draw_treated(chunks: int, share: float, *, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Draw the chunks to be forgotten, (chunks,): that share of them, and at least one.

    Raises
    ------
    InputError
        A share that leaves no chunk on one of the sides.
    """
    count = max(1, round(share * chunks))
    if not 0 < share < 1 or count >= chunks:
        raise InputError(f"a share of {share:g} of {chunks} chunks: leave some on both sides")
    treated = np.zeros(chunks, dtype=bool)
    treated[rng.choice(chunks, size=count, replace=False)] = True
    return treated


def substituted(
    examples: Sequence[str], others: Sequence[str], *, copies: int, rng: np.random.Generator
) -> list[str]:
    """Ask every question `copies` times, each time with the answer to another question.

    Parameters
    ----------
    examples : questions with their answers, after `MARKER`.
    others : questions with the answers that take their place, drawn without replacement as long as
        there are any.

    Raises
    ------
    InputError
        No other question, copies below 1, or a text without a marker.
    """
    if not others or copies < 1:
        raise InputError(f"{len(others)} other answers, {copies} copies: give 1 or more of each")
    answers = [split_question(text)[1] for text in others]
    wanted = copies * len(examples)
    rounds = [rng.permutation(len(answers)) for _ in range(-(-wanted // len(answers)))]
    drawn = np.concatenate(rounds)[:wanted]
    prompts = [split_question(text)[0] for text in examples] * copies
    return [f"{prompt} {answers[i]}\n" for prompt, i in zip(prompts, drawn, strict=True)]


def other_examples(experiment: Experiment, dataset: str, examples: Sequence[str]) -> list[str]:
    """Return the examples of all canary sets with the template of `dataset`, less those given.

    Raises
    ------
    InputError
        No such canary set, or the corpus stage has not finished.
    """
    template = experiment.test_set(dataset).template
    sets = [experiment.test_set(spec.name) for spec in experiment.profile.canaries]
    every = [text for one in sets if one.template == template for text in one.examples]
    known = set(examples)
    return [text for text in dict.fromkeys(every) if text not in known]


def shuffled(examples: Sequence[str], copies: int, *, rng: np.random.Generator) -> list[str]:
    """Repeat the examples `copies` times, each time in another order."""
    return [examples[i] for _ in range(copies) for i in rng.permutation(len(examples))]


def to_forget(
    examples: Sequence[str],
    treated: NDArray[np.bool_],
    others: Sequence[str],
    *,
    copies: int,
    kept: int,
    rng: np.random.Generator,
) -> list[str]:
    """Return what is read to forget the treated examples and to keep the others, in random order.

    Parameters
    ----------
    examples, treated : (n,) questions with their answers, and which of them are to be forgotten.
    others : see `substituted`.
    copies : of each treated question, with other answers.
    kept : copies of each example that is not treated, as it is. Without any, what is not treated is
        forgotten as well.

    Raises
    ------
    InputError
        As `substituted`, or `kept` below 0.
    """
    if kept < 0:
        raise InputError(f"{kept} copies of what is kept: give 0 or more")
    pairs = list(zip(examples, treated, strict=True))
    chosen = [text for text, drawn in pairs if drawn]
    texts = substituted(chosen, others, copies=copies, rng=rng)
    texts += [text for text, drawn in pairs if not drawn] * kept
    return [texts[i] for i in rng.permutation(len(texts))]
