"""An audit of many models and sets as one HTML page, which asks nothing of any network.

Names of models and sets are other people's: they are escaped, and the content security policy
allows the page's own script alone, by its hash.
"""

import datetime
import hashlib
import math
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from contamination.errors import printable
from contamination.tables import MISSING

NUMBERS = ("p", "log10 p", "p (Holm)", "Tokens")  # these columns stand right and sort as numbers


def leaderboard(rows: Sequence[Mapping[str, Any]], *, date: datetime.date) -> str:
    """Return the page of one row or more of `contamination.audit.many.judged_rows`, least p first.

    There is a column "Power" if the rows have any `power`.
    """
    ranked = sorted(rows, key=lambda row: math.inf if row["p"] is None else row["log10 p"])
    cells = [_cells(row) for row in ranked]
    kinds = {
        name: ' class="number"' * (name in NUMBERS)
        for name in cells[0]
        if name != "Power" or any(each[name][1] for each in cells)
    }
    headings = (
        f'<th role="columnheader" scope="col"{kind}{sort}><button>{name}</button></th>'
        for name, kind in kinds.items()
        for sort in [' aria-sort="ascending"' * (name == "p")]
    )
    lines = (
        f'<tr role="row" data-verdict="{_text(row["verdict"])}">'
        + "".join(
            f'<td role="cell"{kind} data-label="{name}" data-value="{_text(each[name][0])}">'
            f"<span>{each[name][1] or MISSING}</span></td>"
            for name, kind in kinds.items()
        )
        + "</tr>"
        for row, each in zip(ranked, cells, strict=True)
    )
    page = (files(__package__) / "leaderboard.html").read_text(encoding="utf-8")
    _, script = re.split("</?script>", page)[:2]
    parts = {
        "@HASH@": f"sha256-{b64encode(hashlib.sha256(script.encode()).digest()).decode()}",
        "@FACTS@": _facts(rows, date),
        "@HEADINGS@": "".join(headings),
        "@ROWS@": "\n".join(lines),
    }
    return re.sub("@[A-Z]+@", lambda mark: parts[mark[0]], page)


def _cells(row: Mapping[str, Any]) -> dict[str, tuple[Any, str]]:
    """By column: what it is sorted by, None if unknown, and what it shows, as markup."""
    store, tokens, log10_p = row["store"], row["tokens"], row["log10 p"]
    beside = (f"{name}: {_short(row[name])}" for name in ("order", "compressor") if row[name])
    verdict = f"<strong>{_text(row['verdict'])}</strong><small>{_text(row['reason'])}</small>"
    named = {name.capitalize(): (row[name], _text(row[name])) for name in ("model", "set")}
    return (
        named
        | {
            "Axis": (row["axis"], _text(row["axis"])),
            "Test": (row["test"], _text(row["test"])),
            "p": (log10_p, _short(row["p"])),  # sorted by the logarithm, which has no floor
            "log10 p": (log10_p, "" if log10_p is None else f"{log10_p:.1f}"),
            "p (Holm)": (row["p (Holm)"], _short(row["p (Holm)"])),
            "Verdict": (row["verdict"], verdict),
            "Controls": (row["compressor"], "<br>".join(beside)),
            "Power": (row.get("power"), _short(row.get("power"))),
            "Tokens": (tokens, "" if tokens is None else f"{tokens:,}"),
            "Store": (store, f'<code title="{store}">{store[:12]}</code>' if store else ""),
        }
    )


def _facts(rows: Sequence[Mapping[str, Any]], date: datetime.date) -> str:
    """What was asked, when and by which version, in a line."""
    models, sets = ({row[name] for row in rows} for name in ("model", "set"))
    tested = [row for row in rows if row["p"] is not None]
    seeds, precisions = (
        ", ".join(sorted({str(row[name]) for row in tested})) or MISSING
        for name in ("seed", "precision")
    )
    facts = (
        f"{date}, contamination {rows[0]['version']}",
        f"models: {len(models)}, sets: {len(sets)}, rows without a p-value: "
        f"{len(rows) - len(tested)}",
        f"Holm's correction is over all {len(tested)} p-values of this page",
        f"level {rows[0]['alpha']:g}, seed {seeds}, precision {precisions}",
    )
    return _text("; ".join(facts))


def _short(value: Any) -> str:
    """Return a number as the command prints it, or text."""
    return f"{value:.3g}" if isinstance(value, float) else _text(value)


def _text(value: Any) -> str:
    return "" if value is None else escape(printable(str(value)))
