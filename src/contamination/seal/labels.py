"""The labels that a prompt gives the options of an item, such as letters or numbers from 1.

A harness may show options in another order than the published one, and a model names them
by the labels that it saw.
"""

import re
from collections.abc import Sequence

_LONGEST = 12  # characters before an option in which its label stands
_LABEL = re.compile(r"(?<!\w)([A-Za-z]|\d{1,2})[^\w\n]*[).:\]\t|-][^\w\n]*\Z")


def shown_labels(prompt: str, options: Sequence[str]) -> dict[str, str] | None:
    r"""Return label -> option, as the last list of a prompt has them.

    The mapping is empty where the prompt shows the options in another order and without
    labels. Return None where it does not show all of them, or shows them as they stand.

    >>> shown_labels("Which?\nA. elm\nB. ash", ["ash", "elm"])
    {'B': 'ash', 'A': 'elm'}
    >>> shown_labels("Which?\nelm\nash", ["ash", "elm"])
    {}
    """
    places = dict[str, int]()
    labels = dict[str, str]()
    rest = prompt
    # The longest first: "ash" stands in "mountain ash", too.
    for option in sorted(options, key=len, reverse=True):
        start, label = _last(option, rest)
        if start < 0:
            return None
        places[option] = start
        if label:
            labels[label] = option
        end = start + len(option)
        taken = "".ljust(len(option), "\0")  # what stands behind it keeps its place
        rest = rest[:start] + taken + rest[end:]
    if len(labels) == len(options):
        return labels
    in_order = sorted(options, key=places.__getitem__)
    return None if in_order == list(options) else {}


def _last(option: str, text: str) -> tuple[int, str]:
    """Return where an option stands last, and its label; a labelled place comes first.

    The place is -1 where it stands nowhere, and the label "" where there is none.
    """
    last = -1
    end = len(text) if option else -1
    while end >= 0:
        start = text.rfind(option, 0, end)
        if start < 0:
            break
        end = start + len(option) - 1
        before = text[max(0, start - _LONGEST) : start]
        after = text[start + len(option) : start + len(option) + 1]
        if before[-1:].isalnum() or after.isalnum():
            continue
        match = _LABEL.search(before)
        if match is not None:
            return start, match[1]
        last = max(last, start)
    return last, ""
