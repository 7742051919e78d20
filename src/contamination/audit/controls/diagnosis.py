"""The table and the verdict of a diagnosis, whatever it is of: records or options."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfVectorizer

from contamination.statistics import PValue, adjust
from contamination.statistics import exchangeability as order

if TYPE_CHECKING:
    import pandas as pd

OrderState = Literal[
    "quiet",
    "suspicious",
    "order carries information",
    "too few records",
]

MOST_DIAGNOSTICS = 9  # rows that can have a p-value, at most
LEVEL = 0.01  # of the verdict


class DiagnosticRow(NamedTuple):
    """A row of the table of a `Diagnosis`; one that does not apply has no p.

    `observed` and `expected` (mean over the orderings) are in the units that the
    reading names, `z` is that of the statistic behind p, `holm_p` is after Holm's
    correction over the rows.
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
    """The information in the order of a set's records, or of their options.

    Attributes
    ----------
    rows
        One row for each diagnostic.
    verdict
        "order carries information": a diagnostic rejects at LEVEL after Holm's
        correction. "suspicious": one would alone. "quiet": none would. "too few
        records": so few orderings exist that none could ever stand out.
    reasons
        The readings behind the verdict.
    what
        Was diagnosed, for people: "order of the records within 4 shards".
    counts
        Numbers of what was diagnosed, for JSON: {"shards": 4}.
    remark
        How many items do not move, and why; of records, that their years follow their
        order. "" if there is nothing to say.
    """

    rows: tuple[DiagnosticRow, ...]
    verdict: OrderState
    reasons: tuple[str, ...]
    what: str
    counts: Mapping[str, int]
    remark: str = ""

    @cached_property
    def table(self) -> "pd.DataFrame":
        """The rows as a table, for people; an audit of many sets needs none."""
        import pandas as pd

        return pd.DataFrame(self.rows)

    @property
    def standing_out(self) -> str:
        """The diagnostics that reject before any correction, with p; "" if none does."""
        named = []
        for row in _smallest_first(row for row in self.rows if row.p <= LEVEL):
            named.append(f"{row.diagnostic}, p = {row.p:.3g}")
        return "; ".join(named)

    def as_dict(self) -> dict[str, Any]:
        """Return the diagnosis for JSON."""
        return {**self.counts, "verdict": self.verdict, "reasons": list(self.reasons)}


def judge(
    rows: Iterable[DiagnosticRow], log_orderings: float, what: str, counts: Mapping[str, int]
) -> Diagnosis:
    """Return the diagnosis of some rows at LEVEL, after Holm's correction.

    There are `MOST_DIAGNOSTICS` rows at most. `log_orderings` is the natural logarithm
    of how many orderings are possible. `what` names what was diagnosed, for people, and
    `counts` has its numbers, for JSON.
    """
    corrected = _holm(list(rows))
    tested = [row for row in corrected if not math.isnan(row.p)]
    if log_orderings < math.log(MOST_DIAGNOSTICS / LEVEL) or not tested:
        reason = "too few orderings are possible for any to stand out: give more records"
        return Diagnosis(corrected, "too few records", (reason,), what, counts)
    rejected = [row for row in tested if row.holm_p <= LEVEL]
    if rejected:
        readings = _readings(rejected)
        return Diagnosis(corrected, "order carries information", readings, what, counts)
    alone = [row for row in tested if row.p <= LEVEL]
    if alone:
        return Diagnosis(corrected, "suspicious", _readings(alone), what, counts)
    least = _smallest_first(tested)[0]
    reason = f"the smallest p is {least.p:.3g} ({least.diagnostic})"
    return Diagnosis(corrected, "quiet", (reason,), what, counts)


def _holm(rows: Sequence[DiagnosticRow]) -> tuple[DiagnosticRow, ...]:
    """Return the rows with p after Holm's correction over those that have a p."""
    tested = [row.p for row in rows if not math.isnan(row.p)]
    if not tested:
        return tuple(rows)
    p_values = iter(adjust(np.log10(tested), method="holm").p.tolist())
    corrected = []
    for row in rows:
        if math.isnan(row.p):
            corrected.append(row)
        else:
            corrected.append(row._replace(holm_p=next(p_values)))
    return tuple(corrected)


def _smallest_first(rows: Iterable[DiagnosticRow]) -> list[DiagnosticRow]:
    """Return rows by p; of equal ones the first stays first."""
    return sorted(rows, key=_p_of)


def _p_of(row: DiagnosticRow) -> float:
    return row.p


def _readings(rows: Iterable[DiagnosticRow]) -> tuple[str, ...]:
    """Return a line on each of some rows, the smallest p first."""
    lines = []
    for row in _smallest_first(rows):
        lines.append(f"{row.diagnostic}: {row.reading} (p = {row.p:.3g})")
    return tuple(lines)


def tested_row(
    diagnostic: str,
    what: str,
    form: str,
    values: NDArray[np.float64],
    result: PValue | None = None,
) -> DiagnosticRow:
    """Return a row that compares a statistic of the published order with its mean.

    `values` are the statistic of each order, (m+1,), the published order first; `what`
    describes it for people, and `form` is the format of its numbers. Without a
    `result`, the values are tested, two-sided.
    """
    if result is None:
        result = order.order_test(values, alternative="two-sided")
    observed = float(values[0])
    expected = float(values.mean())
    reading = f"{what}: {observed:{form}}, {expected:{form}} expected"
    return DiagnosticRow(
        diagnostic=diagnostic,
        observed=observed,
        expected=expected,
        z=result.statistic,
        p=result.p,
        reading=reading,
    )


def tf_idf(texts: Sequence[str]) -> csr_matrix:
    """Return rows of length 1 with the weights of character 4-grams within words.

    A blank text gets a row of zeros. Characters need no notion of what a word is in the
    language at hand.
    """
    if not any(text.strip() for text in texts):
        return csr_matrix((len(texts), 1))
    vectorizer = TfidfVectorizer(
        analyzer="char_wb",
        ngram_range=(4, 4),
        sublinear_tf=True,
    )
    return vectorizer.fit_transform(texts)
