"""Every cell that the papers print on released models, and what a run measured of it.

Oren, Tables 1, 2, 4 and 5 and the counts of section 4.3; Shi, Tables 1 and 6; Fu, Tables 3 and 7 to
15 with the perplexities below them, and Figure 18. `data/published` has no number of Oren's and
Shi's Figure 2 and of Fu's Figures 1, 19 and 20, which print none.
"""

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from contamination.scoring.models import find_model
from contamination.scoring.status import OK
from contamination.tables import read_csv
from contamination.testsets.registry import entries
from reproduction.output.published import AUDITED, CONTROLS, load_published

OREN, SHI, FU = "Oren et al. (2024)", "Shi et al. (2024)", "Fu et al. (2025)"
LOG10_P, AUC, AUC_PERCENT = "log10 p", "AUC", "AUC, percent"
PERCENT, PERPLEXITY, COUNT = "percent", "perplexity", "subsets"

CANARY_MODEL = "contam-1.4b-dupcount-higher"  # Tables 1 and 5 of Oren, as it was released
FISHER = "MMLU (Fisher)"  # row of Table 2
AVERAGE = "average"
PAPER_TEST = "sharded_t"  # whose exclusions Fisher's method leaves out
# The paper's floors: 1/101, cut off, and what its floating point could not tell from zero.
FLOORS = {"permutation": 0.009, PAPER_TEST: 1e-38}

# A model of the papers -> its id on the hub, where the two differ by more than capitals.
IDS = {
    "LLaMA2-7B": "meta-llama/Llama-2-7b-hf",
    "Mistral-7B": "mistralai/Mistral-7B-v0.1",
    "GPT-2 XL": "openai-community/gpt2-xl",
    "NeoX-20B": "EleutherAI/gpt-neox-20b",
    "OPT-66B": "facebook/opt-66b",
    "Pythia-2.8B": "EleutherAI/pythia-2.8b",
    "LLaMA-30B": "huggyllama/llama-30b",
    "LLaMA-65B": "huggyllama/llama-65b",
    "OLMo-2-7B": "allenai/OLMo-2-1124-7B",
    "OLMo-2-1124-7B": "allenai/OLMo-2-1124-7B",
    "Zephyr-7B-beta": "HuggingFaceH4/zephyr-7b-beta",
}
# Table 1 of Shi: its average is over these, original and paraphrased.
WIKIMIA_MODELS = ("Pythia-2.8B", "NeoX-20B", "LLaMA-30B", "LLaMA-65B", "OPT-66B")
WIKIMIA_SCORES = {"PPL": "loss", "Zlib": "zlib", "Min-20% Prob": "min_k_20"}
WIKIMIA_VARIANTS = {"original": "original", "paraphrase": "paraphrased"}
FU_METRICS = {
    **{f"ppl_{k}": f"PPL_{k}" for k in (50, 100, 200)},
    **{f"min_prob_{k}": f"Min {k}% token" for k in (5, 15, 25)},
    **{f"mem_{k}": f"Mem {k}" for k in (5, 15, 25)},
    **{f"entropy_{k}": f"Entropy {k}" for k in (5, 15, 25)},
}
FU_AVERAGE = "Average AUC"  # row of Table 3
READ_ONCE = "pre-training"  # phase of the released models

COLUMNS = (
    *("paper", "table", "model", "row", "column", "ours", "published", "difference"),
    *("unit", "status", "note"),
)
SETTINGS = ("examples", "shards", "permutations", "spans", "members", "non_members")

Key = tuple[str, ...]  # model, then what tells the cells of a model apart; all `plain`
Row = dict[Any, Any]


