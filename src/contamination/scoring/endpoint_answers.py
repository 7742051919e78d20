"""What an HTTP answer of an endpoint means: a result, a failure that may pass, or a refusal."""

import email.utils
import time
from typing import Any

import httpx

from contamination.errors import InputError
from contamination.scoring.endpoint_address import Key

TEMPORARY = {408, 425, 429}  # and everything from 500 on
LONGEST_WAIT = 600.0  # seconds; a server that asks for more is closed for the day
SHORT = 200  # characters of a server's own message


class Rejected(InputError):
    """The server makes nothing of the request: another form of it may do."""


class Temporary(InputError):
    """A failure that may be gone at the next try; `retry_after` is the wait asked for, in s."""

    def __init__(self, kind: str, message: str, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.kind = kind
        self.retry_after = retry_after


def read_answer(response: httpx.Response, url: str, key: Key) -> Any:
    """Return the JSON of a good answer.

    Raises
    ------
    Temporary
        It may pass.
    Rejected
        The request is not understood.
    InputError
        Key, model, URL or server are wrong; the message says what to do.
    """
    status = response.status_code
    if status == 200:
        try:
            answer = response.json()
        except ValueError:
            kind = short(response.headers.get("content-type", "no content type"), key)
            raise InputError(
                f"{url}: the answer is not JSON ({kind}); give the base URL of an "
                "OpenAI-compatible API, which mostly ends in /v1"
            ) from None
        if not isinstance(answer, dict) or "error" not in answer:
            return answer
    told = f"{url}: HTTP {status} ({short(_message(response), key)})"
    if status in TEMPORARY or status >= 500:
        wait = _retry_after(response.headers.get("retry-after", ""))
        if wait > LONGEST_WAIT:
            raise InputError(
                f"{told}; the server asks to wait {wait:,.0f} s: run it again then, what is "
                "stored is kept"
            )
        raise Temporary(f"HTTP {status}", told, wait)
    advice = {
        401: f"put a valid key into {key.variable}",
        403: f"ask for access to the model, or put another key into {key.variable}",
        404: "check the model's name, and the URL, which mostly ends in /v1",
    }
    if status in advice:
        raise InputError(f"{told}; {advice[status]}")
    if response.is_redirect:
        target = short(response.headers["location"], key)
        raise InputError(f"{url}: redirects to {target}; give the address that it ends at")
    raise Rejected(told)


def short(text: str, key: Key) -> str:
    """Return a text from outside as one short line without the key."""
    text = " ".join(key.removed_from(text).split())
    return text if len(text) <= SHORT else text[: SHORT - 1] + "…"


def _retry_after(header: str) -> float:
    """Seconds that a Retry-After header asks for: it holds a number of them, or a date."""
    try:
        return float(header)
    except ValueError:
        pass
    try:
        return email.utils.parsedate_to_datetime(header).timestamp() - time.time()
    except ValueError:
        return 0.0


def _message(response: httpx.Response) -> str:
    """What the server says went wrong, in any of the usual places."""
    try:
        found = response.json()
    except ValueError:
        return response.text
    while isinstance(found, dict):
        found = next((found[k] for k in ("error", "message", "detail") if k in found), str(found))
    return str(found)
