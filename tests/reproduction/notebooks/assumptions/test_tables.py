"""The rules that decide what holds, and sums of made-up numbers by hand."""

import itertools

import numpy as np
import pandas as pd
import pytest

from reproduction.notebooks.assumptions.conclusions import conclusions
from reproduction.notebooks.assumptions.tables import (
    CROSS_COLUMNS,
    MEAN,
    WITHIN_COLUMNS,
    perplexity_table,
)

ONCE, TUNED, CONTROL = "pre-training", "fine-tuning", "control"
PHASE = {"Read once": ONCE, "Read again": TUNED, "Not read": CONTROL}


def within_of(
    phase: str, loss: float, mem: float = 50, off: float = 50, *, width: float = 4, model: str = "m"
) -> pd.DataFrame:
    """AUCs of a domain, and the same means, with intervals of +- width."""
    values = {"loss": loss, "mem_25": mem, "mem_off_by_one_25": off}
    cells = []
    for domain, (metric, auc) in itertools.product(("a", MEAN), values.items()):
        cells.append((model, phase, domain, metric, 9, 9, auc, auc - width, auc + width, "ok"))
    return pd.DataFrame(cells, columns=list(WITHIN_COLUMNS))


def cross_of(*rows: tuple[str, str, float, float]) -> pd.DataFrame:
    """(seen_domain, unseen_domain, auc, shift) in pre-training."""
    cells = [("m", ONCE, a, b, "loss", 9, 9, x, x, x, s, "ok") for a, b, x, s in rows]
    return pd.DataFrame(cells, columns=list(CROSS_COLUMNS))


def sizes_of(*losses: float) -> pd.DataFrame:
    parts = [within_of(ONCE, loss, model=m) for m, loss in zip("mno", losses, strict=False)]
    return pd.concat(parts, ignore_index=True)


def near(claim: str, auc: float, width: float) -> tuple[str, pd.DataFrame, pd.DataFrame]:
    return claim, within_of(PHASE[claim], auc, width=width), cross_of()


def across(claim: str, auc: float, shift: float) -> tuple[str, pd.DataFrame, pd.DataFrame]:
    cross = cross_of(("a", "a", 99.0, np.nan), ("a", "b", auc, shift))
    return claim, within_of(ONCE, 47), cross


def ranks(right: float, off: float) -> tuple[str, pd.DataFrame, pd.DataFrame]:
    claim = "Ranks at the right position change the verdict on Mem 25 in fine"
    return claim, within_of(TUNED, 70, right, off), cross_of()


def size(*losses: float) -> tuple[str, pd.DataFrame, pd.DataFrame]:
    return "Of every size", sizes_of(*losses), cross_of()


FURTHER, ALONE = "Across domains", "The change of domain alone"
CASES = [
    (*near("Not read", 54.9, 9.0), "yes", "50 is outside of 0 of 3 intervals"),
    (*near("Not read", 42.0, 4.0), "undecided", "50 is outside of 1 of 3 intervals"),
    (*near("Not read", 59.1, 4.0), "no", "50 is outside of 1 of 3 intervals"),
    (*near("Read once", 54.9, 9.0), "yes", "of 2 intervals"),  # one metric is none of Fu's
    (*near("Read once", 40.9, 4.0), "no", "of 2 intervals"),
    (*near("Read again", 54.9, 9.0), "no", "of 2 intervals"),
    (*near("Read again", 42.0, 4.0), "undecided", "of 2 intervals"),
    (*near("Read again", 40.9, 4.0), "yes", "of 2 intervals"),
    (*across(FURTHER, 80.0, 78.0), "yes", "mean distance 30.0 across, 3.0 within"),
    (*across(FURTHER, 20.0, 40.0), "yes", "mean distance 30.0 across, 3.0 within"),
    (*across(FURTHER, 51.0, 51.0), "no", "mean distance 1.0 across, 3.0 within"),
    (*across(ALONE, 80.0, 78.0), "yes", "mean difference 2.0"),
    (*across(ALONE, 20.0, 40.0), "no", "mean difference 20.0"),
    # One of the two intervals leaves out chance, and the other does not.
    (*ranks(60, 52), "yes", "right 60.0 (56.0 to 64.0); off by one 52.0 (48.0 to 56.0)"),
    (*ranks(52, 60), "yes", "off by one 60.0"),
    (*ranks(60, 60), "no", "off by one 60.0"),
    (*ranks(40, 50), "no", "off by one 50.0"),
    (*size(51, 48), "yes", "m 51.0 (47.0 to 55.0); n 48.0 (44.0 to 52.0)"),
    (*size(51, 60), "no", "n 60.0"),
    (*size(51, 40), "no", "n 40.0"),
    (*size(51, 58), "undecided", "n 58.0"),
    (*size(51), "—", "—"),
]


@pytest.mark.parametrize(("claim", "within", "cross", "holds", "measured"), CASES)
def test_a_rule_decides_each_conclusion(claim, within, cross, holds, measured) -> None:
    table = conclusions(within, cross, model="m", near=5)
    (row,) = table[table["conclusion"].str.startswith(claim)].to_dict("records")
    assert row["holds"] == holds
    assert measured in row["measured"]


def test_perplexities_of_both_sides() -> None:
    losses = {("a", True): [1.0, 2.0, 4.0], ("a", False): [3.0, 3.0], ("b", False): [5.0, 7.0]}
    rows = []
    for key, perplexities in losses.items():
        rows += [(ONCE, *key, -np.log(perplexity)) for perplexity in perplexities]
    scored = pd.DataFrame(rows, columns=["phase", "domain", "member", "ppl_200"])
    numbers = perplexity_table(scored.assign(loss=-9.0), "ppl_200")
    assert numbers["perplexity"].tolist() == pytest.approx([7 / 3, 3, 6])
    assert numbers["sd"].tolist() == pytest.approx([np.sqrt(7 / 3), 0, np.sqrt(2)])
    assert numbers["texts"].tolist() == [3, 2, 2]
