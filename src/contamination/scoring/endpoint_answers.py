"""The proof that an answer belongs to the tokens sent, whatever protocol it came in.

A server that puts a token of its own before the prompt, leaves one out or cuts the text up anew
scores other tokens than those of the test set; orderings then no longer share their tokens, and the
tests of this project mean nothing. So every answer is checked.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from transformers import PreTrainedTokenizerBase

from contamination.errors import InputError

ADVICE = "use a server that scores prompts of token ids, such as vLLM or SGLang"
NO_EXTRAS = "turn that off (add_special_tokens, add_bos_token)"
ROUNDING = 1e-3  # nats that a log-probability may lie above 0
BRIEF = 60  # characters of what a server gave, in a message
ZERO_PROBABILITY = -9999.0  # what vLLM writes for minus infinity

PromptAs = Literal["token ids", "text", "text without the start token"]


class NoPromptLogprobs(InputError):
    """The answer holds no log-probabilities of the prompt: another format may bring them."""


class Misread(InputError):
    """The answer is not about the tokens sent."""


class Position(NamedTuple):
    """What an answer says of one token; None where it says nothing. Not checked yet."""

    logprob: Any
    id: int | None = None
    text: str | None = None


class Reading(NamedTuple):
    """What an answer says, not checked yet.

    Attributes
    ----------
    positions : of the prompt's tokens from the first that was asked for, which has no value.
    generated : whether tokens that were generated may follow.
    counted : tokens of the prompt as the server counts them; None or 0 where it does not.
    """

    positions: list[Position]
    generated: bool
    counted: Any


class Spelling:
    """Texts by which servers call the tokens of a tokenizer."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self._tokenizer = tokenizer
        self._special = frozenset(tokenizer.all_special_tokens)
        self.size = len(tokenizer)
        self._known = lru_cache(maxsize=1 << 16)(self._texts)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of the tokens, special ones included, nothing tidied up."""
        return str(self._tokenizer.decode(list(ids), clean_up_tokenization_spaces=False))

    def _texts(self, token: int) -> tuple[set[str], bool]:
        """Return the texts, and whether the token is whole: pieces of a character have no text."""
        decoded = self.decode([token])
        raw = str(self._tokenizer.convert_ids_to_tokens(token))
        texts = {raw, raw.replace("▁", " "), f"token_id:{token}"}
        if raw in self._special:
            texts.add("")
        whole = "\N{REPLACEMENT CHARACTER}" not in decoded
        return texts | {decoded} if whole else texts, whole

    def fits(self, text: str, token: int, *, surely: bool) -> bool:
        """Whether a server that says `text` may mean (or surely means) that token."""
        texts, whole = self._known(token)
        # Servers call a piece of a character this and that, but not by the name of another token.
        return text in texts or not (whole or surely or text in self._special)

    def describe(self, token: int) -> str:
        """Name a token by id and text, for messages."""
        known = 0 <= token < self.size
        return f"{token} ({self.decode([token])!r})" if known else str(token)


@dataclass(frozen=True)
class Route(ABC):
    """One way to ask a server: a protocol, its wire format, and the form of the prompt.

    Attributes
    ----------
    tails : whether the log-probabilities of a prompt's end can be had without those before.
    """

    spelling: Spelling
    prompt_as: PromptAs
    tails: ClassVar[bool] = False

    @property
    @abstractmethod
    def name(self) -> str:
        """What the format is called, in messages."""

    @abstractmethod
    def body(self, prompt: list[int], skip: int = 0) -> dict[str, Any]:
        """Return the JSON of the request; the first `skip` values are not needed."""

    @abstractmethod
    def positions(self, answer: dict[str, Any], prompt: Sequence[int], skip: int) -> Reading:
        """Take an answer apart; what is raised other than an InputError means another format."""

    @abstractmethod
    def served(self, answer: dict[str, Any]) -> Any:
        """Return what the server says answered: it may not change. None where it does not say."""

    def read(self, answer: Any, prompt: list[int], skip: int = 0) -> np.ndarray:
        """Return the log-probabilities of prompt[1:], or of prompt[1 + skip:], float32, nats.

        Raises NoPromptLogprobs if the answer holds none, Misread if they belong to other tokens or
        may do so, and InputError if they are no log-probabilities.
        """
        try:
            positions, generated, counted = self.positions(answer, prompt, skip)
        except InputError:
            raise
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            raise NoPromptLogprobs(f"the answer is not in the format {self.name!r}") from None
        begin = skip if self.tails else 0
        asked = prompt[begin:]
        self._require_same_tokens(positions, asked, generated=generated)
        if counted != len(prompt) and (counted or begin):  # of what is left out it is the proof
            raise Misread(
                f"the server counts {counted} tokens in a prompt of {len(prompt)}, so it adds or "
                f"drops some; {NO_EXTRAS}"
            )
        if positions[0].logprob and not begin:
            raise Misread(
                "the server scores the first token of the prompt, so it hides one before it; "
                f"{NO_EXTRAS}"
            )
        values = [position.logprob for position in positions[1 : len(asked)]]
        return _to_logprobs(values, begin + 1)

    def _require_same_tokens(
        self, positions: list[Position], prompt: list[int], *, generated: bool
    ) -> None:
        """Raise Misread, with what the server seems to do, unless it speaks of the prompt."""
        length, sent = len(positions), len(prompt)
        if all(position.id is None and position.text is None for position in positions[:sent]):
            raise Misread(f"the server does not tell which tokens it scored; {ADVICE}")
        fits = length >= sent if generated else length == sent
        pairs = enumerate(zip(positions, prompt, strict=False))
        different = [t for t, (position, token) in pairs if not self._is_about(position, token)]
        if fits and not different:
            return
        if self._begins_with(positions[1:], prompt):
            raise Misread(
                f"the server puts a token of its own ({self._describe(positions[0])}) before the "
                f"prompt; {NO_EXTRAS}"
            )
        if self._begins_with(positions, prompt[1:]):
            raise Misread(f"the server leaves out the first token of the prompt; {ADVICE}")
        if not different:
            raise Misread(
                f"the server gives {length} log-probabilities for a prompt of {sent} tokens; "
                f"{ADVICE}"
            )
        first = different[0]
        raise Misread(
            f"the server gives {self._describe(positions[first])} at position {first}, where "
            f"{self.spelling.describe(prompt[first])} was sent ({length} tokens for {sent}): it "
            "tells its likeliest tokens alone, cuts the prompt up anew, or has another tokenizer; "
            f"name the tokenizer of the model, or {ADVICE}"
        )

    def _begins_with(self, positions: list[Position], tokens: list[int]) -> bool:
        pairs = zip(positions, tokens, strict=False)
        return len(positions) >= len(tokens) and all(self._is_about(*pair) for pair in pairs)

    def _is_about(self, position: Position, token: int) -> bool:
        """Whether the answer is about that token; prompts of text need positive proof."""
        if position.id is not None:
            return position.id == token
        surely = self.prompt_as != "token ids"
        if position.text is None:
            return not surely
        return self.spelling.fits(position.text, token, surely=surely)

    def _describe(self, position: Position) -> str:
        if position.id is not None:
            return self.spelling.describe(position.id)
        return "unnamed" if position.text is None else _brief(position.text)


def _brief(value: Any) -> str:
    """Name what a server gave, however much it is."""
    if isinstance(value, list | dict):
        return f"a {type(value).__name__}"
    text = repr(value)
    return text if len(text) <= BRIEF else f"{text[:BRIEF]}…"


def _to_logprobs(values: Sequence[Any], first: int) -> np.ndarray:
    """Turn what the server gave into float32; InputError for what is no log-probability."""
    for position, value in enumerate(values, start=first):
        where = f"for the token at position {position}"
        if type(value) not in (int, float):  # to Python, true is 1
            raise InputError(
                f"the server gives no log-probability ({_brief(value)}) {where}; {ADVICE}, with "
                "prefix caching off"
            )
        if not value > ZERO_PROBABILITY:  # NaN is not, either
            raise InputError(
                f"the server gives {_brief(value)} {where}: the model is damaged, overflows in its "
                "precision, or is not allowed that token"
            )
        if value > ROUNDING:
            raise InputError(
                f"the server gives {_brief(value)} {where}, but a log-probability is at most 0; "
                f"{ADVICE}"
            )
    return np.minimum(np.array(values, dtype=np.float32), np.float32(0))
