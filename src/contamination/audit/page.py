"""An audit of many models and sets as one HTML page, which asks nothing of any network.

Names of models and sets are other people's: they are escaped, and the content security
policy allows the page's own script alone, by its hash.
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

from contamination.audit.comparison import ASSUMPTION, STATED
from contamination.audit.decision import PROOF
from contamination.audit.recompute_sides import AXIS
from contamination.audit.rows import count_verdicts
from contamination.errors import printable
from contamination.tables import MISSING


def html_page(rows: Sequence[Mapping[str, Any]], *, date: datetime.date) -> str:
    """Return the page of rows of `contamination.audit.rows.judged_rows`, best first."""
    ranked = sorted(rows, key=_rank)
    page = (files(__package__) / "page.html").read_text(encoding="utf-8")
    script = page.partition("<script>")[2].partition("</script>")[0]
    digest = b64encode(hashlib.sha256(script.encode()).digest()).decode()
    parts = {
        "@HASH@": f"sha256-{digest}",
        "@PROOF@": f"{PROOF:g}",
        "@SIDES@": _sides(rows),
        "@FACTS@": _shown(_facts(rows, date)),
        "@TABLE@": _table([_cells(row) for row in ranked]),
    }
    return re.sub("@[A-Z]+@", lambda mark: parts[mark[0]], page)


def _table(rows: Sequence[Mapping[str, str]]) -> str:
    """Return a table of markup; each cell names its column, for cards on narrow screens."""
    headings = [f'<th scope="col">{name}</th>' for name in rows[0]]
    lines = [
        "<table>",
        "<caption>A row for each model, set and test, smallest p first</caption>",
        f"<thead><tr>{''.join(headings)}</tr></thead>",
        "<tbody>",
    ]
    for row in rows:
        cells = []
        for name, markup in row.items():
            missing = " data-missing" if markup == MISSING else ""
            cells.append(f'<td data-label="{name}"{missing}>{markup}</td>')
        lines.append(f"<tr>{''.join(cells)}</tr>")
    lines += ["</tbody>", "</table>"]
    return "\n".join(lines)


def _rank(row: Mapping[str, Any]) -> float:
    """Return log10 p; rows without a p-value come last."""
    return math.inf if row["p"] is None else float(row["log10 p"])


def _facts(rows: Sequence[Mapping[str, Any]], date: datetime.date) -> str:
    """Return what holds for all rows: counts of verdicts, date, correction, level, settings."""
    tested = [row for row in rows if row["p"] is not None]
    seeds = sorted({str(row["seed"]) for row in tested})
    precisions = sorted({str(row["precision"]) for row in tested})
    corrected = "p (Holm) is p, since there is one p-value"
    if len(tested) != 1:
        corrected = f"p (Holm) is corrected over all {len(tested)} p-values of this page"
    return (
        f"{count_verdicts(rows)}. {date}, contamination {rows[0]['version']}; {corrected}; "
        f"level {rows[0]['alpha']:g}, seed {', '.join(seeds)}, "
        f"precision {', '.join(precisions)}"
    )


def _sides(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the H0 of comparisons with held-out records, as markup; "" if no row is one."""
    if all(row["axis"] != AXIS for row in rows):
        return ""
    return (
        f"<p><b>Axis “{AXIS}”</b>: p has another H0: {_shown(ASSUMPTION)}; {_shown(STATED)}. "
        "In place of the diagnosis and of the zlib baseline, baselines without a model may "
        "object, which tell the sides apart.</p>"
    )


def _cells(row: Mapping[str, Any]) -> dict[str, str]:
    """Return what a row shows in each column, as markup."""
    controls = {
        "records: ": row["order"],
        "zlib baseline: ": row["compressor"],
        "sides without a model: ": row["blind"],
        "control model: ": row["control"],
        "not corrected for: ": row.get("other tests") or None,
    }
    lines = []
    for name, value in controls.items():
        if value is not None:
            lines.append(f"{name}{_shown(value)}")
    reason = ""
    # As the command prints it.
    if row["verdict"] != "no evidence" or row.get("objections"):
        reason = _shown(row["reason"])
    verdict = _shown(row["verdict"])
    store = row["store"]
    cells = {}
    for name in ("model", "set", "axis", "test"):
        cells[name.capitalize()] = _broken_at_signs(row[name])
    cells["p"] = _shown(row["p"])
    cells["log10 p"] = _shown(row["log10 p"], "z.1f")
    cells["p (Holm)"] = _shown(row["p (Holm)"])
    strong = f'<strong class="{verdict}">{verdict}</strong>'
    cells["Verdict"] = f"{strong} <small>{reason}</small>"
    cells["Controls"] = "<br>".join(lines) or MISSING
    cells["Power"] = MISSING
    if row["power"]:
        power = _shown(row["power"]).replace("; ", "<br>")
        cells["Power"] = f"<details><summary>by copies</summary><small>{power}</small></details>"
    cells["Tokens"] = _shown(row["tokens"])
    cells["Store"] = f'<code title="{store}">{store[:8]}</code>' if store else MISSING
    return cells


def _broken_at_signs(name: Any) -> str:
    """Return an escaped name that breaks after its signs before it breaks inside a word."""
    return re.sub("(?<=[/_-])", "<wbr>", _shown(name))


def _shown(value: Any, digits: str = ".3g") -> str:
    """Return a number as the command prints it, or escaped text."""
    if value is None:
        return MISSING
    if isinstance(value, float):
        text = format(value, digits)
    elif isinstance(value, int):
        text = format(value, ",")
    else:
        text = str(value)
    return escape(printable(text))
