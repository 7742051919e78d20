"""What notebook 00 computes of shipped stores."""

from itertools import product

import numpy as np
import pandas as pd

from contamination.audit.battery import TESTS
from contamination.audit.redrawn import gain_by_position
from contamination.statistics import adjust
from contamination.tables import Layout, format_p, lay_out, outcome_row
from reproduction.notebooks.start.shipped import Shipped
from reproduction.run.experiment import MODELS

SHOWN = ("permutation", "sharded_t", "sharded_exact", "successor")


def whole_orderings(shipped: Shipped, dataset: str) -> dict[str, np.ndarray]:
    """Log-probabilities (nats) of the whole set in each ordering, (m+1,) by model."""
    test = TESTS["permutation"]
    return {model: test.scores(*shipped.store_for(model, dataset, test))[0] for model in MODELS}


def token_gains(shipped: Shipped, dataset: str) -> dict[str, np.ndarray]:
    """Gain (nats) of the canonical order by place in the example, (tokens,) by model."""
    test = TESTS["sharded_exact"]
    return {model: gain_by_position(*shipped.store_for(model, dataset, test)) for model in MODELS}


def p_values(shipped: Shipped) -> pd.DataFrame:
    """Test every set under both models: a row for each model, set and test of `SHOWN`.

    `dup_count` is how often the contaminated model met the set; `holm_p` is Holm's correction over
    the sets of one model and test.
    """
    rows = []
    sets = shipped.sets[["dataset", "examples", "dup_count"]].to_dict("records")
    for model, facts, name in product(MODELS, sets, SHOWN):
        store, permutations = shipped.store_for(model, facts["dataset"], TESTS[name])
        result = TESTS[name].result(store, permutations)
        rows.append({"model": model} | facts | outcome_row(result))
    table = pd.DataFrame(rows)
    table["holm_p"] = table.groupby(["model", "test"])["log10_p"].transform(
        lambda log10_p: adjust(log10_p=log10_p, method="holm").p
    )
    return table


def p_layout(rows: pd.DataFrame) -> Layout:
    """Lay out rows of `p_values`: a line for each set and model, a column for each test.

    Sets of most copies come first. Copies are those that the model has read: of the clean one none.
    """
    rows = rows.sort_values(["dup_count", "dataset"], ascending=False, kind="stable")
    return lay_out(
        rows.assign(dup_count=rows["dup_count"].where(rows["model"] != "clean", 0)),
        {"dataset": "Set", "model": "Model", "dup_count": "Copies read"},
        lambda row: {TESTS[row["test"]].label: format_p(row["p"], row["log10_p"])},
    )
