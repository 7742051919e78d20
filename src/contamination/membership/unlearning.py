"""What a model still knows that was made to forget (Shi, section 7).

Shi et al. audit LLaMA2-7B-WhoIsHarryPotter (Eldan and Russinovich 2023). A chunk of the forgotten
text is suspicious where unlearning hardly moved its Min-K% Prob: the ratio of the scores of the
unlearned and the original model lies within (1 / 1.15, 1.15). The unlearned model is then asked to
complete such chunks, and to answer questions about them. What it brings back is measured by ROUGE-L
recall, beside the same for other chunks and for a model that never read the text.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from contamination.errors import InputError

Floats = NDArray[np.float64]

WINDOW = 1.15


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


def audit_unlearning(probed: Mapping[str, pd.DataFrame], *, window: float) -> pd.DataFrame:
    """Audit an unlearned model chunk by chunk.

    Returns chunk (number, from 0), min_k_original, min_k_unlearned, ratio, suspicious, and for
    every model NAME what `probe_model` found: completion_NAME, exact_NAME and, with questions,
    answers_NAME. Raises InputError if one of the two models or every chunk is missing, and as
    `score_ratio`.

    Parameters
    ----------
    probed : table of `probe_model` of the models `original` and `unlearned`, and of models of other
        names to compare with, such as one that never read the text.
    """
    if not {"original", "unlearned"} <= set(probed) or not len(probed["original"]):
        raise InputError("give the models `original` and `unlearned`, and at least one chunk")
    before, after = (probed[name]["min_k"].to_numpy() for name in ("original", "unlearned"))
    table = pd.DataFrame({"chunk": range(len(before)), "min_k_original": before})
    table["min_k_unlearned"] = after
    table["ratio"] = score_ratio(before, after)
    table["suspicious"] = is_suspicious(table["ratio"], window=window)
    for name, found in probed.items():
        for column in found.columns.drop("min_k"):
            table[f"{column}_{name}"] = found[column].to_numpy()
    return table