@dataclass(frozen=True)
class Cell:
    """A number that a paper prints.

    Attributes
    ----------
    paper, table, model, row, column : where it stands, in the paper's words.
    published : in its `unit`; a p-value as log10 p.
    source : the result table that measures it, one of `SOURCES`.
    wanted : what to look up there, the model first, in the words of our tables.
    settings : how many examples, permutations and so on the paper took, where it says so.
    at_floor : the paper could print no smaller p-value.
    """

    paper: str
    table: str
    model: str
    row: str
    column: str
    published: float
    unit: str
    source: str
    wanted: tuple[str, ...]
    settings: Mapping[str, int] = field(default_factory=dict)
    at_floor: bool = False


@dataclass(frozen=True)
class Measured:
    """A cell of a run.

    Attributes
    ----------
    value : in the unit of the published cell, a p-value as log10 p; NaN unless the status is "ok".
    status : "ok", or why there is no value.
    settings : how many examples, permutations and so on it took, where the table says so.
    at_floor : the test could give no smaller p-value.
    note : what else is to be known.
    """

    value: float
    status: str = OK
    settings: Mapping[str, int] = field(default_factory=dict)
    at_floor: bool = False
    note: str = ""


def plain(text: Any) -> str:
    """Letters and digits alone, in lower case: tables write one name in several ways."""
    return "" if pd.isna(text) else re.sub(r"[^a-z0-9]+", "", str(text).lower())


def our_name(model: str) -> str:
    """What tables of ours call a model of the papers."""
    return find_model(IDS.get(model, model)).name


# --- what the papers print ------------------------------------------------------------------------


def published_cells(directory: Path | str) -> list[Cell]:
    """List the cells in the order of the papers; `directory` is `data/published`."""
    return [*_oren(directory), *_shi(directory), *_fu(directory)]


def _rows(directory: Path | str, name: str) -> list[Row]:
    return list(load_published(directory, name).to_dict("records"))


def _oren(directory: Path | str) -> Iterator[Cell]:
    def p_value(
        table: str, model: str, row: str, test: str, p: float, source: str, settings: dict[str, int]
    ) -> Cell:
        wanted, floor = (our_name(model), row, test), p == FLOORS[test]
        place = (OREN, table, model, row, test)
        return Cell(*place, math.log10(p), LOG10_P, source, wanted, settings, floor)

    for row in _rows(directory, "oren2024_table1_canaries"):
        for test, column, more in (
            ("permutation", "permutation_p", {}),
            (PAPER_TEST, "sharded_p", {"shards": 50, "permutations": 51}),  # section 4.1
        ):
            settings = {"examples": row["size"]} | more
            place = ("Table 1", CANARY_MODEL, row["dataset"], test)
            yield p_value(*place, row[column], "checkpoints", settings)
    for row in _rows(directory, "oren2024_table2_open_models"):
        fisher = row["dataset"] == FISHER
        source, settings = "mmlu_fisher", {}
        if not fisher:
            source, settings = "open_models", {"shards": 50, "permutations": 250}  # section 4.3
            settings |= {"examples": int(row["size"])}
        for column, model in (AUDITED if fisher else AUDITED | CONTROLS).items():
            place = ("Table 2", model, row["dataset"], PAPER_TEST)
            yield p_value(*place, row[column], source, settings)
    for row in _rows(directory, "oren2024_table4_mmlu"):
        settings = {"permutations": 1000, "examples": int(row["size"])}
        for column, model in (AUDITED | CONTROLS).items():
            place = ("Table 4", model, row["subset"], PAPER_TEST)
            yield p_value(*place, row[column], "mmlu_subsets", settings)
    for row in _rows(directory, "oren2024_text"):
        where, wanted = (OREN, row["where"], "", row["key"].replace("_", " "), ""), row["key"]
        count = float(row["value"])
        yield Cell(*where, count, COUNT, "mmlu_subsets", ("", wanted, PAPER_TEST))
    for row in _rows(directory, "oren2024_table5_mink"):
        where, wanted = (OREN, "Table 5", CANARY_MODEL, row["dataset"], "detected"), row["dataset"]
        rate, settings = float(row["mink_detected_percent"]), {"examples": row["size"]}
        settings |= {"spans": 100}  # appendix E
        yield Cell(*where, rate, PERCENT, "checkpoints_min_k", (CANARY_MODEL, wanted), settings)


