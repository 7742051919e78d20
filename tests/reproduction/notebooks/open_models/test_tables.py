"""The verdicts of an audit, and its last row: which sets it pools, its p-value and its control."""

import math
from functools import partial

import numpy as np
import pytest
from scipy.stats import binom

from contamination.statistics import pooled_exact_test, sharded_exact_test
from contamination.tables import POOLED
from reproduction.notebooks.open_models.pooling import pooled_rows
from reproduction.notebooks.open_models.tables import judged, paper_layout

EVEN = np.random.default_rng(9).normal(size=(3, 8))
SURE = np.eye(1, 8) + np.zeros((3, 8))  # whose p-value takes no convolution


def row(dataset: str, scores: np.ndarray, model: str = "m", **fields: object) -> dict[str, object]:
    result = sharded_exact_test(scores)
    made = {"model": model, "role": "audited", "dataset": dataset, "texts": (f"{dataset} 1",)}
    made |= {"model_id": f"x/{model}", "model_revision": "1", "test": "successor"}
    made |= {"examples": 10 * len(scores), "tokens_scored": 100, "p": result.p}
    made |= {"log10_p": result.log10_p, "published_p": math.nan, "status": "ok"}
    made |= {"verdict": "quiet", "control": "compressor", "control_p": 0.5}
    made |= {"shards": len(scores), "permutations": 9, "statistic": 1.0}
    made |= {"scores": lambda: scores, "control_scores": lambda: EVEN}
    return made | fields


@pytest.fixture
def scores() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.normal(size=(r, m + 1)) + 0.8 * np.eye(1, m + 1) for r, m in [(6, 9), (8, 30)] * 2]


def test_all_sets_of_a_model_and_test_in_one_p(scores) -> None:
    rows = [row(f"set-{i}", each) for i, each in enumerate(scores)]
    (pooled,) = pooled_rows(rows)
    assert pooled["log10_p"] == pooled_exact_test(scores).log10_p < min(r["log10_p"] for r in rows)
    assert pooled["pooled"] == 4
    assert pooled["left_out"] == ""
    assert pooled["status"] == "ok"
    assert pooled["shards"] == 28
    assert pooled["permutations"] == 9
    assert pooled["examples"] == 280
    assert pooled["test"] == "successor"
    assert pooled["control"] == "compressor"
    assert pooled["control_p"] == pooled_exact_test([EVEN] * 4).p


def test_of_sets_that_share_examples_the_first_is_pooled(scores) -> None:
    """One set twice would count as two independent ones: rejected at 0.11 instead of 0.05."""
    rows = [row(f"set-{i}", each) for i, each in enumerate(scores)]
    rows[2]["texts"] = (*rows[2]["texts"], *rows[0]["texts"])
    (pooled,) = pooled_rows(rows)
    assert pooled["pooled"] == 3
    assert pooled["left_out"] == "set-2 (has examples of set-0)"
    assert pooled["log10_p"] == pooled_exact_test([*scores[:2], scores[3]]).log10_p


def test_sets_whose_controls_reject_are_left_out_and_named(scores) -> None:
    sure = np.eye(1, 10) + np.zeros((20, 10))
    rows = [
        row("one", scores[0]),
        row("two", scores[1], control_p=0.05),
        row("sorted", sure, verdict="suspicious"),
        row("telling", sure, control_p=0.008),
        row("gone", sure, status="failed: no room; free some"),
        row("certain", sure),
    ]
    (pooled,) = pooled_rows(rows)
    assert pooled["log10_p"] == pooled_exact_test([*scores[:2], sure]).log10_p
    assert pooled["pooled"] == 3
    assert pooled["left_out"] == (
        "sorted (order: suspicious); telling (compressor rejects); gone (no p-value)"
    )


def test_a_negative_control_is_pooled_over_the_same_sets(scores) -> None:
    rng = np.random.default_rng(1)
    others = [rng.normal(size=each.shape) for each in scores]
    old = {"model": "old", "role": "negative_control"}
    rows = [
        row(f"set-{i}", each, control="old", control_scores=partial(np.copy, other))
        for i, (each, other) in enumerate(zip(scores, others, strict=True))
    ]
    rows[3]["control_p"] = 0.012  # 0.048 of four
    rows[2]["control_p"] = 0.03
    for i, scores_of_set in enumerate(others):
        rows.append(row(f"set-{i}", scores_of_set, **old))
    audited, control = pooled_rows(rows)
    assert audited["control"] == "old"
    assert audited["control_p"] == pooled_exact_test(others[:3]).p
    assert control["model"] == "old"
    assert control["control"] == "compressor"
    assert control["pooled"] == 4
    assert control["p"] == pooled_exact_test(others).p


