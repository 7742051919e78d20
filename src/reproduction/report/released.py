"""What the report of a run on released models says of each of its notebooks, counted in its tables.

Like `readings`, of which a run that trains its own models takes the numbers.
"""

from collections.abc import Callable, Collection
from pathlib import Path

import numpy as np
import pandas as pd

from contamination.scoring.status import OK
from contamination.tables import MISSING, POOLED, SIGNIFICANT, read_csv
from reproduction.notebooks.assumptions.detection import MEAN
from reproduction.notebooks.assumptions.tables import CHANCE, OURS

Texts = dict[str, str]


def released_variables(notebooks: Collection[str], results: Path) -> dict[str, Texts]:
    """Return the numbers of the sections whose notebooks ran, by the name of the section.

    Raises InputError if a table of theirs is missing.
    """
    return {
        name: read(*(read_csv(results, table) for table in tables))
        for name, (notebook, tables, read) in SECTIONS.items()
        if notebook in notebooks
    }


def read_cells(table: pd.DataFrame) -> Texts:
    """Count the rows of a table, those that were measured, and those that were not."""
    status = table["status"]
    return {
        "cells": f"{len(table):,}",
        "measured": f"{(status == OK).sum():,}",
        "failed": f"{status.str.startswith('failed').sum():,}",
        "not_run": f"{status.str.startswith('not run').sum():,}",
    }


def read_open_models(audit: pd.DataFrame) -> Texts:
    """Count what Holm's correction rejects of the audited cells, by test."""
    audit = audit[audit["dataset"] != POOLED]
    done = audit[audit["status"] == OK]
    audited = done[done["holm_p"].notna()]
    rejected = audited[audited["holm_p"] <= SIGNIFICANT]
    return read_cells(audit) | {
        "models": str(audit["model"].nunique()),
        "sets": str(audit["dataset"].nunique()),
        "audited": f"{len(audited):,}",
        "rejected": f"{len(rejected):,}",
        "stand": f"{(rejected['verdict'] == 'quiet').sum():,}",
    }


def read_mmlu(subsets: pd.DataFrame, combined: pd.DataFrame) -> Texts:
    """Count the subsets that were measured and those that controls exclude in the paper's test."""
    ours = subsets[(subsets["source"] == "measured") & (subsets["test"] == "sharded_t")]
    done = ours[ours["status"] == OK]
    fisher = combined[(combined["source"] == "measured") & (combined["status"] == OK)]
    excluded = done.groupby("subset")["excluded"].any()
    return read_cells(ours) | {
        "subsets": str(len(excluded)),
        "dropped": str(int(excluded.sum())) if len(excluded) else MISSING,
        "combined": str(len(fisher)),
        "rejected": str(int((fisher["p"] <= SIGNIFICANT).sum())),
    }


def read_wikimia(table: pd.DataFrame) -> Texts:
    """Count intervals that leave out chance, and give the range of the AUCs."""
    done = table[(table["status"] == OK) & table["auc"].notna()]
    off = (done["auc_low"] > 0.5) | (done["auc_high"] < 0.5)
    return read_cells(table) | {
        "models": str(done["model"].nunique()),
        "aucs": f"{len(done):,}",
        "off": f"{off.sum():,}",
        "lowest": f"{done['auc'].min():.2f}" if len(done) else MISSING,
        "highest": f"{done['auc'].max():.2f}" if len(done) else MISSING,
    }


def read_assumptions(within: pd.DataFrame, blind: pd.DataFrame) -> Texts:
    """Count cells of a model and a domain, and give the range of the AUCs of Fu's scores."""
    domains = within[within["domain"] != MEAN]
    cells = domains.drop_duplicates(["model", "domain"])
    ours = domains["metric"].astype(str).str.contains("|".join(OURS))
    done = domains[(domains["status"] == OK) & ~ours & domains["auc_percent"].notna()]
    off = (done["auc_low"] > CHANCE) | (done["auc_high"] < CHANCE)
    baselines = blind[(blind["status"] == OK) & blind["auc"].notna()]
    shifted = (baselines["auc_low"] > 0.5) | (baselines["auc_high"] < 0.5)
    return read_cells(cells) | {
        "not_asked": f"{cells['status'].str.startswith('not asked').sum():,}",
        "aucs": f"{len(done):,}",
        "off": f"{off.sum():,}",
        "lowest": f"{done['auc_percent'].min():.1f}" if len(done) else MISSING,
        "highest": f"{done['auc_percent'].max():.1f}" if len(done) else MISSING,
        "baselines": f"{len(baselines):,}",
        "baselines_off": f"{shifted.sum():,}",
    }


def read_papers(rows: pd.DataFrame) -> Texts:
    """Count the published cells, those that were measured, and verdicts that are the published."""
    done = rows[(rows["status"] == OK) & (rows["unit"] == "log10 p")]
    level = np.log10(SIGNIFICANT)
    same = (done["ours"] <= level) == (done["published"] <= level)
    return read_cells(rows) | {
        "not_asked": f"{rows['status'].str.startswith('not asked').sum():,}",
        "verdicts": f"{len(done):,}",
        "same": f"{same.sum():,}",
    }


def read_checkpoints(tested: pd.DataFrame, detected: pd.DataFrame) -> Texts:
    """Count what is rejected of planted sets and under controls, and the range of Min-K%."""
    done = tested[tested["status"] == OK]
    rejected = done["holm_p"] <= SIGNIFICANT
    planted, control = done["dup_count"] > 0, done["dup_count"] == 0
    texts = read_cells(tested) | {
        "control_cells": f"{control.sum():,}",
        "control_rejected": f"{(control & rejected).sum():,}",
    }
    for name, test in (("exact", "sharded_exact"), ("successor", "successor")):
        own = planted & (done["test"] == test)
        found = done.loc[own & rejected, "dup_count"]
        texts |= {
            f"{name}_planted": str(own.sum()),
            f"{name}_rejected": str(len(found)),
            f"{name}_fewest": f"{found.min():.0f}" if len(found) else MISSING,
        }
    spans = detected[detected["status"] == OK]
    for name, chosen in (("planted", spans["dup_count"] > 0), ("control", spans["dup_count"] == 0)):
        rates = spans.loc[chosen, "rate_percent"]
        span = f"{rates.min():.0f} to {rates.max():.0f}" if len(rates) else MISSING
        texts[f"min_k_{name}"] = span
    return texts


# Section of the report -> the notebook, the tables that are read, and what they are read for.
SECTIONS: dict[str, tuple[str, tuple[str, ...], Callable[..., Texts]]] = {
    "open_models": ("03_open_model_audit", ("open_models",), read_open_models),
    "mmlu": ("04_mmlu_fisher", ("mmlu_subsets", "mmlu_fisher"), read_mmlu),
    "wikimia": ("06_wikimia", ("wikimia",), read_wikimia),
    "assumptions": (
        "08_detection_assumptions",
        ("assumptions_within", "assumptions_blind"),
        read_assumptions,
    ),
    "papers": ("13_beside_the_papers", ("papers",), read_papers),
    "checkpoints": (
        "12_released_checkpoints",
        ("checkpoints", "checkpoints_min_k"),
        read_checkpoints,
    ),
}
