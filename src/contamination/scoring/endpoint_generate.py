"""SGLang's own `/generate`: only the log-probabilities of a prompt's end are asked for.

The answer is then as short as that end, and the server may take what is before it from its cache
(RadixAttention). `logprob_start_len` is the position of the last token before the end: SGLang
gives it no value, keeps nothing behind it from the cache, and so computes it again. A `rid` names
the prompt, which the answer repeats: of the tokens before the end it gives the number alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from contamination.files import sha256_of
from contamination.scoring.endpoint_answers import (
    ADVICE,
    Misread,
    NoPromptLogprobs,
    Position,
    Reading,
    Route,
)


@dataclass(frozen=True)
class GenerateRoute(Route):
    """The one model that a server of SGLang has."""

    tails: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """What the format is called, in messages."""
        return "generate"

    def body(self, prompt: list[int], skip: int = 0) -> dict[str, Any]:
        """Return the JSON of the request for a prompt of token ids."""
        return {
            "rid": _name(prompt, skip),
            "input_ids": prompt,
            "sampling_params": {"max_new_tokens": 0, "temperature": 1.0},
            "return_logprob": True,
            "logprob_start_len": skip,
        }

    def positions(self, answer: dict[str, Any], prompt: Sequence[int], skip: int) -> Reading:
        """Take an answer apart: [log-probability, id, text] for each token."""
        found = answer["meta_info"]
        entries = found.get("input_token_logprobs")
        if not entries:
            raise NoPromptLogprobs("the answer holds no input_token_logprobs")
        name, _, _ = str(found["id"]).partition("-")  # of the try, which SGLang may not see twice
        if name != _name(prompt, skip):
            raise Misread(f"the server answers another request; {ADVICE}")
        positions = [Position(entry[0], entry[1]) for entry in entries]
        if any(type(position.id) is not int for position in positions):
            raise TypeError
        return Reading(positions, False, found["prompt_tokens"])

    def served(self, answer: dict[str, Any]) -> Any:
        """Return the version of the weights, which can be replaced while the server runs."""
        return answer["meta_info"].get("weight_version")

    def _is_about(self, position: Position, token: int) -> bool:
        """Allow for SGLang, which calls the last id of the vocabulary 0."""
        return super()._is_about(position, token) or (
            position.id == 0 and token >= self.spelling.size - 1
        )


def _name(prompt: Sequence[int], skip: int) -> str:
    """Name what is asked."""
    return sha256_of(np.asarray(prompt, dtype=np.int64).tobytes(), str(skip))[:32]
