"""What diagnostics without a model say together: their table, a verdict, and the reasons for it.

They look at the order of the records (`contamination.audit.diagnostics`) or of options
(`contamination.audit.arrangement_diagnostics`).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import pandas as pd

from contamination.statistics.exchangeability import OrderResult
from contamination.statistics.multiple_testing import adjust

Verdict = Literal["quiet", "suspicious", "order carries information", "too few records"]
Row = dict[str, Any]

TESTS = 8  # rows that can have a p-value


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What the order of a set's records, or of their options, gives away.

    Attributes
    ----------
    table : one row per diagnostic: diagnostic, observed and expected (mean over the orderings) in
        the units that the reading names, z (of the statistic behind p), p, log10_p, holm_p (Holm
        over the rows), alternative, reading. Rows that only inform, or do not apply, have no p.
    verdict : "order carries information": a diagnostic rejects at alpha after Holm's correction,
        which happens to an exchangeable set with probability at most alpha. "suspicious": one would
        reject if it stood alone, which happens to at most 8 alpha of exchangeable sets. "quiet":
        none would. "too few records": so few orderings exist that none could ever stand out.
    reasons : the readings behind the verdict.
    what : was diagnosed, for people: "order of the records within 4 shards".
    counts : what `--json` prints of that: {"shards": 4}.
    """

    table: pd.DataFrame
    verdict: Verdict
    reasons: tuple[str, ...]
    what: str
    counts: Mapping[str, int]

    def as_dict(self) -> dict[str, Any]:
        """Return what `--json` prints."""
        return {**self.counts, "verdict": self.verdict, "reasons": list(self.reasons)}


def judge(
    rows: Iterable[Row],
    *,
    alpha: float,
    log_orderings: float,
    what: str,
    counts: Mapping[str, int],
    notes: Sequence[str] = (),
) -> Diagnosis:
    """Correct the p-values of the rows by Holm, and say what they amount to.

    Parameters
    ----------
    rows : of the table of a `Diagnosis`, but for `holm_p`; at most `TESTS` of them have a p.
    alpha : level of the verdict.
    log_orderings : natural logarithm of how many orderings are possible.
    notes : names of rows without a p whose readings are reasons, too, if they observed anything.
    """
    table = pd.DataFrame(rows)
    tested = table["p"].notna()
    table.insert(table.columns.get_loc("log10_p") + 1, "holm_p", math.nan)
    if tested.any():
        table.loc[tested, "holm_p"] = adjust(table.loc[tested, "p"], method="holm").p
    verdict: Verdict = "order carries information"
    chosen, reasons = table[table["holm_p"] <= alpha], list[str]()
    if log_orderings < math.log(TESTS / alpha) or not tested.any():
        verdict, chosen = "too few records", table.iloc[:0]
        reasons = ["too few orderings are possible for any to stand out: give more records"]
    else:
        if chosen.empty:
            verdict, chosen = "suspicious", table[table["p"] <= alpha]
        if chosen.empty:
            verdict, least = "quiet", table.loc[table["p"].idxmin()]
            reasons = [f"the smallest p is {least['p']:.3g} ({least['diagnostic']})"]
    noted = table[table["diagnostic"].isin(notes) & (table["observed"] > 0)]
    reasons += [
        f"{row.diagnostic}: {row.reading} (p = {row.p:.3g})"
        for row in chosen.sort_values("p", kind="stable").itertuples()
    ]
    reasons += [f"{row.diagnostic}: {row.reading}" for row in noted.itertuples()]
    return Diagnosis(table, verdict, tuple(reasons), what, counts)


def only_inform(diagnostic: str, reading: str, observed: float = math.nan) -> Row:
    """Return a row of the table of a `Diagnosis` without a p."""
    return {
        "diagnostic": diagnostic,
        "observed": observed,
        **dict.fromkeys(("expected", "z", "p", "log10_p"), math.nan),
        "alternative": "",
        "reading": reading,
    }


def tested(
    diagnostic: str,
    what: str,
    form: str,
    observed: float,
    expected: float,
    result: OrderResult,
    alternative: str = "two-sided",
) -> Row:
    """Return a row with the p of a test: `what` was observed is written by the format `form`."""
    reading = f"{what}: {observed:{form}}, {expected:{form}} expected"
    return only_inform(diagnostic, reading, observed) | {
        "expected": expected,
        "alternative": alternative,
        **asdict(result),
    }