def _shi(directory: Path | str) -> Iterator[Cell]:
    for row in _rows(directory, "shi2023_headline"):
        if row["table"] not in ("Table 1", "Table 6"):
            continue
        score, measure = WIKIMIA_SCORES[row["method"]], row["metric"]
        model, _, variant = row["setting"].rpartition(" ")
        place, wanted = (AVERAGE, row["method"], measure), (AVERAGE, score, measure)
        if row["setting"] != AVERAGE:
            place = (model, row["method"], variant)
            wanted = (our_name(model), score, WIKIMIA_VARIANTS[variant])
        unit = AUC if measure == "AUC" else PERCENT
        yield Cell(SHI, row["table"], *place, row["value"], unit, "wikimia", wanted)


def _fu(directory: Path | str) -> Iterator[Cell]:
    thousand = {"members": 1000, "non_members": 1000}
    perplexity = load_published(directory, "fu2025_perplexity")
    for name in ("table3", "within_domain_auc"):
        printed = load_published(directory, f"fu2025_{name}")
        for table, rows in printed.groupby("table", sort=False):
            for row in rows.to_dict("records"):
                model, metric, domain = row["model"], row["metric"], row["domain"]
                place, wanted = (
                    (FU, table, model, metric, domain),
                    (our_name(model), metric, domain),
                )
                auc = row["auc_percent"]
                yield Cell(*place, auc, AUC_PERCENT, "assumptions_within", wanted, thousand)
            for row in perplexity[perplexity["table"] == table].to_dict("records"):
                model, side, domain = row["model"], row["side"], row["domain"]
                place = (FU, table, model, f"PPL_200, {side.replace('_', '-')}s", domain)
                value, wanted = row["ppl_200_mean"], (our_name(model), side, domain)
                yield Cell(*place, value, PERPLEXITY, "assumptions_perplexity", wanted)
    for row in _rows(directory, "fu2025_cross_domain_auc"):
        model, seen, unseen = row["model"], row["seen_domain"], row["unseen_domain"]
        place, auc = (FU, row["figure"], model, seen, unseen), row["auc_percent"]
        pair = (our_name(model), seen, unseen, row["metric"])
        yield Cell(*place, auc, AUC_PERCENT, "assumptions_cross", pair, thousand)


# --- what a run measured --------------------------------------------------------------------------


