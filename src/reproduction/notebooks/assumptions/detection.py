"""Do the assumptions of detection hold? Scores within a domain and across domains (Fu).

A score should tell texts that a model has read from texts that it has not. Fu et al. (2025, Tables
3 and 7-15, Figures 1 and 18-20) find it near chance in pre-training where both come from one
domain, and far from it where they do not: it tells domains apart. After fine-tuning some scores
also tell members within a domain. Three phases are judged by the same texts:

- pre-training: texts of the corpus, each read once, against non-members;
- fine-tuning: other non-members, read some times more, against the same;
- control: the latter before they are read. There is no member, so no score may tell the sides
  apart.
"""

from collections.abc import Sequence
from itertools import product

import numpy as np
import pandas as pd

from contamination.membership.evaluate import auc, evaluate
from contamination.scoring.status import OK

PHASES = ("control", "pre-training", "fine-tuning")
MEAN = "mean"  # domain of the rows that average over all domains

# k of Fu; its names in the tables.
FIRST, MIN_K, MEM, ENTROPY = (50, 100, 200), (5, 15, 25), (5, 15, 25), (5, 15, 25)
LABELS = {
    **{f"ppl_{k}": f"PPL_{k}" for k in FIRST},
    "loss": "PPL",
    **{f"min_prob_{k}": f"Min {k}% token" for k in MIN_K},  # as Fu define it
    **{f"min_k_{k}": f"Min-K% {k} (log)" for k in MIN_K},  # as Shi do
    **{f"mem_{k}": f"Mem {k}" for k in MEM},
    **{f"mem_off_by_one_{k}": f"Mem {k}, off by one" for k in MEM},
    **{f"entropy_{k}": f"Entropy {k}" for k in ENTROPY},
}

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
KEYS = ["phase", "domain", "member"]  # of a scored text


def join_models(
    tables: Sequence[pd.DataFrame], columns: Sequence[str], cells: pd.DataFrame
) -> pd.DataFrame:
    """Join the tables of several models; a cell without scores is a row with its status.

    `columns` are those of the tables; `cells` is that of
    `reproduction.notebooks.assumptions.measure.measure`. What was not scored is missing in
    pre-training, where every model is judged.
    """
    lost = cells[cells["status"] != OK]
    names = {"metric": "", "unseen_domain": "", "side": ""}  # a cell that was lost lacks them all
    lost = lost.assign(phase=PHASES[1], seen_domain=lost["domain"], **names)
    lost = lost.drop(columns=["members", "non_members"]).reindex(columns=columns)
    found = _join([*tables, *([lost] if len(lost) else [])], columns)
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
            rows.append(pd.concat([found, _mean(found)]).assign(model=model, phase=phase))
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
            known = first != second and truth.any()
            shift = [100 * auc(alike[name], truth) if known else np.nan for name in metrics]
            domains = {"seen_domain": first, "unseen_domain": second, "shift_auc_percent": shift}
            rows.append(part.assign(model=model, phase=phase, **domains))
    return _join(rows, CROSS_COLUMNS)


def perplexity_table(scored: pd.DataFrame, metric: str, *, model: str) -> pd.DataFrame:
    """Measure perplexities, the last rows of Tables 3 and 7-15: mean and deviation of each side.

    A row per phase, domain and side of the texts of `score_phases`, with `PERPLEXITY_COLUMNS`.
    `metric` is the perplexity that is meant: `ppl_200` as in the paper, `loss` for that of the
    whole text. The deviation is that of a sample, NaN of a single text.
    """
    texts = scored.assign(perplexity=np.exp(-scored[metric]), side=scored["member"].map(SIDES))
    found = texts.groupby(["phase", "domain", "side"], sort=False)["perplexity"]
    table = found.agg(texts="count", perplexity="mean", sd="std").reset_index()
    return table.assign(model=model, status=OK)[list(PERPLEXITY_COLUMNS)]


def _judge(
    table: pd.DataFrame, members: pd.Series, rng: np.random.Generator, resamples: int
) -> pd.DataFrame:
    found = evaluate(table, members, rng=rng, resamples=resamples)
    found[["auc", "auc_low", "auc_high"]] *= 100
    return found.rename(columns={"score": "metric", "auc": "auc_percent"}).assign(status=OK)


def _mean(found: pd.DataFrame) -> pd.DataFrame:
    """Average over domains, each with the same weight."""
    error = (found["auc_high"] - found["auc_low"]) / 2
    grouped = found.assign(square=error**2).groupby("metric", sort=False)
    table = grouped[["members", "non_members"]].sum()
    table["auc_percent"] = grouped["auc_percent"].mean()
    half = np.sqrt(grouped["square"].sum()) / grouped.size()
    table["auc_low"] = (table["auc_percent"] - half).clip(lower=0)
    table["auc_high"] = (table["auc_percent"] + half).clip(upper=100)
    return table.reset_index().assign(domain=MEAN, status=OK)


def _join(rows: Sequence[pd.DataFrame], columns: Sequence[str]) -> pd.DataFrame:
    names = list(columns)
    return pd.concat(rows or [pd.DataFrame(columns=names)], ignore_index=True)[names]
