"""The last row of an audit: which sets it pools, what it says of the others, and its p-value."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from contamination.statistics import pooled_exact_test, sharded_exact_test
from contamination.tables import POOLED
from reproduction.notebooks.open_models.pooled import pooled_rows
from reproduction.notebooks.open_models.tables import corrected, paper_layout


class Compressor:
    """Stands for the opened sets: which were pooled under a compressor."""

    def __init__(self) -> None:
        self.asked: list[tuple] = []

    def pooled_compressor_p(self, stores: tuple) -> float:
        self.asked.append(stores)
        return 0.7


def row(dataset: str, scores: np.ndarray, model: str = "m", **fields: object) -> dict[str, object]:
    """A row as `audit_models` makes it, with its controls."""
    result = sharded_exact_test(scores)
    made = {"model": model, "role": "audited", "dataset": dataset, "name": dataset}
    made |= {"model_id": f"x/{model}", "model_revision": "1", "test": "successor"}
    made |= {"examples": 10 * len(scores), "tokens_scored": 100, "p": result.p}
    made |= {"log10_p": result.log10_p, "published_p": math.nan, "status": "ok"}
    made |= {"verdict": "quiet", "control": "compressor", "control_p": 0.5}
    made |= {"store": {"kind": "successors", "shards": len(scores)}, "scores": lambda: scores}
    return made | fields


@pytest.fixture
def scores() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.normal(size=(r, m + 1)) + 0.8 * np.eye(1, m + 1) for r, m in [(6, 9), (8, 30)] * 2]


def test_all_sets_of_a_model_and_test_in_one_p(scores) -> None:
    sets = Compressor()
    rows = [row(f"set-{i}", each) for i, each in enumerate(scores)]
    (pooled,) = pooled_rows(rows, sets)
    assert pooled["dataset"] == POOLED
    assert pooled["log10_p"] == pooled_exact_test(scores).log10_p < min(r["log10_p"] for r in rows)
    assert (pooled["pooled"], pooled["left_out"], pooled["status"]) == (4, "", "ok")
    assert (pooled["shards"], pooled["permutations"], pooled["examples"]) == (28, 9, 280)
    assert (pooled["test"], pooled["control"], pooled["control_p"]) == (
        "successor",
        "compressor",
        0.7,
    )
    assert [name for name, _ in sets.asked[0]] == [f"set-{i}" for i in range(4)]
    assert dict(sets.asked[0][0][1]) == rows[0]["store"]


def test_sets_whose_controls_reject_are_left_out_and_named(scores) -> None:
    """By the control, the order and the status; never by the p-value under test."""
    sure = np.eye(1, 10) + np.zeros((20, 10))
    rows = [
        row("one", scores[0]),
        row("two", scores[1], control_p=0.05),
        row("sorted", sure, verdict="suspicious"),
        row("telling", sure, control_p=0.008),
        row("gone", sure, status="failed: no room; free some"),
        row("certain", sure),
    ]
    (pooled,) = pooled_rows(rows, Compressor())
    assert pooled["log10_p"] == pooled_exact_test([*scores[:2], sure]).log10_p
    assert pooled["pooled"] == 3
    assert pooled["left_out"] == (
        "sorted (order: suspicious); telling (compressor rejects); gone (no p-value)"
    )


def test_a_negative_control_is_pooled_over_the_same_sets(scores) -> None:
    """Its own row asks the compressor; beside the model stands what it says of the model's sets."""
    rng = np.random.default_rng(1)
    others = [rng.normal(size=each.shape) for each in scores]
    old = {"model": "old", "role": "negative_control"}
    rows = [row(f"set-{i}", each, control="old") for i, each in enumerate(scores)]
    rows[3]["control_p"] = 0.012  # 0.048 of four
    rows[2]["control_p"] = 0.03
    rows += [row(f"set-{i}", each, **old) for i, each in enumerate(others)]
    audited, control = pooled_rows(rows, Compressor())
    assert audited["control"] == "old"
    assert audited["control_p"] == pooled_exact_test(others[:3]).p
    assert (control["model"], control["control"], control["pooled"]) == ("old", "compressor", 4)
    assert control["p"] == pooled_exact_test(others).p


def test_quiet_sets_are_not_lost_to_chance_and_their_pooled_control_is_not_flattered() -> None:
    """All of 12 sets stay in 95% of audits or more, and their control keeps its level."""
    rng, audits, sets = np.random.default_rng(3), 300, 12
    whole, p = 0, []
    for _ in range(audits):
        controls = [rng.normal(size=(3, 8)) for _ in range(sets)]
        rows = [
            row(f"set-{i}", rng.normal(size=(3, 8)), control="old")
            | {"control_p": sharded_exact_test(each).p}
            for i, each in enumerate(controls)
        ]
        old = {"model": "old", "role": "negative_control"}
        rows += [row(f"set-{i}", each, **old) for i, each in enumerate(controls)]
        audited, _ = pooled_rows(rows, Compressor())
        whole += audited["pooled"] == sets
        p.append(audited["control_p"])
    assert whole >= binom(audits, 0.95).ppf(0.001)
    low, high = binom(audits, 0.05).ppf([0.001, 0.999])
    assert low <= np.sum(np.array(p) <= 0.05) <= high


def test_nothing_is_pooled_of_one_set_or_of_none_that_is_left(scores) -> None:
    assert pooled_rows([row("one", scores[0])], Compressor()) == []
    rows = [row("one", scores[0]), row("two", scores[1], verdict="suspicious")]
    (pooled,) = pooled_rows(rows, Compressor())
    assert pooled["status"] == "not pooled: 1 of 2 sets are left"
    assert "p" not in pooled


def test_a_damaged_store_fails_the_row_alone(scores) -> None:
    def damaged() -> np.ndarray:
        raise OSError("gone")

    rows = [row("one", scores[0]), row("two", scores[1]) | {"scores": damaged}]
    (pooled,) = pooled_rows(rows, Compressor())
    assert pooled["status"].startswith("failed")


def test_pooled_rows_are_a_family_of_their_own_and_come_last(scores) -> None:
    rows = [row(f"set-{i}", each) for i, each in enumerate(scores)]
    without = corrected(rows)
    table = corrected([*rows, *pooled_rows(rows, Compressor())])
    assert table["holm_p"][:4].tolist() == without["holm_p"].tolist()
    last = table.iloc[-1]
    assert last["holm_p"] == pytest.approx(last["p"])  # one model: nothing to correct
    assert paper_layout(table, 0.05)["Set"].tolist()[-1] == POOLED


def test_the_pooled_p_holds_its_level_where_sets_show_nothing() -> None:
    rng = np.random.default_rng(2)
    p = []
    for _ in range(400):
        rows = [row(name, rng.normal(size=(3, 8))) for name in "abcd"]
        p.append(pooled_rows(rows, Compressor())[0]["p"])
    assert 0.02 < np.mean(np.array(p) <= 0.05) < 0.09