def _titles(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(title=table["dataset"].map({k: e.title for k, e in entries().items()}))


def _subsets(table: pd.DataFrame) -> pd.DataFrame:
    """By subset, and how many of them the controls drop and keep."""
    ours = table[table["source"] == "measured"]
    tested = ours[(ours["test"] == PAPER_TEST) & (ours["status"] == OK)]
    excluded = tested.groupby("subset")["excluded"].any().astype(bool)
    if excluded.empty:
        return ours
    dropped, note = int(excluded.sum()), f"of {len(excluded)} subsets"
    counts = {"mmlu_subsets_dropped": dropped, "mmlu_subsets_kept": len(excluded) - dropped}
    rows = [{"subset": name, "log10_p": count, "note": note} for name, count in counts.items()]
    return pd.concat([ours, pd.DataFrame(rows).assign(test=PAPER_TEST, status=OK)])


def _fisher(table: pd.DataFrame) -> pd.DataFrame:
    ours = table[table["source"] == "measured"]
    return ours.assign(row=FISHER, note=ours["subsets_kept"].map("{} subsets kept".format))


def _wikimia(table: pd.DataFrame) -> pd.DataFrame:
    """Table 1 by its means over the lengths of the texts, and its averages over all columns."""
    rows, keys = table[table["source"] == "wikimia"], ["model", "score", "variant"]
    done, failed = rows[rows["status"] == OK], rows[rows["status"] != OK]
    groups = done.groupby(keys)
    means = groups[["auc", "tpr_at_5_fpr"]].mean()
    lengths = groups["length"].agg(lambda found: ", ".join(map(str, sorted(found))))
    means["note"] = [f"mean over {found} words" for found in lengths]
    columns = [(our_name(m), v) for m in WIKIMIA_MODELS for v in WIKIMIA_VARIANTS.values()]
    lost = failed[failed["model"].isna() | failed["model"].isin([m for m, _ in columns])]
    averages = []
    for score in WIKIMIA_SCORES.values():
        have = [(m, score, v) for m, v in columns if (m, score, v) in means.index]
        status = OK
        if len(have) < len(columns):  # over all columns of Table 1, or not at all
            if not have and lost.empty:
                continue
            status = lost["status"].iloc[0] if len(lost) else "not asked"
            few = f"{len(have)} of the {len(columns)} columns of Table 1 were measured"
            if have:
                status = f"{status.partition(':')[0]}: {few}, and this is their average"
        for measure, column, scale in (("AUC", "auc", 1), ("TPR@5%FPR", "tpr_at_5_fpr", 100)):
            value = scale * float(means.loc[have, column].mean()) if status == OK else math.nan
            row = {"model": AVERAGE, "score": score, "variant": measure}
            averages.append(row | {"auc": value, "status": status})
    known = means.reset_index().assign(status=OK)
    return pd.concat([failed[[*keys, "status"]], known, pd.DataFrame(averages)])


def _read_once(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of texts that were read once, and of models or texts that could not be had."""
    rows = table[(table["phase"] == READ_ONCE) | (table["status"] != OK)]
    return rows.assign(metric=rows["metric"].replace(FU_METRICS)) if "metric" in rows else rows


def _within(table: pd.DataFrame) -> pd.DataFrame:
    rows = _read_once(table)
    done = rows[(rows["status"] == OK) & rows["metric"].isin(FU_METRICS.values())]
    groups = done.groupby(["model", "domain"], sort=False)["auc_percent"]
    means = groups.agg(["size", "mean"]).reset_index().rename(columns={"mean": "auc_percent"})
    means = means[means.pop("size") == len(FU_METRICS)]
    note = f"mean of the {len(FU_METRICS)} scores above"
    return pd.concat([rows, means.assign(metric=FU_AVERAGE, status=OK, note=note)])


@dataclass(frozen=True)
class Source:
    """A result table: its notebook, columns of the key, column of the value, what to make of it."""

    notebook: str
    key: tuple[str, ...]
    value: str
    prepare: Callable[[pd.DataFrame], pd.DataFrame] = lambda table: table


_CHECKPOINTS, _MMLU, _FU = "12_released_checkpoints", "04_mmlu_fisher", "08_detection_assumptions"
SOURCES = {
    "checkpoints": Source(_CHECKPOINTS, ("model", "title", "test"), "log10_p"),
    "checkpoints_min_k": Source(_CHECKPOINTS, ("model", "title"), "rate_percent"),
    "open_models": Source("03_open_model_audit", ("model", "title", "test"), "log10_p", _titles),
    "mmlu_subsets": Source(_MMLU, ("model", "subset", "test"), "log10_p", _subsets),
    "mmlu_fisher": Source(_MMLU, ("model", "row", "test"), "log10_p", _fisher),
    "wikimia": Source("06_wikimia", ("model", "score", "variant"), "auc", _wikimia),
    "assumptions_within": Source(_FU, ("model", "metric", "domain"), "auc_percent", _within),
    "assumptions_cross": Source(
        _FU, ("model", "seen_domain", "unseen_domain", "metric"), "auc_percent", _read_once
    ),
    "assumptions_perplexity": Source(_FU, ("model", "side", "domain"), "perplexity", _read_once),
}


def measured_cells(
    results: Path | str, notebooks: Collection[str]
) -> dict[str, dict[Key, Measured]]:
    """Read what the `notebooks` that ran have measured: result table -> key -> cell.

    A model or a part that could not be had is a key with "" in the place of what it lacks. Raises
    InputError if a table of one of these notebooks is missing.
    """
    return {
        name: {
            tuple(plain(row[column]) for column in source.key): _measured(row, source.value)
            for row in source.prepare(read_csv(results, name)).to_dict("records")
        }
        for name, source in SOURCES.items()
        if source.notebook in notebooks
    }


def _measured(row: Row, value: str) -> Measured:
    """Cell of a row: the `value` of that column, where its status is "ok"."""
    settings = {name: int(row[name]) for name in SETTINGS if not pd.isna(row.get(name))}
    if row["status"] != OK:
        return Measured(math.nan, row["status"], settings)
    # The permutation test alone has a floor; of shards there are too many orderings.
    permutations = row["permutations"] if row.get("test") == "permutation" else np.inf
    at_floor = bool(row.get("p", math.nan) <= (1 + 1e-9) / (permutations + 1))
    note = "" if pd.isna(row.get("note")) else row["note"]
    return Measured(float(row[value]), OK, settings, at_floor, note)


# --- both -----------------------------------------------------------------------------------------


def compare(
    cells: Sequence[Cell],
    measured: Mapping[str, Mapping[Key, Measured]],
    *,
    profile: str,
    notebooks: Collection[str],
) -> pd.DataFrame:
    """Put every published cell beside what was measured: one row each, in their order, `COLUMNS`.

    `ours`, `published` and `difference` (ours minus published) are in `unit`. There is no
    difference where one of the two p-values is a floor: it could not have been smaller. `status` is
    "ok", that of the row that failed, or "not asked: ..." where the profile leaves the cell out.
    `note` says what stands at its floor, and where ours took more or fewer examples, shards or
    permutations than the paper.

    Parameters
    ----------
    cells : of `published_cells`. measured : of `measured_cells`.
    profile : its name. notebooks : those that it runs.
    """
    rows = []
    for cell in cells:
        ours = _look_up(cell, measured, profile, notebooks)
        floors = [name for name, at in (("ours", ours), ("published", cell)) if at.at_floor]
        known = ours.status == OK and not floors
        row = {
            **{name: getattr(cell, name) for name in COLUMNS if hasattr(cell, name)},
            "ours": ours.value,
            "difference": ours.value - cell.published if known else math.nan,
            "status": ours.status,
            "note": _note(cell, ours, floors) if ours.status == OK else "",
        }
        rows.append(row)
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _look_up(
    cell: Cell,
    measured: Mapping[str, Mapping[Key, Measured]],
    profile: str,
    notebooks: Collection[str],
) -> Measured:
    """Return the cell of the run, the failure that it is part of, or that it was not asked for."""
    notebook = SOURCES[cell.source].notebook
    if notebook not in notebooks:
        return _not_asked(f"profile {profile} does not run notebook {notebook}")
    found, key = measured[cell.source], tuple(map(plain, cell.wanted))
    places = range(len(key))
    for left_out in (set(some) for count in (0, *places) for some in combinations(places, count)):
        wider = found.get(tuple("" if i in left_out else part for i, part in enumerate(key)))
        if wider is not None and not (left_out and wider.status == OK):
            return wider
    alike, shown = list(found), (cell.model, *cell.wanted[1:])
    for place in places:
        alike = [other for other in alike if other[place] == key[place]]
        if not alike:
            return _not_asked(f"profile {profile} leaves out {shown[place]}")
    return _not_asked(f"profile {profile} leaves out {', '.join(shown)}")


def _not_asked(reason: str) -> Measured:
    return Measured(math.nan, f"not asked: {reason}")


def _note(cell: Cell, ours: Measured, floors: Sequence[str]) -> str:
    parts = [f"{' and '.join(floors)} at the floor"] if floors else []
    for name, theirs in cell.settings.items():
        if ours.settings.get(name, theirs) != theirs:
            parts.append(f"{ours.settings[name]:,} {name.replace('_', '-')}, published {theirs:,}")
    return "; ".join([*parts, *([ours.note] if ours.note else [])])
