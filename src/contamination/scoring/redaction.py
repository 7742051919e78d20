"""A key is struck out of texts from outside, however often it was encoded."""

import base64
import html
import re
import reprlib
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

STRUCK = "***"
MOST_ENCODED = 8  # times that a text may be encoded over
SHORT = 200  # characters of a server's own message
LOOKED_AT = 20_000  # characters in which the key is looked for; no message shows more
_REPR = reprlib.Repr()
_REPR.maxstring = 1 << 24  # as much as an answer may hold
# A run of backslashes is tried once, from its first one.
_ESCAPED = re.compile(r"(?<!\\)\\+(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|([\"'/nrt]))")
_NAMED = {"n": "\n", "r": "\r", "t": "\t"}
# Base64 in its usual form or that of URLs, maybe in lines; hexadecimal digits, maybe
# apart.
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{4,}(?:[ \t\r]*\n[ \t]*[A-Za-z0-9+/_-]+)*")
_HEXADECIMAL = re.compile(r"[0-9a-fA-F]{2}(?:[ :,-]?[0-9a-fA-F]{2})+")


def strike_out(key: str, text: str) -> str:
    """Return a text without a key: in any case, in escapes, base64 or hexadecimal digits.

    Escapes are decoded in what is returned. A text that is escaped more than
    MOST_ENCODED times over, or by numbers of thousands of digits, is not shown. Nothing
    is struck out for an empty key.
    """
    if not key:
        return text
    plain = _without_escapes(text)
    if plain is None:
        return STRUCK
    shown = re.sub(re.escape(key), STRUCK, plain, flags=re.IGNORECASE)

    def without_key(run: re.Match[str]) -> str:
        return STRUCK if _is_encoded_in(run[0], key, MOST_ENCODED) else run[0]

    shown = _HEXADECIMAL.sub(without_key, shown)
    return _BASE64.sub(without_key, shown)


def shortened(key: str, text: str) -> str:
    """Return a text as one line of at most SHORT characters, without a key."""
    plain = strike_out(key, text[:LOOKED_AT])
    line = " ".join(plain.split())
    if key and len(text) > LOOKED_AT and len(line) < LOOKED_AT // 2:
        return STRUCK  # a part of the key may end what was looked at, close behind
    if len(line) <= SHORT:
        return line
    return line[: SHORT - 1] + "…"


def whole_repr(value: Any) -> str:
    """Return the `repr` of a value of JSON, not nested deeply, its strings uncut.

    A string that is cut may end in a part of a key, which nothing strikes out.
    """
    return _REPR.repr(value)


def _is_encoded_in(run: str, key: str, times: int) -> bool:
    """Return whether a run of characters, decoded, holds a key; or is encoded too often to tell."""
    return any(_holds(decoded, key, times - 1) for decoded in _decoded(run))


def _holds(text: str, key: str, times: int) -> bool:
    """Return whether a text holds a key, or is encoded more than `times` times over."""
    if len(text) < len(key):
        return False
    plain = _without_escapes(text)
    if times == 0 or plain is None or key.casefold() in plain.casefold():
        return True
    for kind in (_HEXADECIMAL, _BASE64):
        if any(_is_encoded_in(run[0], key, times) for run in kind.finditer(plain)):
            return True
    return False


def _without_escapes(text: str) -> str | None:
    """Return a text in which nothing is escaped; None if it was escaped too often, or too long."""
    for _ in range(MOST_ENCODED):
        try:
            decoded = _decoded_once(text)
        except ValueError:  # the number of a character has more digits than Python reads
            return None
        if decoded == text:
            return text
        text = decoded
    return None


def _decoded_once(text: str) -> str:
    """Return a text with what URLs, HTML and JSON escape in the place of the escapes."""
    plain = html.unescape(unquote(text))
    return _ESCAPED.sub(_character, plain)


def _character(escape: re.Match[str]) -> str:
    digits = escape[1] or escape[2]
    if digits:
        return chr(int(digits, 16))
    return _NAMED.get(escape[3], escape[3])


def _decoded(run: str) -> Iterator[str]:
    """Yield what a run of characters may say, wherever in it the encoded text begins."""
    usual = run.replace("-", "+").replace("_", "/")
    usual = re.sub(r"[^A-Za-z0-9+/]", "", usual)
    for start in range(4):
        encoded = usual[start:]
        if len(encoded) % 4 == 1:  # a character that says nothing alone
            encoded = encoded[:-1]
        yield base64.b64decode(f"{encoded}==").decode("latin-1")  # padding may be too long
    digits = re.sub(r"[^0-9a-fA-F]", "", run)
    for start in range(2):
        pairs = digits[start:]
        if len(pairs) % 2:
            pairs = pairs[:-1]
        yield bytes.fromhex(pairs).decode("latin-1")
