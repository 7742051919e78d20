"""Fu's Tables 3 and 7-15, Figures 1 and 18-20: AUCs within and across domains, and what they say.

Fu et al. (2025) find scores near chance in pre-training where members and non-members come from one
domain, and far from it where they do not. Three phases are judged by the same texts: pre-training
(each text of the corpus is read once), fine-tuning (other non-members are read some times more) and
its control (before they are read: there is no member, so no score may separate the sides).
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
    tables: Mapping[str, pd.DataFrame], columns: Sequence[str], cells: pd.DataFrame
) -> pd.DataFrame:
    """Join tables of models, by name; a cell without scores is a row that says why.

    What was not scored is missing in pre-training, where every model is judged.
    """
    lost = cells.loc[cells["status"] != OK, ["model", "domain", "status"]]
    names = dict.fromkeys(("metric", "unseen_domain", "side"), "")  # which a lost cell lacks
    lost = lost.assign(phase=PHASES[1], seen_domain=lost["domain"], **names)
    found = [table.assign(model=model, status=OK) for model, table in tables.items()]
    found += [lost] if len(lost) or not found else []
    joined = pd.concat(found, ignore_index=True).reindex(columns=list(columns))
    counts = [name for name in ("members", "non_members", "texts") if name in joined]
    return joined.astype(dict.fromkeys(counts, "Int64"))


def within_table(scored: pd.DataFrame, *, rng: np.random.Generator, resamples: int) -> pd.DataFrame:
    """Measure the AUC of every metric within each domain, and the mean (Tables 3 and 7-15).

    `scored` is of one model. A row per phase, domain with members and non-members, and metric. AUCs
    are in percent, with intervals (95%); that of a mean takes those of the domains as
    normal.
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
            rows.append(pd.concat([found, _mean_of_domains(found)]).assign(phase=phase))
    return pd.concat(rows or [pd.DataFrame(columns=list(WITHIN_COLUMNS))], ignore_index=True)


