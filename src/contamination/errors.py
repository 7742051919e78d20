"""The one exception that a user's input can raise on purpose."""


class InputError(ValueError):
    """Bad input, told in one line that names the thing and the fix.

    The command line prints the message and exits with status 2; library callers catch it as the
    ``ValueError`` that it is. What cannot be printed, such as a line end or an escape sequence in
    the name of a field, is written as its escape.
    """

    def __init__(self, message: str) -> None:
        told = (c if c.isprintable() else c.encode("unicode_escape").decode() for c in message)
        super().__init__("".join(told))
