"""Fu's tables laid out, measured and published, and what becomes of the conclusions of Fu.

Each conclusion is a statement on the numbers that a rule decides; the rules stand with them.
"""

from collections.abc import Iterator, Mapping

import pandas as pd

from contamination.experiments.assumptions.detection import LABELS, MEAN, PHASES
from contamination.results.tables import format_estimate

CHANCE = 50.0  # percent
FAMILIES = {"PPL": "PPL", "Min": "Min k% token", "Mem": "Mem k", "Entropy": "Entropy k"}
TUNED = ("Zephyr-7B-beta", "BioMistral-NLU-7B")  # models of Fu that are judged on tuning data


def within_layout(within: pd.DataFrame, phase: str) -> pd.DataFrame:
    """Lay out one phase as Tables 7-15: a row per metric, a column per domain, the mean first.

    AUCs in percent as text, bold where the interval leaves out 50, the interval beside the mean.
    """
    rows = within[within["phase"] == phase]
    columns = ("domain", "auc_percent", "auc_low", "auc_high")
    cells = [_cell(*row) for row in zip(*(rows[c] for c in columns), strict=True)]
    shown = rows.assign(cell=cells)
    wide = shown.pivot_table(
        index="metric", columns="domain", values="cell", aggfunc="first", sort=False
    )
    domains = [name for name in wide if name != MEAN]
    wide = wide.reindex(columns=[MEAN, *domains]).rename(index=LABELS)
    wide.columns.name = None
    return wide.rename_axis("Metric").rename(columns={MEAN: "Mean"}).reset_index()


def _cell(domain: str, auc: float, low: float, high: float) -> str:
    return format_estimate(auc, low, high, null=CHANCE, digits=1, interval=domain == MEAN)


def sizes_layout(within: pd.DataFrame, parameters: Mapping[str, int]) -> pd.DataFrame:
    """Lay out the models of several sizes as `published_layout` does: a row per phase and model.

    Parameters
    ----------
    within : of several models.
    parameters : model -> its number of parameters, which orders the rows.

    Returns
    -------
    DataFrame
        Text: Model, Parameters, Phase, Domains, and the families of metrics; the off-by-one form of
        Mem k is left out.
    """
    cells = within[within["domain"] != MEAN]
    cells = cells.assign(metric=cells["metric"].map(LABELS), auc=cells["auc_percent"])
    cells = cells[~cells["metric"].str.endswith("off by one")]
    rows = []
    for phase in PHASES:
        for model in sorted(parameters, key=parameters.__getitem__):
            found = cells[(cells["phase"] == phase) & (cells["model"] == model)]
            if len(found):
                row = {"Model": model, "Parameters": f"{parameters[model]:,}", "Phase": phase}
                rows.append(row | _families(found))
    columns = ["Model", "Parameters", "Phase", "Domains", *FAMILIES.values()]
    return pd.DataFrame(rows, columns=columns)


def conclusions(
    within: pd.DataFrame, cross: pd.DataFrame, *, model: str, near: float
) -> pd.DataFrame:
    """Confront the conclusions of Fu with the tables of `assumptions.detection`.

    Parameters
    ----------
    within : of one model or of several sizes; cross : of `model`.
    model : the one that all conclusions but that on sizes are about.
    near : percentage points of AUC that still count as near chance, or as no difference.

    Returns
    -------
    DataFrame
        conclusion, measured (text), holds: yes, no, undecided where intervals are too wide, or —
        where nothing was measured.
    """
    own = within[within["model"] == model]
    rows = [
        *_of_phases(own, near),
        *_of_sizes(within, near),
        *_of_domains(own, cross, near),
        *_of_ranks(own),
    ]
    return pd.DataFrame(rows, columns=["conclusion", "measured", "holds"])


def _of_phases(within: pd.DataFrame, near: float) -> Iterator[tuple[str, str, str]]:
    for phase, claim, answers in (
        ("control", f"Not read: every metric within {near:g} points of chance", ("yes", "no")),
        (
            "pre-training",
            f"Read once: every metric within {near:g} points of chance, within a domain",
            ("yes", "no"),
        ),
        (
            "fine-tuning",
            f"Read again and again: some metric more than {near:g} points off, within a domain",
            ("no", "yes"),
        ),
    ):
        means = _means(within, phase)
        if means.empty:
            yield claim, "—", "—"
            continue
        all_near, some_far = answers
        distance = (means["auc_percent"] - CHANCE).abs()
        far = distance.idxmax()
        # Far is what lies off the band around chance with its whole interval.
        off = (means["auc_low"] > CHANCE + near) | (means["auc_high"] < CHANCE - near)
        verdict = "undecided"
        if off.any():
            verdict = some_far
        elif (distance <= near).all():
            verdict = all_near
        cells = within[(within["phase"] == phase) & (within["domain"] != MEAN)]
        outside = ((cells["auc_low"] > CHANCE) | (cells["auc_high"] < CHANCE)).sum()
        measured = (
            f"furthest mean: {LABELS[far]}, {_interval(means.loc[far])}; "
            f"50 is outside of {outside} of {len(cells)} intervals"
        )
        yield claim, measured, verdict


