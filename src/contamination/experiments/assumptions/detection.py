"""Do the assumptions of detection hold? Scores within a domain and across domains (Fu).

A score should tell texts that a model has read from texts that it has not. Fu et al. (2025, Tables
3 and 7-15, Figures 1 and 18-20) find it near chance where both come from one domain, and far from
it where they do not: it tells domains apart. Three phases are judged by the same texts:

- pre-training: texts of the corpus, each read once, against non-members;
- fine-tuning: other non-members, read some times more, against the same;
- control: the latter before they are read. There is no member, so no score may tell the sides
  apart.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from contamination.membership.api import score_tokens
from contamination.membership.evaluate import evaluate, roc
from contamination.pretraining.domain_texts import Domain, Texts

if TYPE_CHECKING:
    from contamination.scoring.contract import Scorer

PHASES = ("control", "pre-training", "fine-tuning")
MEAN = "mean"  # domain of the rows that average over all domains

# k of Fu; its names in the tables.
FIRST, MIN_K, MEM, ENTROPY = (50, 100, 200), (5, 15, 25), (5, 15, 25), (5, 15, 25)
LABELS = {
    **{f"ppl_{k}": f"PPL_{k}" for k in FIRST},
    "loss": "PPL",
    **{f"min_k_{k}": f"Min {k}% token" for k in MIN_K},
    **{f"mem_{k}": f"Mem {k}" for k in MEM},
    **{f"mem_off_by_one_{k}": f"Mem {k}, off by one" for k in MEM},
    **{f"entropy_{k}": f"Entropy {k}" for k in ENTROPY},
}

WITHIN_COLUMNS = (
    *("model", "phase", "domain", "metric", "members", "non_members"),
    *("auc_percent", "auc_low", "auc_high"),
)
CROSS_COLUMNS = (
    *("model", "phase", "seen_domain", "unseen_domain", "metric", "members", "non_members"),
    *("auc_percent", "auc_low", "auc_high", "shift_auc_percent"),
)
KEYS = ["phase", "domain", "member"]  # of a scored text


def score_phases(
    domains: Mapping[str, Domain],
    tuned: Mapping[str, Texts],
    before: "Scorer",
    after: "Scorer | None",
) -> pd.DataFrame:
    """Score the texts of every phase.

    Parameters
    ----------
    domains : of `contamination.pretraining.domain_texts.domain_texts`.
    tuned : domain -> texts that were read in fine-tuning; their domains alone are tuned ones.
    before, after : the model before and after fine-tuning; None leaves that phase out.

    Returns
    -------
    DataFrame
        A row per text and phase: phase, domain, member (in the control: will be one), and a column
        for each metric of `LABELS` that texts of this length have, larger for members.
    """
    non_members = {name: domain.non_members for name, domain in domains.items()}
    sides = {
        name: {True: domain.members, False: non_members[name]} for name, domain in domains.items()
    }
    first = _scored(before, sides, "pre-training")
    control = _scored(before, {name: {True: texts} for name, texts in tuned.items()}, "control")
    parts = [first, control]
    if len(control):
        others = first[~first["member"] & first["domain"].isin(set(tuned))]
        parts.append(others.assign(phase="control"))
    if after is not None:
        sides = {name: {True: tuned.get(name, ()), False: non_members[name]} for name in domains}
        parts.append(_scored(after, sides, "fine-tuning"))
    return pd.concat(parts, ignore_index=True)


def _scored(
    scorer: "Scorer", sides: Mapping[str, Mapping[bool, Texts]], phase: str
) -> pd.DataFrame:
    """Score texts in one pass of the model."""
    keys = [
        (phase, name, member)
        for name, groups in sides.items()
        for member, texts in groups.items()
        for _ in texts
    ]
    every = [ids for groups in sides.values() for texts in groups.values() for ids in texts]
    table = pd.DataFrame(keys, columns=KEYS).astype({"member": bool})
    if not every:
        return table
    length = min(map(len, every))
    short = {f"ppl_{k}" for k in FIRST if k >= length}  # the first token has no score
    scores = score_tokens(scorer, every, [name for name in LABELS if name not in short])
    return pd.concat([table, scores], axis=1)


def within_table(
    scored: pd.DataFrame, *, model: str, rng: np.random.Generator, resamples: int = 1000
) -> pd.DataFrame:
    """AUC of every metric within each domain, and the mean over domains (Tables 3 and 7-15).

    The interval of a mean takes those of the domains as normal and the domains as given.

    Parameters
    ----------
    scored : of `score_phases`.
    model : what the column of that name says.
    rng, resamples : of the bootstrap, 95%.

    Returns
    -------
    DataFrame
        `WITHIN_COLUMNS`; a row per phase, domain with members and non-members, and metric. AUCs
        and their intervals in percent; members and non_members count texts.
    """
    rows = []
    for phase in PHASES:
        chosen = scored[scored["phase"] == phase]
        parts = []
        for domain, texts in chosen.groupby("domain", sort=False):
            if texts["member"].nunique() == 2:
                part = _judged(texts.drop(columns=KEYS), texts["member"], rng, resamples)
                parts.append(part.assign(domain=domain))
        if parts:
            found = pd.concat(parts)
            rows.append(pd.concat([found, _mean(found)]).assign(model=model, phase=phase))
    return _joined(rows, WITHIN_COLUMNS)


def cross_table(
    scored: pd.DataFrame,
    metrics: Sequence[str],
    *,
    model: str,
    rng: np.random.Generator,
    resamples: int = 1000,
) -> pd.DataFrame:
    """AUC of members in one domain against non-members in another (Figures 1 and 18-20).

    Parameters
    ----------
    metrics : keys of `LABELS`; other arguments as in `within_table`.

    Returns
    -------
    DataFrame
        `CROSS_COLUMNS`; a row per phase (the control left out), pair of domains and metric.
        shift_auc_percent is the AUC where the non-members of the first domain take the place of its
        members: what the change of domain does alone. NaN where there are none, or no change.
    """
    rows = []
    for phase in PHASES[1:]:
        chosen = scored[scored["phase"] == phase]
        for (first, members), (second, others) in _pairs(chosen):
            table = pd.concat([members, others])[list(metrics)]
            part = _judged(table, [1] * len(members) + [0] * len(others), rng, resamples)
            alike = chosen[(chosen["domain"] == first) & ~chosen["member"]]
            known = first != second and len(alike)
            truth = [1] * len(alike) + [0] * len(others)
            part["shift_auc_percent"] = [
                100 * roc([*alike[name], *others[name]], truth).auc if known else np.nan
                for name in part["metric"]
            ]
            rows.append(
                part.assign(model=model, phase=phase, seen_domain=first, unseen_domain=second)
            )
    return _joined(rows, CROSS_COLUMNS)


def _pairs(
    scored: pd.DataFrame,
) -> Iterator[tuple[tuple[str, pd.DataFrame], tuple[str, pd.DataFrame]]]:
    for members in scored[scored["member"]].groupby("domain", sort=False):
        for others in scored[~scored["member"]].groupby("domain", sort=False):
            yield members, others


def _judged(
    table: pd.DataFrame,
    member: pd.Series | Sequence[int],
    rng: np.random.Generator,
    resamples: int,
) -> pd.DataFrame:
    found = evaluate(table, np.asarray(member, dtype=int), rng=rng, resamples=resamples)
    found = found.rename(columns={"score": "metric"})
    for name in ("auc", "auc_low", "auc_high"):
        found[name] *= 100
    return found.rename(columns={"auc": "auc_percent"})


def _mean(found: pd.DataFrame) -> pd.DataFrame:
    """Average over domains, each with the same weight."""
    error = (found["auc_high"] - found["auc_low"]) / 2
    grouped = found.assign(square=error**2).groupby("metric", sort=False)
    table = grouped[["members", "non_members"]].sum()
    table["auc_percent"] = grouped["auc_percent"].mean()
    half = np.sqrt(grouped["square"].sum()) / grouped.size()
    table["auc_low"] = (table["auc_percent"] - half).clip(lower=0)
    table["auc_high"] = (table["auc_percent"] + half).clip(upper=100)
    return table.reset_index().assign(domain=MEAN)


def _joined(rows: Sequence[pd.DataFrame], columns: Sequence[str]) -> pd.DataFrame:
    names = list(columns)
    return pd.concat(rows, ignore_index=True)[names] if rows else pd.DataFrame(columns=names)