def cross_table(
    scored: pd.DataFrame, metrics: Sequence[str], *, rng: np.random.Generator, resamples: int
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
            alike = chosen[~chosen["member"] & (chosen["domain"] == first) & (first != second)]
            shift = [_auc(alike[name], others[name]) for name in metrics]
            domains = {"seen_domain": first, "unseen_domain": second, "shift_auc_percent": shift}
            rows.append(part.assign(phase=phase, **domains))
    return pd.concat(rows or [pd.DataFrame(columns=list(CROSS_COLUMNS))], ignore_index=True)


def perplexity_table(scored: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Measure perplexities, the last rows of Tables 3 and 7-15: mean and deviation of each side.

    `metric` is the perplexity that is meant: `ppl_200` in the paper, `loss` for that of the whole
    text; texts too short for it do not count. The deviation is that of a sample, NaN of one.
    """
    texts = scored.assign(perplexity=np.exp(-scored[metric]), side=scored["member"].map(SIDES))
    found = texts.groupby(["phase", "domain", "side"], sort=False)["perplexity"]
    return pd.DataFrame(found.agg(texts="count", perplexity="mean", sd="std").reset_index())


def _auc(members: pd.Series, others: pd.Series) -> float:
    """AUC in percent of the texts that have a score; NaN without any on one side."""
    sides = members.dropna(), others.dropna()
    truth = np.repeat([True, False], list(map(len, sides)))
    return 100 * auc(pd.concat(sides), truth) if all(map(len, sides)) else np.nan


def _judge(
    table: pd.DataFrame, members: pd.Series, rng: np.random.Generator, resamples: int
) -> pd.DataFrame:
    found = evaluate(table, members, rng=rng, resamples=resamples)
    found[["auc", "auc_low", "auc_high"]] *= 100
    return found.rename(columns={"score": "metric", "auc": "auc_percent"})


def _mean_of_domains(found: pd.DataFrame) -> pd.DataFrame:
    """Average over domains, each with the same weight."""
    error = (found["auc_high"] - found["auc_low"]) / 2
    grouped = found.assign(square=error**2).groupby("metric", sort=False)
    table = grouped[["members", "non_members"]].sum()
    table["auc_percent"] = grouped["auc_percent"].mean()
    half = np.sqrt(grouped["square"].sum()) / grouped["square"].count()
    table["auc_low"] = (table["auc_percent"] - half).clip(lower=0)
    table["auc_high"] = (table["auc_percent"] + half).clip(upper=100)
    return table.reset_index().assign(domain=MEAN)


# --- for readers ----------------------------------------------------------------------------------


def within_layout(within: pd.DataFrame, phase: str) -> pd.DataFrame:
    """Lay out one phase as Tables 7-15: a row per metric, a column per domain, the mean first.

    AUCs in percent as text, bold where the interval leaves out 50, the interval beside the mean.
    """

    def cell(row: dict[Any, Any]) -> dict[str, str]:
        numbers, mean = (row["auc_percent"], row["auc_low"], row["auc_high"]), row["domain"] == MEAN
        shown = format_estimate(*numbers, null=CHANCE, digits=1, interval=mean)
        return {"Mean" if mean else row["domain"]: shown}

    rows = within[within["phase"] == phase].replace({"metric": LABELS})
    return lay_out(rows, {"metric": "Metric"}, cell, columns_first=["Mean"])


def sizes_layout(within: pd.DataFrame, parameters: Mapping[str, int]) -> pd.DataFrame:
    """Lay out models as `published_layout` does, by phase and `parameters`; Fu's metrics alone."""
    cells = _of_fu(within[within["domain"] != MEAN]).replace({"metric": LABELS})
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

    For each family of metrics: the mean AUC in percent over domains and k, with its range.
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


def _of_fu(within: pd.DataFrame) -> pd.DataFrame:
    return within[~within["metric"].str.contains("|".join(OURS))]


def _families(found: pd.DataFrame) -> dict[str, str]:
    """Count domains, and write the mean AUC over domains and k for each family, with its range."""
    cells = {"Domains": str(found["domain"].nunique())}
    for start, name in FAMILIES.items():
        auc = found.loc[found["metric"].str.startswith(start), "auc_percent"]
        cells[name] = f"{auc.mean():.1f} ({auc.min():.1f} to {auc.max():.1f})"
    return cells


# --- conclusions ----------------------------------------------------------------------------------


def conclusions(
    within: pd.DataFrame, cross: pd.DataFrame, *, model: str, near: float
) -> pd.DataFrame:
    """Confront the conclusions of Fu, and of our own, with `within_table` and `cross_table`.

    All but that on sizes are about `model`. So many percentage points of AUC still count as `near`
    chance, or as no difference. A conclusion holds: yes, no, undecided where intervals are too
    wide, or — where nothing was measured.
    """
    own = within[within["model"] == model]
    control, once, again = PHASES
    apart = cross[(cross["phase"] == once) & (cross["seen_domain"] != cross["unseen_domain"])]
    inside = own[(own["phase"] == once) & (own["domain"] != MEAN)]
    inside = inside[inside["metric"].isin(set(apart["metric"]))]
    far, close = (_off(table["auc_percent"]).mean() for table in (apart, inside))
    known = apart.dropna(subset="shift_auc_percent")
    shift = _off(known["shift_auc_percent"]).mean()
    difference = (known["auc_percent"] - known["shift_auc_percent"]).abs().mean()
    alone = f"mean distance {shift:.1f} with no text seen; mean difference {difference:.1f}"
    sizes = _means(within[within["metric"] == "loss"], once, index="model")

    every, some = f"every metric within {near:g} points of chance", f"more than {near:g} points off"
    size = f"in pre-training, the mean AUC of PPL within {near:g} points of chance"
    across = f"mean distance {far:.1f} across, {close:.1f} within"
    ranks = "Ranks at the right position change the verdict on Mem 25 in"
    answers = {
        f"Read once: {every}, within a domain": _phase(_of_fu(own), once, near),
        f"Read again and again: some metric {some}, within a domain": _phase(
            _of_fu(own), again, near, far=True
        ),
        f"Of every size: {size}": (
            (_shown(sizes), _near_chance(sizes, near)) if len(sizes) > 1 else NOT_MEASURED
        ),
        "Across domains AUCs are further from chance than within one": (
            (across, YES[far > close]) if len(apart) and len(inside) else NOT_MEASURED
        ),
        f"Not read: {every}": _phase(own, control, near),
        f"The change of domain alone gives the same AUC, to {near:g} points on average": (
            (alone, YES[difference <= near]) if len(known) else NOT_MEASURED
        ),
        **{f"{ranks} {phase}": _ranks(_means(own, phase)) for phase in PHASES[1:]},
    }
    whose = ["Fu et al."] * 4 + ["ours"] * 4
    rows = [(who, claim, *answers[claim]) for who, claim in zip(whose, answers, strict=True)]
    return pd.DataFrame(rows, columns=["whose", "conclusion", "measured", "holds"])


def _phase(within: pd.DataFrame, phase: str, near: float, *, far: bool = False) -> Answer:
    """Whether every metric is near chance; `far`: whether some metric is not."""
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
    return measured, {"yes": "no", "no": "yes"}.get(holds, holds) if far else holds


def _ranks(means: pd.DataFrame) -> Answer:
    if means.empty:
        return NOT_MEASURED
    both = means.loc[["mem_25", "mem_off_by_one_25"]].set_axis(["right", "off by one"])
    return _shown(both), YES[(both["auc_low"] > CHANCE).nunique() > 1]


def _shown(means: pd.DataFrame) -> str:
    shown = (f"{row.Index} {format_estimate(*row[1:], digits=1)}" for row in means.itertuples())
    return "; ".join(shown)


def _off(aucs: pd.Series) -> pd.Series:
    return (aucs - CHANCE).abs()


def _near_chance(means: pd.DataFrame, near: float) -> str:
    """Judge whether all means are near chance; far is what lies off with its whole interval."""
    off = (means["auc_low"] > CHANCE + near) | (means["auc_high"] < CHANCE - near)
    if off.any():
        return "no"
    return "yes" if (_off(means["auc_percent"]) <= near).all() else "undecided"


def _means(within: pd.DataFrame, phase: str, index: str = "metric") -> pd.DataFrame:
    rows = within[(within["phase"] == phase) & (within["domain"] == MEAN)]
    return rows.set_index(index)[["auc_percent", "auc_low", "auc_high"]].astype(float)