def test_quiet_sets_are_not_lost_to_chance_and_their_pooled_control_is_not_flattered() -> None:
    rng = np.random.default_rng(3)
    audits = 30
    sets = 12
    one = row("set", SURE, control="old", control_scores=partial(np.copy, SURE))

    def named(number: int, **fields: object) -> dict[str, object]:
        name = f"set-{number}"
        return one | {"dataset": name, "texts": (name,)} | fields

    whole, p = 0, []
    for _ in range(audits):
        controls = [rng.normal(size=(3, 8)) for _ in range(sets)]
        rows = []
        for i, each in enumerate(controls):
            control_p = sharded_exact_test(each).p
            rows.append(named(i, control_p=control_p, control_scores=partial(np.copy, each)))
        old = {"model": "old", "model_id": "x/old", "role": "negative_control"}
        rows += [named(i, **old) for i in range(sets)]
        audited, _ = pooled_rows(rows)
        whole += audited["pooled"] == sets
        p.append(audited["control_p"])
    assert whole >= binom(audits, 0.95).ppf(0.001)
    low, high = binom(audits, 0.05).ppf([0.001, 0.999])
    assert low <= np.sum(np.array(p) <= 0.05) <= high


def test_nothing_is_pooled_of_one_set_and_a_damaged_store_fails_the_row_alone(scores) -> None:
    def damaged() -> np.ndarray:
        raise OSError("gone")

    one = row("one", scores[0])
    assert pooled_rows([one]) == []
    for other, status in [
        (row("two", scores[1], verdict="suspicious"), "not pooled: 1 of 2 sets are left"),
        (row("two", scores[1]) | {"scores": damaged}, "failed: OSError: gone"),
    ]:
        (pooled,) = pooled_rows([one, other])
        assert pooled["status"] == status
        assert "p" not in pooled


def test_pooled_rows_are_corrected_with_the_others_and_come_last(scores) -> None:
    rows = [row(f"set-{i}", each) for i, each in enumerate(scores)]
    table = judged([*rows, *pooled_rows(rows)], 0.05)
    last = table.iloc[-1]
    assert last["holm_p"] == pytest.approx(5 * last["p"], rel=1e-9, abs=0)  # the smallest of five
    assert paper_layout(table, 0.05)["Set"].tolist()[-1] == POOLED


def test_the_verdict_is_that_of_the_command_over_all_tests_of_a_model_and_set() -> None:
    def found(dataset: str, p: float, **fields: object) -> dict[str, object]:
        by_t = {"p": p, "log10_p": math.log10(p), "test": "sharded_t"}
        return row(dataset, EVEN) | by_t | fields

    loud, heard = {"verdict": "order carries information"}, {"control": "gpt2", "control_p": 0.01}
    rows = [
        *(found("a", 1e-9, test="successor", **loud), found("a", 0.012)),  # 0.048 of four
        found("b", 1e-9, **heard),
        *(found("c", 1e-9, **loud), found("c", 0.5, test="successor")),
        found("d", 0.4, verdict="too few records"),
        found("e", 0.4, test="permutation", shards=1, permutations=9),
    ]
    table = judged(rows, 0.05).groupby("dataset")["conclusion"].unique()
    no_evidence = ["order is no evidence here"]
    assert table.map(list).tolist() == [
        ["evidence"],
        no_evidence,
        no_evidence,
        ["cannot say"],
        ["cannot say"],
    ]


def test_a_printed_verdict_stands_once_for_all_tests_of_a_model_and_set() -> None:
    rows = []
    for name in "ab":
        rows += [row(name, EVEN), row(name, EVEN, test="sharded_t")]
    shown = paper_layout(judged(rows, 0.05), 0.05)["Verdict, m"].tolist()
    assert shown == ["no evidence", "", "no evidence", ""]


def test_options_prove_something_only_beside_a_control_model() -> None:
    small = row("set", EVEN, test="options", log10_p=-6.0, p=1e-6)
    rows = [small | {"control": name} for name in ("compressor", "old")]
    found = [judged([one], 0.05)["conclusion"].item() for one in rows]
    assert found == ["cannot say", "proven"]
    assert pooled_rows([small, small | {"dataset": "other"}]) == []


@pytest.mark.parametrize(
    ("log10_least", "conclusion"),
    [(None, "no evidence"), (-6.0, "no evidence"), (-1.0, "cannot say")],
)
def test_a_test_whose_orderings_are_alike_cannot_say_anything(log10_least, conclusion) -> None:
    """Of three shards with ten orderings p could be 1e-3, if no two of them were alike."""
    table = judged([row("set", EVEN, p=0.4, log10_p=-0.4, log10_least=log10_least)], 0.05)
    assert table["conclusion"].tolist() == [conclusion]
