"""What a p-value means, in plain words; the page and the notebook say the same."""

import math
import re

from contamination.audit.diagnostics import Diagnosis
from contamination.report.explorer.outcomes import Outcome
from contamination.results.figures import SIGNIFICANT
from contamination.results.tables import format_p

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

# Verdict of the diagnosis -> what it makes of a small p-value.
_MEANING = {
    "quiet": "Nothing in the records themselves explains it, as far as the diagnostics see: this "
    "is evidence that the model has read the set in this order.",
    "suspicious": "Be careful: the order of the records may carry information by itself, as the "
    "diagnostics say.",
    "order carries information": "This is no evidence of contamination: the order of the records "
    "carries information by itself, as the diagnostics say.",
    "too few records": "Whether the order of the records carries information by itself cannot be "
    "told from so few.",
}


def plain_p(log10_p: float) -> str:
    """p as people write it: three decimals down to 0.001, powers of ten below, without a floor."""
    text = format_p(10.0**log10_p, log10_p)
    power = re.fullmatch(r"\$(.+) \\times 10\^\{(.+)\}\$", text)
    return f"{power[1]} × 10{power[2].translate(_SUPERSCRIPTS)}" if power else text


def verdict(log10_p: float) -> str:
    """The shortest reading of a p-value at the usual level."""
    small = log10_p <= math.log10(SIGNIFICANT)
    return "The model prefers the published order" if small else "Nothing proved"


def reading(outcome: Outcome, diagnosis: Diagnosis) -> str:
    """What one outcome says, and what it does not."""
    result = outcome.result
    chance = "An order drawn at random stands out at least as much with probability "
    parts = [f"{chance}{plain_p(result.log10_p)}."]
    if verdict(result.log10_p) == "Nothing proved":
        parts.append("A model may have read the set without showing it here.")
    else:
        parts.append(_MEANING[diagnosis.verdict])
    if outcome.test == "sharded_t":
        parts.append("The p-value is an approximation that needs many similar shards.")
    if outcome.test == "permutation":
        floor = 1 / (1 + result.permutations)
        parts.append(f"With {result.permutations} shuffles it cannot fall below {floor:.3g}.")
    return " ".join(parts)
