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

import pandas as pd

from contamination.errors import printable
from contamination.tables import MISSING


def leaderboard(rows: Sequence[Mapping[str, Any]], *, date: datetime.date) -> str:
    """Return the page of one or more rows of `contamination.audit.many.judged_rows`, best first."""
    ranked = sorted(rows, key=lambda row: math.inf if row["p"] is None else row["log10 p"])
    tested = [row for row in ranked if row["p"] is not None]
    seeds, precisions = (
        ", ".join(sorted({str(row[name]) for row in tested})) for name in ("seed", "precision")
    )
    facts = (
        f"{date}, contamination {rows[0]['version']}; failed: {len(rows) - len(tested)}; "
        f"p (Holm) is corrected over all {len(tested)} p-values of this page; "
        f"level {rows[0]['alpha']:g}, seed {seeds}, precision {precisions}"
    )
    with pd.option_context("display.max_colwidth", None):
        table = pd.DataFrame(map(_cells, ranked)).to_html(index=False, escape=False, border=0)
    page = (files(__package__) / "leaderboard.html").read_text(encoding="utf-8")
    script = page.partition("<script>")[2].partition("</script>")[0]
    digest = b64encode(hashlib.sha256(script.encode()).digest()).decode()
    parts = {"@HASH@": f"sha256-{digest}", "@FACTS@": _shown(facts), "@TABLE@": table}
    return re.sub("@[A-Z]+@", lambda mark: parts[mark[0]], page)


def _cells(row: Mapping[str, Any]) -> dict[str, str]:
    """Return what a row shows in each column, as markup."""
    beside = {"records: ": row["order"], "compressor: ": row["compressor"]}
    beside["not corrected for: "] = row.get("other tests") or None
    controls = [f"{name}{_shown(value)}" for name, value in beside.items() if value is not None]
    why = ""
    if row["verdict"] != "no evidence" or row.get("objections"):  # as the command prints it
        why = _shown(row["reason"])
    verdict, store = _shown(row["verdict"]), row["store"]
    return {name.capitalize(): _shown(row[name]) for name in ("model", "set", "axis", "test")} | {
        "p": _shown(row["p"]),
        "log10 p": _shown(row["log10 p"], "z.1f"),
        "p (Holm)": _shown(row["p (Holm)"]),
        "Verdict": f'<strong class="{verdict}">{verdict}</strong> <small>{why}</small>',
        "Controls": "<br>".join(controls) or MISSING,
        "Power": f"<small>{_shown(row['power'] or None).replace('; ', '<br>')}</small>",
        "Tokens": _shown(row["tokens"]),
        "Store": f'<code title="{store}">{store[:8]}</code>' if store else MISSING,
    }


def _shown(value: Any, digits: str = ".3g") -> str:
    """Return a number as the command prints it, or escaped text."""
    if value is None:
        return MISSING
    form = digits if isinstance(value, float) else "," if isinstance(value, int) else ""
    return escape(printable(format(value, form)))
