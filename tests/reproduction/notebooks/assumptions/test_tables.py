"""The tables of Fu as text, and the rules that decide what holds."""

import numpy as np
import pandas as pd
import pytest

from reproduction.notebooks.assumptions.tables import (
    CROSS_COLUMNS,
    MEAN,
    PERPLEXITY_COLUMNS,
    WITHIN_COLUMNS,
    conclusions,
    perplexity_layout,
    perplexity_table,
    sizes_layout,
    within_layout,
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


def test_a_phase_is_laid_out_by_metric_and_domain() -> None:
    aucs = {"b": (51.0, 55.04), "a": (45.0, 46.5), MEAN: (48.0, 54.25)}
    rows = [
        ("pre-training", domain, metric, auc)
        for domain, values in aucs.items()
        for metric, auc in zip(("loss", "mem_off_by_one_5"), values, strict=True)
    ]
    table = within_layout(within_of([*rows, ("control", "a", "loss", 99.0)]), "pre-training")
    assert list(table) == ["Metric", "Mean", "b", "a"]
    assert table.to_numpy().tolist() == [
        ["PPL", "48.0 (44.0 to 52.0)", "51.0", "**45.0**"],
        ["Mem 5, off by one", "**54.2** (50.2 to 58.2)", "**55.0**", "46.5"],
    ]


@pytest.mark.parametrize(
    ("auc", "width", "near", "far"),
    [
        *((auc, width, "yes", "no") for auc, width in ((54.9, 9.0), (45.1, 0.5))),
        *((auc, 4.0, "undecided", "undecided") for auc in (58.0, 42.0)),
        *((auc, 4.0, "no", "yes") for auc in (59.1, 40.9)),
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
        assert measured.startswith(f"furthest mean: PPL, {auc:.1f} (")
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
    holds, measured = verdict("The change of domain alone", within, cross)
    assert holds == alone
    assert measured.endswith(f"mean difference {abs(across - shift):.1f}")


@pytest.mark.parametrize(
    ("right", "off", "changed"), [(60, 52, "yes"), (52, 60, "yes"), (60, 60, "no"), (40, 50, "no")]
)
def test_ranks_change_the_verdict_where_one_interval_leaves_out_chance(right, off, changed) -> None:
    table = within_of(phase_of("fine-tuning", 70, right, off))
    claim = "Ranks at the right position change the verdict on Mem 25 in fine"
    holds, measured = verdict(claim, table, NO_CROSS)
    assert holds == changed
    assert measured == (
        f"right {right}.0 ({right - 4}.0 to {right + 4}.0); "
        f"off by one {off}.0 ({off - 4}.0 to {off + 4}.0)"
    )


def test_perplexities_of_both_sides() -> None:
    losses = {("a", True): [1.0, 2.0, 4.0], ("a", False): [3.0, 3.0], ("b", False): [5.0, 7.0]}
    rows = [
        ("pre-training", domain, member, -np.log(perplexity))
        for (domain, member), values in losses.items()
        for perplexity in values
    ]
    scored = pd.DataFrame(rows, columns=["phase", "domain", "member", "ppl_200"])
    numbers = perplexity_table(scored.assign(loss=-9.0), "ppl_200", model="m")
    assert tuple(numbers) == PERPLEXITY_COLUMNS
    assert numbers["perplexity"].tolist() == pytest.approx([7 / 3, 3, 6])
    assert numbers["sd"].tolist() == pytest.approx([np.sqrt(7 / 3), 0, np.sqrt(2)])
    assert numbers["texts"].tolist() == [3, 2, 2]
    table = perplexity_layout(numbers)
    assert table.to_dict("split")["data"] == [
        ["pre-training", "a", "2.3 ± 1.5", "3.0 ± 0.0"],
        ["pre-training", "b", "—", "6.0 ± 1.4"],
    ]
    assert list(table) == ["Phase", "Domain", "Members", "Non-members"]


def sizes_of(*losses: float) -> pd.DataFrame:
    """Models m, n, ... in pre-training, each with the AUC of its loss."""
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
    within = sizes_of(52.0, 55.0)
    more = within_of([("pre-training", "b", "loss", 40.0), ("pre-training", "b", "mem_25", 60.0)])
    table = sizes_layout(pd.concat([within, more]), {"m": 2000, "n": 10})
    assert table["Model"].tolist() == ["n", "m"]
    assert table["Parameters"].tolist() == ["10", "2,000"]
    assert table["Domains"].tolist() == ["1", "2"]
    assert table["PPL"].tolist() == ["55.0 (55.0 to 55.0)", "46.0 (40.0 to 52.0)"]
    # The off-by-one form stands at 50 and would draw the mean down.
    assert table["Mem k"].tolist() == ["50.0 (50.0 to 50.0)", "55.0 (50.0 to 60.0)"]
