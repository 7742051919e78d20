"""The one exception that a user's input can raise on purpose."""


class InputError(ValueError):
    """Bad input, told in one line that names the thing and the fix.

    The command line prints the message and exits with status 2; library callers catch it as the
    ``ValueError`` that it is.
    """
