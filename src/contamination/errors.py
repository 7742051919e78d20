"""The one exception that a user's input can raise on purpose."""


class InputError(ValueError):
    """Bad input, explained in one line that names the thing and the fix.

    The command line prints the message and exits with status 2; library callers catch it as the
    ``ValueError`` that it is. Its text is `printable`.
    """

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


def printable(text: str) -> str:
    """Write what cannot be printed, such as a line end or an escape sequence, as its escape."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
