"""AUCs within and across domains: Fu's Tables 3 and 7-15, Figures 1 and 18-20.

Fu et al. (2025) find scores near chance in pre-training where members and non-members
come from one domain, and far from it where they do not. Three phases are judged by the
same texts: pre-training (each text of the corpus is read once), fine-tuning (other
non-members are read some times more) and its control (before they are read: there is no
member, so no score may separate the sides).
"""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from contamination.membership.evaluate import auc, evaluate
from contamination.scoring.status import OK
from contamination.tables import format_estimate, format_sides, lay_out
from reproduction.notebooks.assumptions.labels import KEYS, LABELS, PHASES

TEXTS = "Texts"  # head of what counts members + non-members
MEAN = "mean"  # domain of the rows that average over all domains
WITHIN_COLUMNS = (
    "model",
    "phase",
    "domain",
    "metric",
    "members",
    "non_members",
    "auc_percent",
    "auc_low",
    "auc_high",
    "status",
)
CROSS_COLUMNS = (
    "model",
    "phase",
    "seen_domain",
    "unseen_domain",
    "metric",
    "members",
    "non_members",
    "auc_percent",
    "auc_low",
    "auc_high",
    "shift_auc_percent",
    "status",
)
PERPLEXITY_COLUMNS = (
    "model",
    "phase",
    "domain",
    "side",
    "texts",
    "perplexity",
    "sd",
    "status",
)
SIDES = {True: "member", False: "non_member"}
CHANCE = 50.0  # percent
FAMILIES = {"PPL": "PPL", "Min": "Min k% token", "Mem": "Mem k", "Entropy": "Entropy k"}
# Models of Fu that are judged on tuning data.
TUNED = ("Zephyr-7B-beta", "BioMistral-NLU-7B")

# Metrics that are none of Fu's, by what their names hold.
OURS = ("_off_by_one_", "min_k_")


def join_models(
    tables: Mapping[str, pd.DataFrame],
    columns: Sequence[str],
    cells: pd.DataFrame,
) -> pd.DataFrame:
    """Join tables of models; a cell without scores is a row that says why.

    A cell that was not scored is missing in pre-training, where every model is judged.

    Parameters
    ----------
    tables
        Name of a model -> its table.
    columns
        Columns of the joined table.
    cells
        Every model and domain, with its status.
    """
    lost = cells.loc[cells["status"] != OK, ["model", "domain", "status"]]
    lost = lost.assign(
        phase=PHASES[1],
        seen_domain=lost["domain"],
        metric="",
        unseen_domain="",
        side="",
    )
    parts = [table.assign(model=model, status=OK) for model, table in tables.items()]
    if len(lost) or not parts:
        parts.append(lost)
    joined = pd.concat(parts, ignore_index=True).reindex(columns=list(columns))
    counts = [name for name in ("members", "non_members", "texts") if name in joined]
    return joined.astype(dict.fromkeys(counts, "Int64"))


def within_table(
    scored: pd.DataFrame,
    *,
    rng: np.random.Generator,
    resamples: int,
) -> pd.DataFrame:
    """Measure the AUC of every metric in each domain, and the mean (Tables 3, 7-15).

    AUCs are in percent, with intervals (95%); that of a mean takes those of the domains
    as normal.

    Parameters
    ----------
    scored
        Texts of one model, with their scores.
    rng
        Draws the resamples.
    resamples
        Of the bootstrap.

    Returns
    -------
    within : a row per phase, domain with members and non-members, and metric.
    """
    tables = []
    for phase in PHASES:
        domains = []
        of_phase = scored[scored["phase"] == phase]
        for domain, texts in of_phase.groupby("domain", sort=False):
            if texts["member"].nunique() == 2:
                metrics = texts.drop(columns=KEYS)
                judged = _judge(metrics, texts["member"], rng, resamples)
                domains.append(judged.assign(domain=domain))
        if domains:
            within = pd.concat(domains)
            tables.append(
                pd.concat([within, _mean_of_domains(within)]).assign(phase=phase),
            )
    if not tables:
        return pd.DataFrame(columns=list(WITHIN_COLUMNS))
    return pd.concat(tables, ignore_index=True)


