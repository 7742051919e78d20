"""The table and the verdict of a diagnosis, whatever it is of: records or options."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfVectorizer

from contamination.statistics import PValue, adjust
from contamination.statistics import exchangeability as order

OrderState = Literal["quiet", "suspicious", "order carries information", "too few records"]

MOST_DIAGNOSTICS = 9  # rows that can have a p-value, at most
LEVEL = 0.01  # of the verdict


class Row(NamedTuple):
    """A row of the table of a `Diagnosis`; one that does not apply has no p.

    `observed` and `expected` (mean over the orderings) are in the units that the reading names, `z`
    is that of the statistic behind p, `holm_p` is after Holm's correction over the rows.
    """

    diagnostic: str
    observed: float = math.nan
    expected: float = math.nan
    z: float = math.nan
    p: float = math.nan
    holm_p: float = math.nan
    reading: str = ""


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What the order of a set's records, or of their options, gives away.

    Attributes
    ----------
    table : one `Row` per diagnostic.
    verdict : "order carries information": a diagnostic rejects at LEVEL after Holm's correction.
        "suspicious": one would alone. "quiet": none would. "too few records": so few orderings
        exist that none could ever stand out.
    reasons : the readings behind the verdict.
    what : was diagnosed, for people: "order of the records within 4 shards".
    counts : what JSON has of that: {"shards": 4}.
    remark : how many items do not move, and why; "" of records.
    """

    table: pd.DataFrame
    verdict: OrderState
    reasons: tuple[str, ...]
    what: str
    counts: Mapping[str, int]
    remark: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the diagnosis for JSON."""
        return {**self.counts, "verdict": self.verdict, "reasons": list(self.reasons)}


def judge(
    rows: Iterable[Row], log_orderings: float, what: str, counts: Mapping[str, int]
) -> Diagnosis:
    """Correct the p-values of the rows, and say what they amount to at LEVEL.

    There are `MOST_DIAGNOSTICS` rows at most. `log_orderings` is the natural logarithm of how many
    orderings are possible.
    """
    table = pd.DataFrame(rows)
    tested = table["p"].notna()
    if tested.any():
        table.loc[tested, "holm_p"] = adjust(np.log10(table.loc[tested, "p"]), method="holm").p
    verdict: OrderState = "order carries information"
    chosen, reasons = table[table["holm_p"] <= LEVEL], list[str]()
    if log_orderings < math.log(MOST_DIAGNOSTICS / LEVEL) or not tested.any():
        verdict, chosen = "too few records", table.iloc[:0]
        reasons = ["too few orderings are possible for any to stand out: give more records"]
    elif chosen.empty:
        verdict, chosen = "suspicious", table[table["p"] <= LEVEL]
        if chosen.empty:
            verdict, least = "quiet", table.loc[table["p"].idxmin()]
            reasons = [f"the smallest p is {least['p']:.3g} ({least['diagnostic']})"]
    reasons += [
        f"{row.diagnostic}: {row.reading} (p = {row.p:.3g})"
        for row in chosen.sort_values("p", kind="stable").itertuples()
    ]
    return Diagnosis(table, verdict, tuple(reasons), what, counts)


def tested_row(
    diagnostic: str,
    what: str,
    form: str,
    values: NDArray[np.float64],
    result: PValue | None = None,
) -> Row:
    """Return a row with the p of `result`, by default that of `values` (m+1,), which it shows."""
    result = result or order.order_test(values, alternative="two-sided")
    observed, expected = float(values[0]), float(values.mean())
    reading = f"{what}: {observed:{form}}, {expected:{form}} expected"
    return Row(diagnostic, observed, expected, result.statistic, result.p, reading=reading)


def tf_idf(texts: Sequence[str]) -> csr_matrix:
    """Rows of length 1 with the weights of character 4-grams within words; 0 for a blank text.

    Characters need no notion of what a word is in the language at hand.
    """
    if not any(text.strip() for text in texts):
        return csr_matrix((len(texts), 1))
    vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(4, 4), sublinear_tf=True)
    return vectorizer.fit_transform(texts)
