"""Secrets in texts of others: struck out, however they are encoded."""

import html
import re
from urllib.parse import unquote

MOST_ENCODED = 8  # times that a message may be encoded over
_ESCAPED = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2}))")


def decode(text: str) -> str:
    """Return a text with what URLs, HTML and JSON escape in the place of the escapes."""
    plain = html.unescape(unquote(text))
    return _ESCAPED.sub(lambda match: chr(int(match[1] or match[2], 16)), plain)


def without_secret(text: str, secret: str) -> str:
    """Return a text without a secret, in any case and however often it is encoded.

    A text that is encoded more than MOST_ENCODED times over is not shown. An empty
    secret is none.
    """
    if not secret:
        return text
    for _ in range(MOST_ENCODED):
        decoded = decode(text)
        if decoded == text:
            return re.sub(re.escape(secret), "***", text, flags=re.I)
        text = decoded
    return "***"
