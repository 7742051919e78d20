"""A second model as a yardstick: log-probabilities of the same texts in the same unit.

Per byte, any two models compare, each with its own tokenizer: both score all bytes of a text. Per
token, they must cut it alike; a mean over other tokens would compare nothing and is refused.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from contamination.errors import InputError
from contamination.membership import scores
from contamination.membership.signals import Signals, log_prob_signals
from contamination.scoring.contract import Scorer
from contamination.testsets.tokens import tokenize


def against_reference(
    scorer: Scorer,
    reference: Scorer,
    texts: Sequence[str],
    signals: Sequence[Signals],
    *,
    per: Literal["byte", "token"],
) -> list[tuple[float, float]]:
    """Log-probability of each text under the model and under the reference, nats per unit.

    Parameters
    ----------
    signals : of the texts under `scorer`.
    per : "byte" is `scores.log_likelihood_per_byte`, "token" is `scores.loss`.

    Raises
    ------
    InputError
        Per token, a text that the reference model cuts into other tokens; per byte, a tokenizer
        with a token for what it does not know.
    """
    ours, theirs = (tokenize(side.tokenizer, texts) for side in (scorer, reference))
    if per == "token":
        for number, pair in enumerate(zip(ours, theirs, strict=True)):
            if not np.array_equal(*pair):
                raise InputError(
                    f"text {number} has other tokens under the reference model, so that means over "
                    "tokens do not compare; compare per byte"
                )
        others = log_prob_signals(reference, theirs)
        return [(scores.loss(a), scores.loss(b)) for a, b in zip(signals, others, strict=True)]
    _require_every_byte(scorer, ours)
    _require_every_byte(reference, theirs)
    others = log_prob_signals(reference, theirs)
    value = scores.log_likelihood_per_byte
    return [
        (value(a, text), value(b, text)) for a, b, text in zip(signals, others, texts, strict=True)
    ]


def _require_every_byte(scorer: Scorer, sequences: Sequence[np.ndarray]) -> None:
    unknown = scorer.tokenizer.unk_token_id
    for number, ids in enumerate(sequences):
        if unknown is not None and unknown in ids:
            raise InputError(
                f"text {number} has characters that a tokenizer of the two models does not know, "
                "and their bytes would cost nothing; leave it out, or give another reference"
            )
