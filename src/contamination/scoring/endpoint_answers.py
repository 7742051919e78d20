"""What is asked of a server, and the proof that its answer belongs to the tokens sent.

======================  ===========================================================================
format                  servers
======================  ===========================================================================
prompt_logprobs         vLLM and what is built on it
echo and token ids      SGLang, Fireworks, vLLM: like the next, and the ids that were read
echo                    OpenAI's legacy completions and those made after them; Together, which has
                        the prompt's part in another place
======================  ===========================================================================

A server that puts a token of its own before the prompt, leaves one out or cuts the text up anew
scores other tokens than those of the test set; orderings then no longer share their tokens, and the
tests of this project mean nothing. So every answer is checked.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, zip_longest
from typing import Any, Literal, NamedTuple

import numpy as np
from transformers import PreTrainedTokenizerBase

from contamination.errors import InputError

ADVICE = "use a server that scores prompts of token ids, such as vLLM or SGLang"
NO_EXTRAS = "turn that off (add_special_tokens, add_bos_token)"
ROUNDING = 1e-3  # nats that a log-probability may lie above 0
BRIEF = 60  # characters of what a server gave, in a message
ZERO_PROBABILITY = -9999.0  # what vLLM writes for minus infinity
# One token is generated: to some servers 0 means "no limit". The temperature is 1: some servers
# divide the logits of the prompt by it as well.
SAMPLING = {"max_tokens": 1, "temperature": 1.0}

PromptAs = Literal["token ids", "text", "text without the start token"]


class NoPromptLogprobs(InputError):
    """The answer holds no log-probabilities of the prompt: another format may bring them."""


class Position(NamedTuple):
    """What an answer says of one token; None where it says nothing. Not checked yet."""

    logprob: Any
    id: int | None = None
    text: str | None = None


# The positions, and whether tokens that were generated follow those of the prompt.
Reading = tuple[list[Position], bool]


class Format(NamedTuple):
    """A wire format: fields that ask for log-probabilities, and the reader of the answer.

    The reader takes the answer, its first choice and the prompt. What it raises other than an
    `InputError` means that the answer is in another format.
    """

    name: str
    fields: dict[str, Any]
    read: Callable[[dict[str, Any], dict[str, Any], Sequence[int]], Reading]


def _read_prompt_logprobs(
    answer: dict[str, Any], choice: dict[str, Any], prompt: Sequence[int]
) -> Reading:
    """Null for the first position, then {id: {"logprob": ...}} of the token, and perhaps others."""
    entries = choice.get("prompt_logprobs")
    if not entries or not any(entries):
        raise NoPromptLogprobs("the answer holds no prompt_logprobs")
    positions = []
    for entry, token in zip_longest(entries, prompt[: len(entries)]):
        if entry is None:
            positions.append(Position(None))
        else:
            found = str(token) if str(token) in entry else next(iter(entry), "none")
            positions.append(Position(entry[found]["logprob"], int(found)))
    return positions, False


def _read_echo(answer: dict[str, Any], choice: dict[str, Any], prompt: Sequence[int]) -> Reading:
    """Lists beside each other: tokens, token_logprobs and, from some servers, the ids."""
    parts = [part for part in answer.get("prompt") or [] if "logprobs" in part]
    found = [*parts, choice][0].get("logprobs") or {}
    logprobs = found.get("token_logprobs")
    if not logprobs:
        raise NoPromptLogprobs("the answer holds no token_logprobs")
    if len(logprobs) == 1 < len(prompt):
        raise NoPromptLogprobs("the answer scores what was generated, not the prompt")
    if all(value is None for value in logprobs[: len(prompt)]):
        raise NoPromptLogprobs("the answer scores no token of the prompt")
    tokens = found.get("tokens") or []
    if tokens and len(tokens) != len(logprobs):  # a value too few would move the others
        raise Misread(
            f"the server gives {len(tokens)} tokens and {len(logprobs)} log-probabilities; {ADVICE}"
        )
    ids = found.get("token_ids") or choice.get("prompt_token_ids") or []
    columns = zip_longest(logprobs, ids, tokens)
    positions = [
        Position(value, _id(token), None if text is None else str(text))
        for value, token, text in islice(columns, len(logprobs))
    ]
    return positions, not parts


def _id(token: Any) -> int | None:
    if token is not None and type(token) is not int:  # true is 1 to Python, and 7.5 would become 7
        raise TypeError
    return token


# The most telling first: ids prove more than texts. Strict servers refuse fields unknown to them.
FORMATS = (
    Format("prompt_logprobs", {"prompt_logprobs": 0}, _read_prompt_logprobs),
    Format(
        "echo and token ids", {"echo": True, "logprobs": 1, "return_token_ids": True}, _read_echo
    ),
    Format("echo", {"echo": True, "logprobs": 1}, _read_echo),
)


class Misread(InputError):
    """The answer is not about the tokens sent."""


class Spelling:
    """Texts by which servers call the tokens of a tokenizer."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self._tokenizer = tokenizer
        self._special = frozenset(tokenizer.all_special_tokens)
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
        known = 0 <= token < len(self._tokenizer)
        return f"{token} ({self.decode([token])!r})" if known else str(token)


@dataclass(frozen=True)
class Route:
    """One way to ask a server, by model name, form of the prompt and wire format."""

    model: str
    prompt_as: PromptAs
    format: Format
    spelling: Spelling
    start: int

    def body(self, prompt: list[int]) -> dict[str, Any]:
        """Return the JSON of the request for a prompt of token ids."""
        sent: list[int] | str = prompt
        if self.prompt_as != "token ids":
            server_starts = self.prompt_as != "text" and prompt[0] == self.start
            sent = self.spelling.decode(prompt[server_starts:])
        return {"model": self.model, "prompt": sent, **SAMPLING, **self.format.fields}

    def read(self, answer: Any, prompt: list[int]) -> np.ndarray:
        """Return the log-probabilities of prompt[1:], float32, nats.

        Raises NoPromptLogprobs if the answer holds none, Misread if they belong to other tokens or
        may do so, and InputError if they are no log-probabilities.
        """
        try:
            positions, generated = self.format.read(answer, answer["choices"][0], prompt)
        except InputError:
            raise
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            raise NoPromptLogprobs(
                f"the answer is not in the format {self.format.name!r}"
            ) from None
        self._require_same_tokens(positions, prompt, generated=generated)
        usage = answer.get("usage")
        counted = usage.get("prompt_tokens") if isinstance(usage, dict) else None
        if counted and counted != len(prompt):
            raise Misread(
                f"the server counts {counted} tokens in a prompt of {len(prompt)}, so it adds or "
                f"drops some; {NO_EXTRAS}"
            )
        if positions[0].logprob:
            raise Misread(
                "the server scores the first token of the prompt, so it hides one before it; "
                f"{NO_EXTRAS}"
            )
        return _to_logprobs([position.logprob for position in positions[1 : len(prompt)]])

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


def _to_logprobs(values: Sequence[Any]) -> np.ndarray:
    """Turn what the server gave into float32; InputError for what is no log-probability."""
    for position, value in enumerate(values, start=1):
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