def cross_table(
    scored: pd.DataFrame,
    metrics: Sequence[str],
    *,
    rng: np.random.Generator,
    resamples: int,
) -> pd.DataFrame:
    """Measure the AUC of members against non-members of another domain (Figures 1, 18-20).

    Parameters
    ----------
    scored
        Texts of one model, with their scores.
    metrics
        Names of the scores to judge.
    rng
        Draws the resamples.
    resamples
        Number of resamples of the bootstrap.

    Returns
    -------
    cross
        A row per phase (the control left out), pair of domains and metric.
        shift_auc_percent is the AUC where the non-members of the first domain take the
        place of its members: the effect of the change of domain alone. It is NaN where
        there are none, or no change.
    """
    tables = []
    for phase in PHASES[1:]:
        texts_of_phase = scored[scored["phase"] == phase]
        is_member = texts_of_phase["member"]
        members_by_domain = texts_of_phase[is_member].groupby("domain", sort=False)
        others_by_domain = texts_of_phase[~is_member].groupby("domain", sort=False)
        pairs = product(members_by_domain, others_by_domain)
        for (seen, members), (unseen, others) in pairs:
            texts = pd.concat([members, others])
            judged = _judge(texts[list(metrics)], texts["member"], rng, resamples)
            is_shifted = ~is_member & (texts_of_phase["domain"] == seen) & (seen != unseen)
            unseen_here = texts_of_phase[is_shifted]
            shift = [_auc(unseen_here[name], others[name]) for name in metrics]
            tables.append(
                judged.assign(
                    phase=phase,
                    seen_domain=seen,
                    unseen_domain=unseen,
                    shift_auc_percent=shift,
                ),
            )
    if not tables:
        return pd.DataFrame(columns=list(CROSS_COLUMNS))
    return pd.concat(tables, ignore_index=True)


