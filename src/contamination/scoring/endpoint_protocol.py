"""Wire formats: how to ask for the log-probabilities of a prompt, and where they come back.

======================  ===========================================================================
format                  servers
======================  ===========================================================================
prompt_logprobs         vLLM and what is built on it
echo and token ids      SGLang, Fireworks, vLLM: like the next, and the ids that were read
echo                    OpenAI's legacy completions and those made after them; Together, which has
                        the prompt's part in another place
======================  ===========================================================================
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from contamination.errors import InputError

# One token is generated: to some servers 0 means "no limit". The temperature is 1: some servers
# divide the logits of the prompt by it as well.
SAMPLING = {"max_tokens": 1, "temperature": 1.0}


class NoPromptLogprobs(InputError):
    """The answer holds no log-probabilities of the prompt: another format may bring them."""


@dataclass(frozen=True)
class Reading:
    """What an answer says, position by position. Nothing of it is checked.

    Attributes
    ----------
    logprobs : one for each position, None where the server gives none.
    ids, texts : of the tokens, at least as many; None where the server does not tell.
    generated : whether tokens that were generated follow those of the prompt.
    """

    logprobs: Sequence[Any]
    ids: Sequence[int | None]
    texts: Sequence[str | None]
    generated: bool


@dataclass(frozen=True)
class Format:
    """A wire format: fields that ask for log-probabilities, and the reader of the answer."""

    name: str
    fields: dict[str, Any]
    reader: Callable[[dict[str, Any], dict[str, Any], Sequence[int]], Reading]

    def read(self, answer: Any, prompt: Sequence[int]) -> Reading:
        """Find the log-probabilities in the JSON of an answer.

        Raises
        ------
        NoPromptLogprobs
            There are none.
        """
        try:
            return self.reader(answer, answer["choices"][0], prompt)
        except NoPromptLogprobs:
            raise
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            raise NoPromptLogprobs(f"the answer is not in the format {self.name!r}") from None


def _read_prompt_logprobs(
    answer: dict[str, Any], choice: dict[str, Any], prompt: Sequence[int]
) -> Reading:
    """Null for the first position, then {id: {"logprob": ...}} of the token, and perhaps others."""
    entries = choice.get("prompt_logprobs")
    if not entries or not any(entries):
        raise NoPromptLogprobs("the answer holds no prompt_logprobs")
    ids: list[int | None] = []
    logprobs: list[Any] = []
    for position, entry in enumerate(entries):
        if entry is None:
            ids.append(None)
            logprobs.append(None)
            continue
        sent = str(prompt[position]) if position < len(prompt) else ""
        found = sent if sent in entry else next(iter(entry), "none")
        ids.append(int(found))
        logprobs.append(entry[found]["logprob"])
    return Reading(logprobs, ids, [None] * len(ids), generated=False)


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
    padding = [None] * len(logprobs)
    ids = found.get("token_ids") or choice.get("prompt_token_ids") or []
    texts = found.get("tokens") or []
    return Reading(
        logprobs,
        [*(None if token is None else int(token) for token in ids), *padding],
        [*(None if text is None else str(text) for text in texts), *padding],
        generated=not parts,
    )


# The most telling first: ids prove more than texts. Strict servers refuse fields unknown to them.
FORMATS = (
    Format("prompt_logprobs", {"prompt_logprobs": 0}, _read_prompt_logprobs),
    Format(
        "echo and token ids", {"echo": True, "logprobs": 1, "return_token_ids": True}, _read_echo
    ),
    Format("echo", {"echo": True, "logprobs": 1}, _read_echo),
)
