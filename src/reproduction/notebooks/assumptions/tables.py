"""Fu's tables laid out, measured and published, and what becomes of the conclusions of Fu.

Each conclusion is a statement on the numbers that a rule decides; the rules stand with them.
"""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from contamination.tables import MISSING, format_estimate, lay_out
from reproduction.notebooks.assumptions.detection import LABELS, MEAN, PHASES

CHANCE = 50.0  # percent
FAMILIES = {"PPL": "PPL", "Min": "Min k% token", "Mem": "Mem k", "Entropy": "Entropy k"}
TUNED = ("Zephyr-7B-beta", "BioMistral-NLU-7B")  # models of Fu that are judged on tuning data

OURS = ("_off_by_one_", "min_k_")  # metrics that are none of Fu's, by what their names hold

Answer = tuple[str, str]  # what was measured; whether the conclusion holds
NOT_MEASURED = (MISSING, MISSING)


def within_layout(within: pd.DataFrame, phase: str) -> pd.DataFrame:
    """Lay out one phase as Tables 7-15: a row per metric, a column per domain, the mean first.

    AUCs in percent as text, bold where the interval leaves out 50, the interval beside the mean.
    """
    rows = within[within["phase"] == phase]

    def cell(row: dict[Any, Any]) -> dict[str, str]:
        numbers, mean = (row["auc_percent"], row["auc_low"], row["auc_high"]), row["domain"] == MEAN
        shown = format_estimate(*numbers, null=CHANCE, digits=1, interval=mean)
        return {"Mean" if mean else row["domain"]: shown}

    rows = rows.assign(metric=rows["metric"].map(LABELS))
    return lay_out(rows, {"metric": "Metric"}, cell, columns_first=["Mean"])


def sizes_layout(within: pd.DataFrame, parameters: Mapping[str, int]) -> pd.DataFrame:
    """Lay out the models of several sizes as `published_layout` does: a row per phase and model.

    `parameters`, the number of each model, order the rows. Metrics that are none of Fu's are left
    out.
    """
    cells = within[(within["domain"] != MEAN) & ~within["metric"].str.contains("|".join(OURS))]
    cells = cells.assign(metric=cells["metric"].map(LABELS), auc=cells["auc_percent"])
    rows = [
        {"Model": model, "Parameters": f"{parameters[model]:,}", "Phase": phase} | _families(found)
        for phase in PHASES
        for model in sorted(parameters, key=parameters.__getitem__)
        if len(found := cells[(cells["phase"] == phase) & (cells["model"] == model)])
    ]
    columns = ["Model", "Parameters", "Phase", "Domains", *FAMILIES.values()]
    return pd.DataFrame(rows, columns=columns)


def published_layout(table3: pd.DataFrame, within: pd.DataFrame) -> pd.DataFrame:
    """Summarise Tables 3 and 7-15 as published: a row per table and model.

    For each family of metrics: the mean AUC in percent over domains and k, with the lowest and the
    highest. `within` is `fu2025_within_domain_auc` of `data/published`.
    """
    both = pd.concat([table3, within])
    groups = both.assign(auc=both["auc_percent"]).groupby(["table", "model"], sort=False)
    rows = [
        {
            "Table": table.removeprefix("Table "),
            "Model": model,
            "Phase": "tuning" if model in TUNED else "pre-training",
            **_families(found),
        }
        for (table, model), found in groups
    ]
    return pd.DataFrame(rows)


def perplexity_layout(perplexities: pd.DataFrame) -> pd.DataFrame:
    """Lay out `perplexity_table` of one model: a row per phase and domain, mean ± deviation."""
    headings = {"member": "Members", "non_member": "Non-members"}

    def cell(row: dict[Any, Any]) -> dict[str, str]:
        return {headings[row["side"]]: f"{row['perplexity']:.1f} ± {row['sd']:.1f}"}

    index = {"phase": "Phase", "domain": "Domain"}
    return lay_out(perplexities, index, cell, columns_first=list(headings.values()))


def _families(found: pd.DataFrame) -> dict[str, str]:
    """Count domains, and write the mean AUC over domains and k for each family, with its range."""
    cells = {"Domains": str(found["domain"].nunique())}
    for start, name in FAMILIES.items():
        auc = found.loc[found["metric"].str.startswith(start), "auc"]
        cells[name] = f"{auc.mean():.1f} ({auc.min():.1f} to {auc.max():.1f})"
    return cells


