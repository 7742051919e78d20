"""Confront conclusions of Fu et al., and our own, with the tables of notebook 08."""

import pandas as pd

from contamination.tables import MISSING, format_estimate
from reproduction.notebooks.assumptions.labels import LABELS, PHASES
from reproduction.notebooks.assumptions.tables import CHANCE, MEAN, of_fu

Answer = tuple[str, str]  # what was measured; whether the conclusion holds
NOT_MEASURED = (MISSING, MISSING)
YES = {True: "yes", False: "no"}
FU = "Fu et al."  # whose conclusions
OWN = "ours"


def conclusions(
    within: pd.DataFrame,
    cross: pd.DataFrame,
    *,
    model: str,
    near: float,
) -> pd.DataFrame:
    """Compare conclusions of Fu and our own with the AUCs measured here.

    All but that on sizes are about one model. A conclusion holds: yes, no, undecided
    where intervals are too wide, or — where nothing was measured.

    Parameters
    ----------
    within, cross
        Tables of `within_table` and `cross_table`.
    model
        Name of the model that the conclusions are about.
    near
        Percentage points of AUC that still count as near chance, or as no difference.
    """
    own = within[within["model"] == model]
    control, once, again = PHASES
    is_apart = (cross["phase"] == once) & (cross["seen_domain"] != cross["unseen_domain"])
    apart = cross[is_apart]
    inside = own[(own["phase"] == once) & (own["domain"] != MEAN)]
    inside = inside[inside["metric"].isin(set(apart["metric"]))]
    every = f"every metric within {near:g} points of chance"
    some = f"some metric more than {near:g} points off"
    size = f"in pre-training, the mean AUC of PPL within {near:g} points of chance"
    change = f"The change of domain alone gives the same AUC, to {near:g} points on average"
    ranks = "Ranks at the right position change the verdict on Mem 25 in"
    rows = [
        (FU, f"Read once: {every}, within a domain", _phase(of_fu(own), once, near)),
        (
            FU,
            f"Read again and again: {some}, within a domain",
            _phase(of_fu(own), again, near, far=True),
        ),
        (FU, f"Of every size: {size}", _every_size(within, once, near)),
        (
            FU,
            "Across domains AUCs are further from chance than within one",
            _across(apart, inside),
        ),
        (OWN, f"Not read: {every}", _phase(own, control, near)),
        (OWN, change, _change_alone(apart, near)),
        (OWN, f"{ranks} {once}", _ranks(_means(own, once))),
        (OWN, f"{ranks} {again}", _ranks(_means(own, again))),
    ]
    table = [(whose, claim, measured, holds) for whose, claim, (measured, holds) in rows]
    return pd.DataFrame(table, columns=["whose", "conclusion", "measured", "holds"])


def _every_size(within: pd.DataFrame, phase: str, near: float) -> Answer:
    """Judge whether the mean AUC of the loss is near chance under every model."""
    sizes = _means(within[within["metric"] == "loss"], phase, index="model")
    if len(sizes) < 2:
        return NOT_MEASURED
    return _shown(sizes), _near_chance(sizes, near)


def _across(apart: pd.DataFrame, inside: pd.DataFrame) -> Answer:
    """Judge whether AUCs across domains are further from chance than within one."""
    if apart.empty or inside.empty:
        return NOT_MEASURED
    far = _off(apart["auc_percent"]).mean()
    close = _off(inside["auc_percent"]).mean()
    return f"mean distance {far:.1f} across, {close:.1f} within", YES[far > close]


def _change_alone(apart: pd.DataFrame, near: float) -> Answer:
    """Judge whether the change of domain, with no text seen, gives the same AUC."""
    known = apart.dropna(subset="shift_auc_percent")
    if known.empty:
        return NOT_MEASURED
    shift = _off(known["shift_auc_percent"]).mean()
    difference = (known["auc_percent"] - known["shift_auc_percent"]).abs().mean()
    measured = f"mean distance {shift:.1f} with no text seen; mean difference {difference:.1f}"
    return measured, YES[difference <= near]


def _phase(
    within: pd.DataFrame,
    phase: str,
    near: float,
    *,
    far: bool = False,
) -> Answer:
    """Judge whether every metric is near chance; `far`: whether some metric is not."""
    means = _means(within, phase)
    if means.empty:
        return NOT_MEASURED
    furthest = means.loc[_off(means["auc_percent"]).idxmax()]
    cells = within[(within["phase"] == phase) & (within["domain"] != MEAN)]
    outside = ((cells["auc_low"] > CHANCE) | (cells["auc_high"] < CHANCE)).sum()
    measured = (
        f"furthest mean: {LABELS[furthest.name]}, {format_estimate(*furthest, digits=1)}; "
        f"50 is outside of {outside} of {len(cells)} intervals"
    )
    holds = _near_chance(means, near)
    if far:
        opposite = {"yes": "no", "no": "yes", "undecided": "undecided"}
        holds = opposite[holds]
    return measured, holds


def _ranks(means: pd.DataFrame) -> Answer:
    """Judge whether Mem 25 is above chance with ranks at one position alone."""
    if means.empty:
        return NOT_MEASURED
    both = means.loc[["mem_25", "mem_off_by_one_25"]].set_axis(["right", "off by one"])
    is_above = both["auc_low"] > CHANCE
    return _shown(both), YES[is_above.nunique() > 1]


def _shown(means: pd.DataFrame) -> str:
    """Write each mean with its interval."""
    parts = []
    for name, estimate in means.iterrows():
        parts.append(f"{name} {format_estimate(*estimate, digits=1)}")
    return "; ".join(parts)


def _off(aucs: pd.Series) -> pd.Series:
    return (aucs - CHANCE).abs()


def _near_chance(means: pd.DataFrame, near: float) -> str:
    """Judge whether all means are near chance.

    A mean is far from chance if its whole interval lies off.
    """
    off = (means["auc_low"] > CHANCE + near) | (means["auc_high"] < CHANCE - near)
    if off.any():
        return "no"
    if (_off(means["auc_percent"]) <= near).all():
        return "yes"
    return "undecided"


def _means(within: pd.DataFrame, phase: str, index: str = "metric") -> pd.DataFrame:
    rows = within[(within["phase"] == phase) & (within["domain"] == MEAN)]
    return rows.set_index(index)[["auc_percent", "auc_low", "auc_high"]].astype(float)
