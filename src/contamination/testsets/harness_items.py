"""Records of multiple-choice items and of questions, as harnesses show them."""

from collections.abc import Sequence
from typing import Any

from contamination.testsets.option_texts import LETTERS


def item(
    question: str, choices: Sequence[str], answer: int | str, delimiter: str
) -> dict[str, Any]:
    """Return the record of a multiple-choice item, or of a question with its answer.

    Choices are empty where there are none. The answer is the number of the right
    option, or the right text. The delimiter stands between question and answer in the
    record's `text`.
    """
    right = answer
    if isinstance(answer, int) and choices:
        right = choices[answer]
    text = {"text": f"{question}{delimiter}{right}"}
    if not choices:
        return text
    return text | {"question": question, "choices": list(choices), "answer": answer}


def sample_item(
    question: str, choices: Sequence[str], target: str | Sequence[str]
) -> dict[str, Any]:
    """Return the `item` of a sample of Inspect.

    Choices are empty where there are none. The target is a text or the letter of a
    choice; of several the first counts, and "" is none.
    """
    targets = [target] if isinstance(target, str) else list(target)
    first = targets[0] if targets else ""
    labels = dict(zip(LETTERS, choices, strict=False))
    right = first if first in choices else labels.get(first.upper(), first)
    answer = list(choices).index(right) if right in choices else first
    return item(question, choices, answer, "\n")