def conclusions(
    within: pd.DataFrame, cross: pd.DataFrame, *, model: str, near: float
) -> pd.DataFrame:
    """Confront the conclusions of Fu, and of our own, with the tables of `assumptions.detection`.

    All but that on sizes are about `model`. `near` is how many percentage points of AUC still count
    as near chance, or as no difference. A conclusion holds: yes, no, undecided where intervals are
    too wide, or — where nothing was measured.
    """
    own = within[within["model"] == model]
    of_fu = own[~own["metric"].str.contains("|".join(OURS))]
    every, some = f"every metric within {near:g} points of chance", f"more than {near:g} points off"
    published = {
        f"Read once: {every}, within a domain": _phase(of_fu, "pre-training", near),
        f"Read again and again: some metric {some}, within a domain": _phase(
            of_fu, "fine-tuning", near, far=True
        ),
        f"Of every size: in pre-training, the mean AUC of PPL within {near:g} points of chance": (
            _sizes(within, near)
        ),
        "Across domains AUCs are further from chance than within one": _across(own, cross),
    }
    ours = {
        f"Not read: {every}": _phase(own, "control", near),
        f"The change of domain alone gives the same AUC, to {near:g} points on average": _shift(
            cross, near
        ),
    }
    for phase in PHASES[1:]:
        claim = f"Ranks at the right position change the verdict on Mem 25 in {phase}"
        ours[claim] = _ranks(own, phase)
    both = {"Fu et al.": published, "ours": ours}
    rows = [(whose, claim, *found) for whose in both for claim, found in both[whose].items()]
    return pd.DataFrame(rows, columns=["whose", "conclusion", "measured", "holds"])


def _phase(within: pd.DataFrame, phase: str, near: float, *, far: bool = False) -> Answer:
    """Whether every metric is near chance; `far`: whether some metric is not."""
    means = _means(within, phase)
    if means.empty:
        return NOT_MEASURED
    furthest = (means["auc_percent"] - CHANCE).abs().idxmax()
    cells = within[(within["phase"] == phase) & (within["domain"] != MEAN)]
    outside = ((cells["auc_low"] > CHANCE) | (cells["auc_high"] < CHANCE)).sum()
    measured = (
        f"furthest mean: {LABELS[furthest]}, {_interval(means.loc[furthest])}; "
        f"50 is outside of {outside} of {len(cells)} intervals"
    )
    holds = _near_chance(means, near)
    return measured, {"yes": "no", "no": "yes"}.get(holds, holds) if far else holds


def _sizes(within: pd.DataFrame, near: float) -> Answer:
    means = {
        model: found.loc["loss"]
        for model, rows in within.groupby("model", sort=False)
        if len(found := _means(rows, PHASES[1]))
    }
    if len(means) < 2:
        return NOT_MEASURED
    measured = "; ".join(f"{model} {_interval(row)}" for model, row in means.items())
    return measured, _near_chance(pd.DataFrame(means).T, near)


def _across(within: pd.DataFrame, cross: pd.DataFrame) -> Answer:
    across = _pairs_of_domains(cross)
    inside = within[(within["phase"] == PHASES[1]) & (within["domain"] != MEAN)]
    inside = inside[inside["metric"].isin(set(across["metric"]))]
    if across.empty or inside.empty:
        return NOT_MEASURED
    far, close = ((t["auc_percent"] - CHANCE).abs().mean() for t in (across, inside))
    return f"mean distance {far:.1f} across, {close:.1f} within", _yes(far > close)


def _shift(cross: pd.DataFrame, near: float) -> Answer:
    known = _pairs_of_domains(cross).dropna(subset="shift_auc_percent")
    if known.empty:
        return NOT_MEASURED
    difference = (known["auc_percent"] - known["shift_auc_percent"]).abs().mean()
    shift = (known["shift_auc_percent"] - CHANCE).abs().mean()
    measured = f"mean distance {shift:.1f} with no text seen; mean difference {difference:.1f}"
    return measured, _yes(difference <= near)


def _ranks(within: pd.DataFrame, phase: str) -> Answer:
    means = _means(within, phase)
    if means.empty:
        return NOT_MEASURED
    right, off = means.loc["mem_25"], means.loc["mem_off_by_one_25"]
    measured = f"right {_interval(right)}; off by one {_interval(off)}"
    return measured, _yes((right["auc_low"] > CHANCE) != (off["auc_low"] > CHANCE))


def _near_chance(means: pd.DataFrame, near: float) -> str:
    """Judge whether all means are near chance; far is what lies off with its whole interval."""
    off = (means["auc_low"] > CHANCE + near) | (means["auc_high"] < CHANCE - near)
    if off.any():
        return "no"
    return "yes" if ((means["auc_percent"] - CHANCE).abs() <= near).all() else "undecided"


def _means(within: pd.DataFrame, phase: str) -> pd.DataFrame:
    rows = within[(within["phase"] == phase) & (within["domain"] == MEAN)]
    return rows.set_index("metric")[["auc_percent", "auc_low", "auc_high"]].astype(float)


def _pairs_of_domains(cross: pd.DataFrame) -> pd.DataFrame:
    return cross[(cross["phase"] == PHASES[1]) & (cross["seen_domain"] != cross["unseen_domain"])]


def _interval(row: pd.Series) -> str:
    return format_estimate(row["auc_percent"], row["auc_low"], row["auc_high"], digits=1)


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"
