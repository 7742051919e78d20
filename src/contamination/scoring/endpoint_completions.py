"""OpenAI's completions: the formats in which servers score a prompt, and how each is asked.

======================  ===========================================================================
format                  servers
======================  ===========================================================================
prompt_logprobs         vLLM and what is built on it
echo and token ids      SGLang, Fireworks, vLLM: like the next, and the ids that were read
echo                    OpenAI's legacy completions and those made after them; Together, which has
                        the prompt's part in another place
======================  ===========================================================================

All of them score the whole prompt, however little of it is needed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import Any, NamedTuple

from contamination.scoring.endpoint_answers import (
    ADVICE,
    Misread,
    NoPromptLogprobs,
    Position,
    Reading,
    Route,
)

# One token is generated: to some servers 0 means "no limit". The temperature is 1: some servers
# divide the logits of the prompt by it as well.
SAMPLING = {"max_tokens": 1, "temperature": 1.0}

# The positions, and whether tokens that were generated follow those of the prompt.
Positions = tuple[list[Position], bool]


class Format(NamedTuple):
    """A wire format: fields that ask for log-probabilities, and the reader of the answer.

    The reader takes the answer, its first choice and the prompt. What it raises other than an
    `InputError` means that the answer is in another format.
    """

    name: str
    fields: dict[str, Any]
    read: Callable[[dict[str, Any], dict[str, Any], Sequence[int]], Positions]


def _read_prompt_logprobs(
    answer: dict[str, Any], choice: dict[str, Any], prompt: Sequence[int]
) -> Positions:
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


def _read_echo(answer: dict[str, Any], choice: dict[str, Any], prompt: Sequence[int]) -> Positions:
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


@dataclass(frozen=True)
class CompletionsRoute(Route):
    """A model by its name, asked in one of the formats."""

    model: str
    format: Format
    start: int

    @property
    def name(self) -> str:
        """What the format is called, in messages."""
        return self.format.name

    def body(self, prompt: list[int], skip: int = 0) -> dict[str, Any]:
        """Return the JSON of the request for a prompt of token ids."""
        sent: list[int] | str = prompt
        if self.prompt_as != "token ids":
            server_starts = self.prompt_as != "text" and prompt[0] == self.start
            sent = self.spelling.decode(prompt[server_starts:])
        return {"model": self.model, "prompt": sent, **SAMPLING, **self.format.fields}

    def positions(self, answer: dict[str, Any], prompt: Sequence[int], skip: int) -> Reading:
        """Take an answer apart."""
        found, generated = self.format.read(answer, answer["choices"][0], prompt)
        usage = answer.get("usage")
        counted = usage.get("prompt_tokens") if isinstance(usage, dict) else None
        return Reading(found, generated, counted)

    def served(self, answer: dict[str, Any]) -> Any:
        """Return the name by which the server calls the model."""
        return answer.get("model")