def _of_sizes(within: pd.DataFrame, near: float) -> Iterator[tuple[str, str, str]]:
    claim = f"Of every size: in pre-training, the mean AUC of PPL within {near:g} points of chance"
    found = {}
    for model, rows in within.groupby("model", sort=False):
        means = _means(rows, PHASES[1])
        if len(means):
            found[model] = means.loc["loss"]
    if len(found) < 2:
        yield claim, "—", "—"
        return
    measured = "; ".join(f"{model} {_interval(row)}" for model, row in found.items())
    distance = [abs(row["auc_percent"] - CHANCE) for row in found.values()]
    off = [
        row["auc_low"] > CHANCE + near or row["auc_high"] < CHANCE - near for row in found.values()
    ]
    verdict = "no" if any(off) else "yes" if max(distance) <= near else "undecided"
    yield claim, measured, verdict


def _of_domains(
    within: pd.DataFrame, cross: pd.DataFrame, near: float
) -> Iterator[tuple[str, str, str]]:
    across = cross[(cross["phase"] == PHASES[1]) & (cross["seen_domain"] != cross["unseen_domain"])]
    inside = within[(within["phase"] == PHASES[1]) & (within["domain"] != MEAN)]
    inside = inside[inside["metric"].isin(set(across["metric"]))]
    claim = "Across domains AUCs are further from chance than within one"
    if across.empty or inside.empty:
        yield claim, "—", "—"
    else:
        far, close = ((t["auc_percent"] - CHANCE).abs().mean() for t in (across, inside))
        yield claim, f"mean distance {far:.1f} across, {close:.1f} within", _told(far > close)
    known = across.dropna(subset=["shift_auc_percent"])
    claim = f"The change of domain alone gives the same AUC, to {near:g} points on average"
    if known.empty:
        yield claim, "—", "—"
    else:
        difference = (known["auc_percent"] - known["shift_auc_percent"]).abs().mean()
        shift = (known["shift_auc_percent"] - CHANCE).abs().mean()
        measured = f"mean distance {shift:.1f} with no text seen; mean difference {difference:.1f}"
        yield claim, measured, _told(difference <= near)


def _of_ranks(within: pd.DataFrame) -> Iterator[tuple[str, str, str]]:
    for phase in PHASES[1:]:
        claim = f"Ranks at the right position change the verdict on Mem 25 in {phase}"
        means = _means(within, phase)
        if means.empty:
            yield claim, "—", "—"
            continue
        right, off = means.loc["mem_25"], means.loc["mem_off_by_one_25"]
        told = [row["auc_low"] > CHANCE for row in (right, off)]
        measured = f"right {_interval(right)}; off by one {_interval(off)}"
        yield claim, measured, _told(told[0] != told[1])


def _means(within: pd.DataFrame, phase: str) -> pd.DataFrame:
    rows = within[(within["phase"] == phase) & (within["domain"] == MEAN)]
    return rows.set_index("metric")[["auc_percent", "auc_low", "auc_high"]].astype(float)


def _interval(row: pd.Series) -> str:
    return format_estimate(row["auc_percent"], row["auc_low"], row["auc_high"], digits=1)


def _told(holds: bool) -> str:
    return "yes" if holds else "no"


def published_layout(table3: pd.DataFrame, within: pd.DataFrame) -> pd.DataFrame:
    """Summarise Tables 3 and 7-15 as published: a row per table and model.

    Parameters
    ----------
    table3, within : `fu2025_table3` and `fu2025_within_domain_auc` of `data/published`. Rows
        without a number are left out: Table 8 prints perplexities in the place of the AUCs of
        PPL_200.

    Returns
    -------
    DataFrame
        Text: Table, Model, Phase, Domains, and for each family of metrics the mean AUC in percent
        over domains and k, with the lowest and the highest.
    """
    both = pd.concat([table3, within])
    both = both.assign(auc=pd.to_numeric(both["auc_percent"], errors="coerce")).dropna(
        subset=["auc"]
    )
    rows = []
    for (table, model), found in both.groupby(["table", "model"], sort=False):
        row = {
            "Table": table.removeprefix("Table "),
            "Model": model,
            "Phase": "tuning" if model in TUNED else "pre-training",
        }
        rows.append(row | _families(found))
    return pd.DataFrame(rows)


def _families(found: pd.DataFrame) -> dict[str, str]:
    """Domains, and the mean AUC over domains and k for each family, with its range."""
    told = {"Domains": str(found["domain"].nunique())}
    for start, name in FAMILIES.items():
        auc = found.loc[found["metric"].str.startswith(start), "auc"]
        told[name] = f"{auc.mean():.1f} ({auc.min():.1f} to {auc.max():.1f})"
    return told
