"""Fu's tables laid out, measured and published, and what becomes of the conclusions of Fu.

Each conclusion is a statement on the numbers that a rule decides; the rules stand with them.
"""

from collections.abc import Iterator

import pandas as pd

from contamination.detection_assumptions import LABELS, MEAN, PHASES

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
    number = f"**{auc:.1f}**" if low > CHANCE or high < CHANCE else f"{auc:.1f}"
    return f"{number} ({low:.1f} to {high:.1f})" if domain == MEAN else number


def conclusions(within: pd.DataFrame, cross: pd.DataFrame, *, near: float) -> pd.DataFrame:
    """Confront the conclusions of Fu with the tables of `contamination.detection_assumptions`.

    Parameters
    ----------
    near : percentage points of AUC that still count as near chance, or as no difference.

    Returns
    -------
    DataFrame
        conclusion, measured (text), holds: yes, no, undecided where intervals are too wide, or —
        where nothing was measured.
    """
    rows = [*_of_phases(within, near), *_of_domains(within, cross, near), *_of_ranks(within)]
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
    return f"{row['auc_percent']:.1f} ({row['auc_low']:.1f} to {row['auc_high']:.1f})"


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
            "Domains": str(found["domain"].nunique()),
        }
        for start, name in FAMILIES.items():
            auc = found.loc[found["metric"].str.startswith(start), "auc"]
            row[name] = f"{auc.mean():.1f} ({auc.min():.1f} to {auc.max():.1f})"
        rows.append(row)
    return pd.DataFrame(rows)
