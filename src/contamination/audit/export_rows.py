"""The table of an audit in the formats of others: what CONDA takes, and a model card.

Each verdict rests on p after Holm's correction over all tests of the audit.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from contamination.audit import export, export_sides
from contamination.audit.comparison import ASSUMPTION, STATED
from contamination.audit.recompute_sides import AXIS

Row = Mapping[str, Any]
# What a verdict of held-out records rests on, and how the draw was declared.
OF_SIDES = f"assumption: {ASSUMPTION}; {STATED}"


def conda(rows: Sequence[Row]) -> str:
    """Return an entry for the CONDA database for each model and set with a proof."""
    named = dict[tuple[str, str, str], None]()
    for row in rows:
        if row["verdict"] == "proven":
            named[row["set"], row["model"], row["model revision"]] = None
    return export.conda_table(named)


def model_cards(rows: Sequence[Row]) -> str:
    """Return Markdown with a sentence, details and limits for each verdict."""
    verdicts: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        if row["p"] is not None:
            key = (row["model"], row["set"], row["axis"])
            verdicts.setdefault(key, []).append(row)
    cards = [_card(tests) for tests in verdicts.values()]
    return "\n".join(cards) or "No pair of a model and a set was audited.\n"


def _card(tests: Sequence[Row]) -> str:
    """Return the card of one verdict, from the rows of its tests."""
    first = min(tests, key=_holm_p)
    of_sides = first["axis"] == AXIS
    conclusion = first["verdict"]
    measured = f"p = {first['p (Holm)']:.3g} after Holm's correction"
    if of_sides:
        read = f"published records of {export.code_span(first['set'])}"
        limits = export_sides.NOT_SAID
    else:
        read = f"the test set {export.code_span(first['set'])} in its published order"
        limits = export.NOT_SAID
    sentence = export.sentence_of(
        conclusion,
        model=export.code_span(first["model"]),
        read=read,
        measured=measured,
    )
    not_said = limits.get(conclusion, limits[""])
    return f"{sentence}\n\n{_details(tests)}\n\nMay not be said: {not_said}\n"


def _holm_p(row: Row) -> float:
    return float(row["p (Holm)"])


def _details(tests: Sequence[Row]) -> str:
    """Return the details of a verdict: revisions, tests, controls and the reason."""
    first = tests[0]
    parts = [
        f"model revision {export.code_span(first['model revision'])}, {first['precision']}",
        f"set revision {export.code_span(first['set revision'])}",
    ]
    if first["axis"] == AXIS:
        held_out = export.code_span(first["held-out set"])
        revision = export.code_span(first["held-out revision"])
        parts.insert(0, OF_SIDES)
        parts.append(f"{held_out} was held out, set revision {revision}")
    parts.append(f"contamination {first['version']}")
    parts.append(f"seed {first['seed']}")
    for row in tests:
        parts.append(f"{row['test']}, p = {row['p']:.3g}, {row['p (Holm)']:.3g} after correction")
    for name in ("order", "compressor", "blind", "control"):
        values = dict.fromkeys(_shown(row[name]) for row in tests if row[name] is not None)
        if values:
            parts.append(f"{name}: {', '.join(values)}")
    concluded = export.code_span(f"{first['verdict']}: {first['reason']}")
    parts.append(f"verdict at {first['alpha']:g}: {concluded}")
    if first["other tests"]:
        parts.append(export.code_span(f"not corrected for: {first['other tests']}"))
    return f"Details: {'; '.join(parts)}."


def _shown(value: str | float) -> str:
    """Return a word as it is, or a p-value with three digits."""
    return value if isinstance(value, str) else f"p = {value:.3g}"


# By the end of a file's name, as `export.FORMATS`.
FORMATS: dict[str, Callable[[Sequence[Row]], str]] = {
    ".conda.csv": conda,
    ".md": model_cards,
}
