"""Names and units of the scores that need more than one pass of a model.

The help of the command reads them, so nothing heavy is imported here.
"""

from collections.abc import Sequence

from contamination.errors import InputError

# Columns of each score, and their units; larger is more likely a member.
COLUMNS = {
    "completion": {"verbatim": "1 if it comes back", "rouge_l": "share of words"},
    "variation": {"cdd": "share of samples", "agreement": "minus relative distance"},
    "cloze": {"cloze": "nats", "cloze_first": "1 if the likeliest"},
    "choice": {"choice": "share of orders"},
    "slot": {"slot": "nats per token", "slot_rouge_l": "share of words"},
}
OF_TEXTS = ("completion", "variation", "cloze")
OF_ITEMS = ("choice", "slot")


def checked(names: Sequence[str], known: Sequence[str]) -> list[str]:
    """Return the names, each once. Raises InputError for none, and one that is not `known`."""
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        raise InputError(f"no score {', '.join(unknown) or '(none)'}: give {', '.join(known)}")
    return list(dict.fromkeys(names))
