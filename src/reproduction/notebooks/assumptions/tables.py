"""Fu's Tables 3 and 7-15, Figures 1 and 18-20: AUCs within and across domains, and what they say.

A score should separate texts that a model has read from texts that it has not. Fu et al. (2025)
find it near chance in pre-training where both come from one domain, and far from it where they do
not: it separates domains. After fine-tuning some scores also find members within a domain. Three
phases are judged by the same texts:

- pre-training: texts of the corpus, each read once, against non-members;
- fine-tuning: other non-members, read some times more, against the same;
- control: the latter before they are read. There is no member, so no score may separate the sides.

Each conclusion of the paper is a statement on the numbers that a rule decides; the rules stand with
them.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from contamination.membership.evaluate import auc, evaluate
from contamination.scoring.status import OK
from contamination.tables import MISSING, format_estimate, lay_out
from reproduction.notebooks.assumptions.measure import KEYS, LABELS, PHASES

MEAN = "mean"  # domain of the rows that average over all domains
WITHIN_COLUMNS = (
    *("model", "phase", "domain", "metric", "members", "non_members"),
    *("auc_percent", "auc_low", "auc_high", "status"),
)
CROSS_COLUMNS = (
    *("model", "phase", "seen_domain", "unseen_domain", "metric", "members", "non_members"),
    *("auc_percent", "auc_low", "auc_high", "shift_auc_percent", "status"),
)
PERPLEXITY_COLUMNS = ("model", "phase", "domain", "side", "texts", "perplexity", "sd", "status")
SIDES = {True: "member", False: "non_member"}
CHANCE = 50.0  # percent
FAMILIES = {"PPL": "PPL", "Min": "Min k% token", "Mem": "Mem k", "Entropy": "Entropy k"}
TUNED = ("Zephyr-7B-beta", "BioMistral-NLU-7B")  # models of Fu that are judged on tuning data

OURS = ("_off_by_one_", "min_k_")  # metrics that are none of Fu's, by what their names hold

Answer = tuple[str, str]  # what was measured; whether the conclusion holds
NOT_MEASURED = (MISSING, MISSING)
YES = {True: "yes", False: "no"}


def join_models(
    tables: Sequence[pd.DataFrame], columns: Sequence[str], cells: pd.DataFrame
) -> pd.DataFrame:
    """Join the tables of several models; a cell without scores is a row with its status.

    `columns` are those of the tables; `cells` is that of
    `reproduction.notebooks.assumptions.measure.measure`. What was not scored is missing in
    pre-training, where every model is judged.
    """
    lost = cells.loc[cells["status"] != OK, ["model", "domain", "status"]]
    names = dict.fromkeys(("metric", "unseen_domain", "side"), "")  # which a lost cell lacks
    lost = lost.assign(phase=PHASES[1], seen_domain=lost["domain"], **names)
    found = _join([*tables, *([lost.reindex(columns=columns)] if len(lost) else [])], columns)
    counts = [name for name in ("members", "non_members", "texts") if name in found]
    return found.astype(dict.fromkeys(counts, "Int64"))


def within_table(
    scored: pd.DataFrame, *, model: str, rng: np.random.Generator, resamples: int = 1000
) -> pd.DataFrame:
    """Measure the AUC of every metric within each domain, and the mean (Tables 3 and 7-15).

    A row per phase, domain with members and non-members, and metric of the texts of `score_phases`.
    AUCs and their intervals (bootstrap, 95%) are in percent; members and non_members count texts.
    The interval of a mean takes those of the domains as normal and the domains as given.
    """
    rows = []
    for phase in PHASES:
        parts = [
            _judge(texts.drop(columns=KEYS), texts["member"], rng, resamples).assign(domain=domain)
            for domain, texts in scored[scored["phase"] == phase].groupby("domain", sort=False)
            if texts["member"].nunique() == 2
        ]
        if parts:
            found = pd.concat(parts)
            both = pd.concat([found, _mean_of_domains(found)])
            rows.append(both.assign(model=model, phase=phase))
    return _join(rows, WITHIN_COLUMNS)


def cross_table(
    scored: pd.DataFrame,
    metrics: Sequence[str],
    *,
    model: str,
    rng: np.random.Generator,
    resamples: int = 1000,
) -> pd.DataFrame:
    """Measure the AUC of members in one domain against non-members in another (Figures 1, 18-20).

    A row per phase (the control left out), pair of domains and metric. shift_auc_percent is the AUC
    where the non-members of the first domain take the place of its members: what the change of
    domain does alone. It is NaN where there are none, or no change.
    """
    rows = []
    for phase in PHASES[1:]:
        chosen = scored[scored["phase"] == phase]
        groups = [chosen[chosen["member"] == side].groupby("domain", sort=False) for side in (1, 0)]
        for (first, members), (second, others) in product(*groups):
            texts = pd.concat([members, others])
            part = _judge(texts[list(metrics)], texts["member"], rng, resamples)
            alike = pd.concat([chosen[~chosen["member"] & (chosen["domain"] == first)], others])
            truth = np.arange(len(alike)) < len(alike) - len(others)
            changed = alike if first != second else alike[:0]
            shift = [_auc(changed[name], truth[: len(changed)]) for name in metrics]
            domains = {"seen_domain": first, "unseen_domain": second, "shift_auc_percent": shift}
            rows.append(part.assign(model=model, phase=phase, **domains))
    return _join(rows, CROSS_COLUMNS)


def perplexity_table(scored: pd.DataFrame, metric: str, *, model: str) -> pd.DataFrame:
    """Measure perplexities, the last rows of Tables 3 and 7-15: mean and deviation of each side.

    A row per phase, domain and side of the texts of `score_phases`, with `PERPLEXITY_COLUMNS`.
    `metric` is the perplexity that is meant: `ppl_200` as in the paper, `loss` for that of the
    whole text; texts too short for it do not count. The deviation is that of a sample, NaN of one.
    """
    texts = scored.assign(perplexity=np.exp(-scored[metric]), side=scored["member"].map(SIDES))
    found = texts.groupby(["phase", "domain", "side"], sort=False)["perplexity"]
    table = found.agg(texts="count", perplexity="mean", sd="std").reset_index()
    return table.assign(model=model, status=OK)[list(PERPLEXITY_COLUMNS)]


def _auc(scores: pd.Series, truth: np.ndarray) -> float:
    """AUC in percent of the texts that have a score; NaN without any on one side."""
    known = scores.notna().to_numpy()
    both = len(set(truth[known])) == 2
    return 100 * auc(scores[known], truth[known]) if both else np.nan


def _judge(
    table: pd.DataFrame, members: pd.Series, rng: np.random.Generator, resamples: int
) -> pd.DataFrame:
    found = evaluate(table, members, rng=rng, resamples=resamples)
    found[["auc", "auc_low", "auc_high"]] *= 100
    return found.rename(columns={"score": "metric", "auc": "auc_percent"}).assign(status=OK)


def _mean_of_domains(found: pd.DataFrame) -> pd.DataFrame:
    """Average over domains, each with the same weight."""
    error = (found["auc_high"] - found["auc_low"]) / 2
    grouped = found.assign(square=error**2).groupby("metric", sort=False)
    table = grouped[["members", "non_members"]].sum()
    table["auc_percent"] = grouped["auc_percent"].mean()
    half = np.sqrt(grouped["square"].sum()) / grouped["square"].count()
    table["auc_low"] = (table["auc_percent"] - half).clip(lower=0)
    table["auc_high"] = (table["auc_percent"] + half).clip(upper=100)
    return table.reset_index().assign(domain=MEAN, status=OK)


def _join(rows: Sequence[pd.DataFrame], columns: Sequence[str]) -> pd.DataFrame:
    names = list(columns)
    return pd.concat(rows or [pd.DataFrame(columns=names)], ignore_index=True)[names]


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
    cells = cells.assign(metric=cells["metric"].map(LABELS))
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
    groups = pd.concat([table3, within]).groupby(["table", "model"], sort=False)
    rows = [
        {"Table": table.removeprefix("Table "), "Model": model}
        | {"Phase": "tuning" if model in TUNED else "pre-training"}
        | _families(found)
        for (table, model), found in groups
    ]
    return pd.DataFrame(rows)


def perplexity_layout(perplexities: pd.DataFrame) -> pd.DataFrame:
    """Lay out `perplexity_table` of one model: a row per phase and domain, mean ± deviation."""
    headings = {"member": "Members", "non_member": "Non-members"}
    return lay_out(
        perplexities,
        {"phase": "Phase", "domain": "Domain"},
        lambda row: {headings[row["side"]]: f"{row['perplexity']:.1f} ± {row['sd']:.1f}"},
        columns_first=list(headings.values()),
    )


def _families(found: pd.DataFrame) -> dict[str, str]:
    """Count domains, and write the mean AUC over domains and k for each family, with its range."""
    cells = {"Domains": str(found["domain"].nunique())}
    for start, name in FAMILIES.items():
        auc = found.loc[found["metric"].str.startswith(start), "auc_percent"]
        cells[name] = f"{auc.mean():.1f} ({auc.min():.1f} to {auc.max():.1f})"
    return cells


def conclusions(
    within: pd.DataFrame, cross: pd.DataFrame, *, model: str, near: float
) -> pd.DataFrame:
    """Confront the conclusions of Fu, and of our own, with `within_table` and `cross_table`.

    All but that on sizes are about `model`. `near` is how many percentage points of AUC still count
    as near chance, or as no difference. A conclusion holds: yes, no, undecided where intervals are
    too wide, or — where nothing was measured.
    """
    own = within[within["model"] == model]
    of_fu = own[~own["metric"].str.contains("|".join(OURS))]
    inside = own[(own["phase"] == PHASES[1]) & (own["domain"] != MEAN)]
    apart = cross[(cross["phase"] == PHASES[1]) & (cross["seen_domain"] != cross["unseen_domain"])]
    every, some = f"every metric within {near:g} points of chance", f"more than {near:g} points off"
    fu, ours = "Fu et al.", "ours"
    again = f"Read again and again: some metric {some}, within a domain"
    size = f"Of every size: in pre-training, the mean AUC of PPL within {near:g} points of chance"
    alone = f"The change of domain alone gives the same AUC, to {near:g} points on average"
    ranks = "Ranks at the right position change the verdict on Mem 25 in"
    rows: list[tuple[str, str, Answer]] = [
        (fu, f"Read once: {every}, within a domain", _phase(of_fu, "pre-training", near)),
        (fu, again, _phase(of_fu, "fine-tuning", near, far=True)),
        (fu, size, _sizes(within, near)),
        (fu, "Across domains AUCs are further from chance than within one", _across(inside, apart)),
        (ours, f"Not read: {every}", _phase(own, "control", near)),
        (ours, alone, _shift(apart, near)),
        *((ours, f"{ranks} {phase}", _ranks(_means(own, phase))) for phase in PHASES[1:]),
    ]
    found = [(whose, claim, *answer) for whose, claim, answer in rows]
    return pd.DataFrame(found, columns=["whose", "conclusion", "measured", "holds"])


def _phase(within: pd.DataFrame, phase: str, near: float, *, far: bool = False) -> Answer:
    """Whether every metric is near chance; `far`: whether some metric is not."""
    means = _means(within, phase)
    if means.empty:
        return NOT_MEASURED
    furthest = means.loc[(means["auc_percent"] - CHANCE).abs().idxmax()]
    cells = within[(within["phase"] == phase) & (within["domain"] != MEAN)]
    outside = ((cells["auc_low"] > CHANCE) | (cells["auc_high"] < CHANCE)).sum()
    measured = (
        f"furthest mean: {LABELS[furthest.name]}, {format_estimate(*furthest, digits=1)}; "
        f"50 is outside of {outside} of {len(cells)} intervals"
    )
    holds = _near_chance(means, near)
    return measured, {"yes": "no", "no": "yes"}.get(holds, holds) if far else holds


def _sizes(within: pd.DataFrame, near: float) -> Answer:
    means = _means(within[within["metric"] == "loss"], PHASES[1], index="model")
    if len(means) < 2:
        return NOT_MEASURED
    shown = (f"{row.Index} {format_estimate(*row[1:], digits=1)}" for row in means.itertuples())
    return "; ".join(shown), _near_chance(means, near)


def _across(inside: pd.DataFrame, apart: pd.DataFrame) -> Answer:
    inside = inside[inside["metric"].isin(set(apart["metric"]))]
    if apart.empty or inside.empty:
        return NOT_MEASURED
    far, close = ((t["auc_percent"] - CHANCE).abs().mean() for t in (apart, inside))
    return f"mean distance {far:.1f} across, {close:.1f} within", YES[far > close]


def _shift(apart: pd.DataFrame, near: float) -> Answer:
    known = apart.dropna(subset="shift_auc_percent")
    if known.empty:
        return NOT_MEASURED
    difference = (known["auc_percent"] - known["shift_auc_percent"]).abs().mean()
    shift = (known["shift_auc_percent"] - CHANCE).abs().mean()
    measured = f"mean distance {shift:.1f} with no text seen; mean difference {difference:.1f}"
    return measured, YES[difference <= near]


def _ranks(means: pd.DataFrame) -> Answer:
    if means.empty:
        return NOT_MEASURED
    right, off = means.loc["mem_25"], means.loc["mem_off_by_one_25"]
    shown = [format_estimate(*one, digits=1) for one in (right, off)]
    changed = (right["auc_low"] > CHANCE) != (off["auc_low"] > CHANCE)
    return f"right {shown[0]}; off by one {shown[1]}", YES[changed]


def _near_chance(means: pd.DataFrame, near: float) -> str:
    """Judge whether all means are near chance; far is what lies off with its whole interval."""
    off = (means["auc_low"] > CHANCE + near) | (means["auc_high"] < CHANCE - near)
    if off.any():
        return "no"
    return "yes" if ((means["auc_percent"] - CHANCE).abs() <= near).all() else "undecided"


def _means(within: pd.DataFrame, phase: str, index: str = "metric") -> pd.DataFrame:
    rows = within[(within["phase"] == phase) & (within["domain"] == MEAN)]
    return rows.set_index(index)[["auc_percent", "auc_low", "auc_high"]].astype(float)
