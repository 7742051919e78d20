"""The exception that a user's input raises, and text that others have written.

Names of models, sets and files are other people's. Wherever one is shown, it is to stay
a name: `printable` is for terminals, `csv_text` for tables.
"""


class InputError(ValueError):
    """Bad input, explained in one line that names the thing and the fix.

    The command line prints the message and exits with status 2; library callers catch
    it as the ``ValueError`` that it is. Its text is `printable`.

    Parameters
    ----------
    message
        Speaks of parameters as Python does (``axis='both'``), never of options of a
        command.
    parameter
        Name of the parameter to give or to change. The command line names the option of
        that parameter in the message.

    Examples
    --------
    >>> error = InputError("permutations is 0: give 1 or more", parameter="permutations")
    >>> error.parameter
    'permutations'
    """

    def __init__(self, message: str, *, parameter: str | None = None) -> None:
        super().__init__(printable(message))
        self.parameter = parameter


def printable(text: str) -> str:
    """Return a text in which line ends and other unprintable characters are escaped."""
    if text.isprintable():
        return text
    shown: list[str] = []
    for character in text:
        if character.isprintable():
            shown.append(character)
        else:
            shown.append(character.encode("unicode_escape").decode())
    return "".join(shown)


def brief(text: str, most: int) -> str:
    """Return a message as one line of at most `most` characters, cut after a sentence.

    Where no sentence ends early enough it is cut after a word, and ends in dots.
    """
    line = " ".join(text.split())
    if len(line) <= most:
        return line
    sentences, dot, _ = line[: most + 1].rpartition(". ")
    if dot:
        return f"{sentences}."
    words = line[: most - 3].rpartition(" ")[0]
    return f"{words or line[: most - 4]} ..."


def csv_text(text: str) -> str:
    """Return text for a cell of a table, which no program takes for a formula.

    Line ends stay, since a table may hold them; other unprintable characters become
    their escapes.
    """
    shown = "\n".join(printable(line) for line in text.split("\n"))
    if not shown.lstrip().startswith(("=", "+", "-", "@")):
        return shown
    try:
        float(shown)
    except ValueError:
        return f"'{shown}"
    return shown
