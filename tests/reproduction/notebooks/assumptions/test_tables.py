"""The tables of Fu as text, and the rules that decide what holds."""

import numpy as np
import pandas as pd
import pytest

from reproduction.notebooks.assumptions.tables import (
    CROSS_COLUMNS,
    MEAN,
    WITHIN_COLUMNS,
    conclusions,
    perplexity_table,
    sizes_layout,
)

WIDTH = 4.0


def within_of(rows: list[tuple[str, str, str, float]], width: float = WIDTH) -> pd.DataFrame:
    """(phase, domain, metric, auc) with intervals of +- width."""
    cells = [("m", p, d, m, 9, 9, auc, auc - width, auc + width, "ok") for p, d, m, auc in rows]
    return pd.DataFrame(cells, columns=list(WITHIN_COLUMNS))


def cross_of(rows: list[tuple[str, str, float, float]]) -> pd.DataFrame:
    """(seen_domain, unseen_domain, auc, shift) in pre-training."""
    cells = [("m", "pre-training", a, b, "loss", 9, 9, x, x, x, s, "ok") for a, b, x, s in rows]
    return pd.DataFrame(cells, columns=list(CROSS_COLUMNS))


NO_CROSS = cross_of([])


def phase_of(phase: str, loss: float, mem: float = 50, off: float = 50) -> list:
    values = {"loss": loss, "mem_25": mem, "mem_off_by_one_25": off}
    return [(phase, domain, m, auc) for domain in ("a", MEAN) for m, auc in values.items()]


def verdict(start: str, *args, near: float = 5, **kwargs) -> tuple[str, str]:
    table = conclusions(*args, model="m", near=near, **kwargs)
    (row,) = table[table["conclusion"].str.startswith(start)].to_dict("records")
    return row["holds"], row["measured"]


@pytest.mark.parametrize(
    ("auc", "width", "near", "far"),
    [
        (54.9, 9.0, "yes", "no"),
        (42.0, 4.0, "undecided", "undecided"),
        (59.1, 4.0, "no", "yes"),
        (40.9, 4.0, "no", "yes"),
    ],
)
def test_near_chance_is_decided_by_estimate_and_interval(auc, width, near, far) -> None:
    for phase, start, expected in (
        ("control", "Not read", near),
        ("pre-training", "Read once", near),
        ("fine-tuning", "Read again", far),
    ):
        table = within_of(phase_of(phase, auc), width)
        holds, measured = verdict(start, table, NO_CROSS)
        assert holds == expected
        outside = int(auc - width > 50 or auc + width < 50)
        metrics = 3 if start == "Not read" else 2  # one of them is none of Fu's
        assert measured.endswith(f"50 is outside of {outside} of {metrics} intervals")


@pytest.mark.parametrize(
    ("across", "shift", "further", "alone"),
    [(80.0, 78.0, "yes", "yes"), (20.0, 40.0, "yes", "no"), (51.0, 51.0, "no", "yes")],
)
def test_domains_tell_themselves_apart(across, shift, further, alone) -> None:
    within = within_of(phase_of("pre-training", 47))
    cross = cross_of([("a", "a", 99.0, float("nan")), ("a", "b", across, shift)])
    holds, measured = verdict("Across domains", within, cross)
    assert holds == further
    assert measured == f"mean distance {abs(across - 50):.1f} across, 3.0 within"
    assert verdict("The change of domain alone", within, cross)[0] == alone


@pytest.mark.parametrize(
    ("right", "off", "changed"), [(60, 52, "yes"), (52, 60, "yes"), (60, 60, "no"), (40, 50, "no")]
)
def test_ranks_change_the_verdict_where_one_interval_leaves_out_chance(right, off, changed) -> None:
    table = within_of(phase_of("fine-tuning", 70, right, off))
    claim = "Ranks at the right position change the verdict on Mem 25 in fine"
    holds, measured = verdict(claim, table, NO_CROSS)
    assert holds == changed
    assert measured.startswith(f"right {right}.0 (") and f"off by one {off}.0 (" in measured


def test_perplexities_of_both_sides() -> None:
    losses = {("a", True): [1.0, 2.0, 4.0], ("a", False): [3.0, 3.0], ("b", False): [5.0, 7.0]}
    rows = [
        ("pre-training", domain, member, -np.log(perplexity))
        for (domain, member), values in losses.items()
        for perplexity in values
    ]
    scored = pd.DataFrame(rows, columns=["phase", "domain", "member", "ppl_200"])
    numbers = perplexity_table(scored.assign(loss=-9.0), "ppl_200", model="m")
    assert numbers["perplexity"].tolist() == pytest.approx([7 / 3, 3, 6])
    assert numbers["sd"].tolist() == pytest.approx([np.sqrt(7 / 3), 0, np.sqrt(2)])
    assert numbers["texts"].tolist() == [3, 2, 2]


def sizes_of(*losses: float) -> pd.DataFrame:
    parts = [
        within_of(phase_of("pre-training", loss)).assign(model=model)
        for model, loss in zip("mno", losses, strict=False)
    ]
    return pd.concat(parts, ignore_index=True)


@pytest.mark.parametrize(
    ("losses", "holds"),
    [((51, 48), "yes"), ((51, 60), "no"), ((51, 40), "no"), ((51, 58), "undecided"), ((51,), "—")],
)
def test_sizes_are_near_chance_if_none_is_far_either_way(losses, holds) -> None:
    assert verdict("Of every size", sizes_of(*losses), NO_CROSS)[0] == holds


def test_sizes_are_laid_out_from_small_to_large() -> None:
    more = within_of([("pre-training", "b", "loss", 40.0), ("pre-training", "b", "mem_25", 60.0)])
    table = sizes_layout(pd.concat([sizes_of(52.0, 55.0), more]), {"m": 2000, "n": 10})
    # The off-by-one form stands at 50 and would draw the mean down.
    assert table[["Model", "Parameters", "Domains", "PPL", "Mem k"]].to_numpy().tolist() == [
        ["n", "10", "1", "55.0 (55.0 to 55.0)", "50.0 (50.0 to 50.0)"],
        ["m", "2,000", "2", "46.0 (40.0 to 52.0)", "55.0 (50.0 to 60.0)"],
    ]
