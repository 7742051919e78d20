"""Before a p-value is called contamination: does the order of the records carry information?

The tests of Oren (section 3) assume that, to a model that never saw the set, every order of the
examples is as likely as the canonical one. Sorted records, topics or duplicates that sit together
and runs of labels break that without any contamination. Each diagnostic looks for one of them, by a
permutation test that needs no model.

With `shards`, records are permuted within shards, as the sharded test permutes them: the null
hypothesis is then the very one of that test. With a single shard it is that of the permutation test
on the whole set, which asks for more: topics in blocks longer than a shard break it, and hardly
matter to a test that only ever permutes records of one topic.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from contamination.audit.diagnostic_rows import TESTS, Orders, diagnostic_rows
from contamination.audit.record_features import Record
from contamination.errors import InputError
from contamination.statistics import adjust
from contamination.statistics.exchangeability import random_orderings
from contamination.testsets.orderings import shard_bounds

Verdict = Literal["quiet", "suspicious", "order carries information", "too few records"]


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What the order of a set of records gives away.

    Attributes
    ----------
    table : DataFrame
        One row per diagnostic: diagnostic, observed and expected (mean over the orderings) in the
        units that the reading names, z (of the statistic behind p), p, log10_p, holm_p (Holm over
        the rows), alternative, reading. Rows that only inform, or do not apply, have no p.
    verdict : str
        "order carries information": a diagnostic rejects at alpha after Holm's correction, which
        happens to an exchangeable set with probability at most alpha. "suspicious": one would
        reject if it stood alone, which happens to at most 8 alpha of exchangeable sets. "quiet":
        none would. "too few records": so few orderings exist that none could ever stand out.
    reasons : tuple of str
        The readings behind the verdict.
    """

    table: pd.DataFrame
    verdict: Verdict
    reasons: tuple[str, ...]


def diagnose(
    texts: Sequence[str],
    records: Sequence[Record] | None = None,
    *,
    label: str | None = None,
    shards: int = 1,
    alpha: float = 0.01,
    permutations: int = 999,
    rng: np.random.Generator,
) -> Diagnosis:
    """Test without a model whether the order of the records is exchangeable.

    Parameters
    ----------
    texts : sequence of str
        The examples as a model is shown them, in canonical order; at least two.
    records : sequence of mappings, optional
        The records behind them, whose fields are searched for a label, ids and line breaks.
    label : str, optional
        The field that holds the label; without it the usual names are tried.
    shards : int
        Records are permuted within this many contiguous shards: give the number of the test that
        the diagnosis is for, 1 for the test on the whole set.
    alpha : float
        Level of the verdict.
    permutations : int
        m, the number of random orderings, which all diagnostics share. A Holm-adjusted p near alpha
        depends on the draws: settle it with more.
    rng : numpy.random.Generator
        Source of the orderings.

    Raises
    ------
    InputError
        Fewer than two texts or two per shard, something that is no text or record, another number
        of records, an unknown label field, alpha outside (0, 1), or so few permutations that no
        diagnostic could be rejected at alpha.
    """
    _check(texts, records, alpha, permutations)
    bounds = shard_bounds(len(texts), shards)
    orders = Orders(random_orderings(bounds, permutations, rng=rng), bounds)
    table = pd.DataFrame(diagnostic_rows(texts, records, label, orders))
    tested = table["p"].notna()
    table.insert(table.columns.get_loc("log10_p") + 1, "holm_p", math.nan)
    table.loc[tested, "holm_p"] = adjust(table.loc[tested, "p"], method="holm").p
    possible = sum(math.lgamma(stop - start + 1) for start, stop in bounds)  # log of orderings
    return _judge(table, alpha, few=possible < math.log(TESTS / alpha))


def _check(
    texts: Sequence[str], records: Sequence[Record] | None, alpha: float, permutations: int
) -> None:
    if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
        raise InputError("texts is not a list of strings: give one rendered text for each record")
    if len(texts) < 2:
        raise InputError(f"{len(texts)} record(s) have no order: give at least two")
    if records is not None and len(records) != len(texts):
        raise InputError(f"{len(records)} records for {len(texts)} texts: give one for each text")
    if not all(isinstance(record, Mapping) for record in records or ()):
        raise InputError("records are not mappings of fields to values: leave them out")
    if not 0 < alpha < 1:
        raise InputError(f"alpha is {alpha}: give a level between 0 and 1, such as 0.01")
    needed = math.ceil(TESTS / alpha) - 1
    if permutations < needed:
        raise InputError(
            f"permutations is {permutations}: with {TESTS} diagnostics none could be rejected at "
            f"{alpha:g}; give at least {needed}"
        )


def _judge(table: pd.DataFrame, alpha: float, *, few: bool) -> Diagnosis:
    verdict: Verdict = "order carries information"
    chosen, reasons = table[table["holm_p"] <= alpha], []
    if few:
        verdict, chosen = "too few records", table.iloc[:0]
        reasons = ["too few orderings are possible for any to stand out: give more records"]
    elif chosen.empty:
        verdict, chosen = "suspicious", table[table["p"] <= alpha]
    if not few and chosen.empty:
        verdict, least = "quiet", table.loc[table["p"].idxmin()]
        reasons = [f"the smallest p is {least['p']:.3g} ({least['diagnostic']})"]
    for row in chosen.sort_values("p", kind="stable").itertuples():
        reasons.append(f"{row.diagnostic}: {row.reading} (p = {row.p:.3g})")
    lines = table[table["diagnostic"] == "spans_lines"].iloc[0]
    if lines["observed"] > 0:
        reasons.append(f"{lines['diagnostic']}: {lines['reading']}")
    return Diagnosis(table, verdict, tuple(reasons))
