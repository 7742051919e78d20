"""Where an endpoint is, and the key to it, which must never be seen."""

import ipaddress
import os
from collections.abc import Generator

import httpx

from contamination.errors import InputError


class Key(httpx.Auth):
    """API key of an environment variable, which leaves this object in one header alone."""

    def __init__(self, variable: str) -> None:
        self.variable = variable
        self._value = os.environ.get(variable, "").strip()
        # A header that cannot be sent would be printed by the HTTP library.
        if not (self._value.isascii() and self._value.isprintable() and " " not in self._value):
            raise InputError(
                f"{variable}: the key holds a space, a line break or a character outside ASCII; "
                "set the variable to the key alone"
            )

    def __bool__(self) -> bool:
        """Whether there is a key: servers on this machine mostly need none."""
        return bool(self._value)

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Add the header, where there is a key."""
        if self:
            request.headers["Authorization"] = f"Bearer {self._value}"
        yield request

    def removed_from(self, text: str) -> str:
        """Return the text without the key: some servers repeat it in their messages."""
        return text.replace(self._value, "***") if self else text


def base_url(url: str, key: Key) -> httpx.URL:
    """Return the address that `/completions` is to be added to.

    Raises
    ------
    InputError
        No http(s) address, one that may hold secrets, or one that would send the key unencrypted
        over a network.
    """
    try:
        parsed = httpx.URL(url.strip().rstrip("/").removesuffix("/completions"))
    except httpx.InvalidURL:
        parsed = httpx.URL()
    if parsed.userinfo or parsed.query or parsed.fragment:
        raise InputError(
            "the URL of the endpoint holds a user name, a query or a fragment, which would end up "
            f"in logs; leave that out and put the key into {key.variable}"
        )
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise InputError("no URL of an endpoint; give one such as http://127.0.0.1:8000/v1")
    if key and parsed.scheme == "http" and not _is_loopback(parsed.host):
        raise InputError(
            f"{parsed}: the key in {key.variable} would cross the network unencrypted; use https, "
            f"a tunnel to 127.0.0.1, or unset {key.variable} if the server needs no key"
        )
    return parsed


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