def perplexity_table(scored: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Measure mean and deviation of perplexities: the last rows of Tables 3 and 7-15.

    `metric` is the perplexity that is meant: `ppl_200` in the paper, `loss` for that of
    the whole text; texts too short for it do not count. The deviation is that of a
    sample, NaN of one.
    """
    texts = scored.assign(
        perplexity=np.exp(-scored[metric]),
        side=scored["member"].map(SIDES),
    )
    perplexities = texts.groupby(["phase", "domain", "side"], sort=False)["perplexity"]
    table = perplexities.agg(texts="count", perplexity="mean", sd="std")
    return pd.DataFrame(table.reset_index())


def _auc(members: pd.Series, others: pd.Series) -> float:
    """Return the AUC in percent of the texts that have a score.

    It is NaN if one side has no such text.
    """
    members = members.dropna()
    others = others.dropna()
    if members.empty or others.empty:
        return np.nan
    truth = np.repeat([True, False], [len(members), len(others)])
    return 100 * auc(pd.concat([members, others]), truth)


def _judge(
    table: pd.DataFrame,
    members: pd.Series,
    rng: np.random.Generator,
    resamples: int,
) -> pd.DataFrame:
    """Return the AUC of every column in percent, with its interval."""
    judged = evaluate(table, members, rng=rng, resamples=resamples)
    judged[["auc", "auc_low", "auc_high"]] *= 100
    return judged.rename(columns={"score": "metric", "auc": "auc_percent"})


def _mean_of_domains(within: pd.DataFrame) -> pd.DataFrame:
    """Average over domains, each with the same weight."""
    error = (within["auc_high"] - within["auc_low"]) / 2
    grouped = within.assign(square=error**2).groupby("metric", sort=False)
    table = grouped[["members", "non_members"]].sum()
    table["auc_percent"] = grouped["auc_percent"].mean()
    half = np.sqrt(grouped["square"].sum()) / grouped["square"].count()
    table["auc_low"] = (table["auc_percent"] - half).clip(lower=0)
    table["auc_high"] = (table["auc_percent"] + half).clip(upper=100)
    return table.reset_index().assign(domain=MEAN)


# --- for readers ----------------------------------------------------------------------------------


def within_layout(within: pd.DataFrame, phase: str) -> pd.DataFrame:
    """Lay out one phase as Tables 7-15: a row per metric, a column per domain.

    AUCs in percent as text, bold where the interval leaves out 50; only the mean has
    its interval. The first line says how many texts both sides have.
    """

    def cell(row: dict[Any, Any]) -> dict[str, str]:
        is_mean = row["domain"] == MEAN
        heading = "Mean" if is_mean else row["domain"]
        if row["metric"] == TEXTS:
            return {heading: format_sides(row)}
        return {heading: format_percent(row, interval=is_mean)}

    rows = within[within["phase"] == phase].replace({"metric": LABELS})
    counts = rows.drop_duplicates("domain").assign(metric=TEXTS)
    both = pd.concat([counts, rows])
    return lay_out(both, {"metric": "Metric"}, cell, columns_first=["Mean"])


def format_percent(row: Mapping[Any, Any], *, interval: bool = True) -> str:
    """Write the AUC of a row in percent, bold where its interval leaves out 50."""
    numbers = (row["auc_percent"], row["auc_low"], row["auc_high"])
    return format_estimate(*numbers, null=CHANCE, digits=1, interval=interval)


def sizes_layout(within: pd.DataFrame, parameters: Mapping[str, int]) -> pd.DataFrame:
    """Lay out Fu's metrics by model, phase and `parameters`, as `published_layout`."""
    cells = of_fu(within[within["domain"] != MEAN]).replace({"metric": LABELS})
    rows = []
    for phase in PHASES:
        for model in sorted(parameters, key=parameters.__getitem__):
            own = cells[(cells["phase"] == phase) & (cells["model"] == model)]
            if len(own):
                row = {
                    "Model": model,
                    "Parameters": f"{parameters[model]:,}",
                    "Phase": phase,
                }
                rows.append(row | _families(own))
    columns = ["Model", "Parameters", "Phase", "Domains", *FAMILIES.values()]
    return pd.DataFrame(rows, columns=columns)


def published_layout(table3: pd.DataFrame, within: pd.DataFrame) -> pd.DataFrame:
    """Lay out the means of the published Tables 3 and 7-15: a row per table and model.

    For each family of metrics: the mean AUC in percent over domains and k, with its
    range.
    """
    rows = []
    groups = pd.concat([table3, within]).groupby(["table", "model"], sort=False)
    for (table, model), cells in groups:
        row = {
            "Table": table.removeprefix("Table "),
            "Model": model,
            "Phase": "tuning" if model in TUNED else "pre-training",
        }
        rows.append(row | _families(cells))
    return pd.DataFrame(rows)


def perplexity_layout(perplexities: pd.DataFrame) -> pd.DataFrame:
    """Lay out mean ± deviation (number of texts) of one model: a row per phase and domain."""
    headings = {"member": "Members", "non_member": "Non-members"}

    def cell(row: dict[Any, Any]) -> dict[str, str]:
        estimate = f"{row['perplexity']:.1f} ± {row['sd']:.1f} ({row['texts']:,})"
        return {headings[row["side"]]: estimate}

    keys = {"phase": "Phase", "domain": "Domain"}
    return lay_out(perplexities, keys, cell, columns_first=list(headings.values()))


def of_fu(within: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of Fu's metrics."""
    return within[~within["metric"].str.contains("|".join(OURS))]


def _families(cells: pd.DataFrame) -> dict[str, str]:
    """Count domains, and write the mean AUC of each family with its range."""
    families = {"Domains": str(cells["domain"].nunique())}
    for start, name in FAMILIES.items():
        auc = cells.loc[cells["metric"].str.startswith(start), "auc_percent"]
        ends = f"({auc.min():.1f} to {auc.max():.1f})".replace(" ", "\u00a0")
        families[name] = f"{auc.mean():.1f}\u00a0{ends}"
    return families
