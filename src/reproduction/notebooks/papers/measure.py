"""Every cell that the papers print on released models, and what a run measured of it.

Oren, Tables 1, 2, 4 and 5 and the counts of section 4.3; Shi, Tables 1 and 6; Fu, Tables 3 and 7 to
15 with the perplexities below them, and Figure 18. `data/published` has no number of Oren's and
Shi's Figure 2 and of Fu's Figures 1, 19 and 20, which print none. No model is asked.
"""

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from contamination.scoring.status import OK
from contamination.tables import read_csv
from contamination.testsets.registry import entries
from reproduction.output import published
from reproduction.output.published import AUDITED, CONTROLS, MEASURED, STRICTER, load_published

OREN, SHI, FU = "Oren et al. (2024)", "Shi et al. (2024)", "Fu et al. (2025)"
LOG10_P, AUC, AUC_PERCENT = "log10 p", "AUC", "AUC, percent"
PERCENT, PERPLEXITY, COUNT = "percent", "perplexity", "subsets"
# Units, and how many decimals they are shown with.
DIGITS = {LOG10_P: 1, AUC: 2, AUC_PERCENT: 1, PERCENT: 1, PERPLEXITY: 1, COUNT: 0}

CANARY_MODEL = "contam-1.4b-dupcount-higher"  # Tables 1 and 5 of Oren, as it was released
FISHER = "MMLU (Fisher)"  # row of Table 2
AVERAGE = "average"
PAPER_TEST = "sharded_t"  # whose exclusions Fisher's method leaves out
# The paper's floors: 1/101, cut off, and what its floating point could not tell from zero.
FLOORS = {"permutation": 0.009, PAPER_TEST: 1e-38}

# A model of the papers -> what our tables call it, where more differs than capitals and marks.
OUR_NAMES = {
    "NeoX-20B": "gpt-neox-20b",
    "OLMo-2-1124-7B": "olmo-2-7b",
    "Zephyr-7B-beta": "HuggingFaceH4/zephyr-7b-beta",
}
# Table 1 of Shi: its average is over these, original and paraphrased.
WIKIMIA_MODELS = ("pythia-2.8b", "gpt-neox-20b", "llama-30b", "llama-65b", "opt-66b")
WIKIMIA_SCORES = {"PPL": "loss", "Zlib": "zlib", "Min-20% Prob": "min_k_20"}
WIKIMIA_VARIANTS = {"original": "original", "paraphrase": "paraphrased"}
FU_METRICS = {
    **{f"ppl_{k}": f"PPL_{k}" for k in (50, 100, 200)},
    **{f"min_prob_{k}": f"Min {k}% token" for k in (5, 15, 25)},
    **{f"mem_{k}": f"Mem {k}" for k in (5, 15, 25)},
    **{f"entropy_{k}": f"Entropy {k}" for k in (5, 15, 25)},
}
NOT_PRINTED = "not asked: the average of Fu is over 19 scores, of which the paper prints 12"
READ_ONCE = "pre-training"  # phase of the released models

COLUMNS = (
    *("paper", "table", "model", "row", "column", "ours", "published", "difference"),
    *("unit", "status", "note"),
)

Key = tuple[str, ...]  # model, then what tells the cells of a model apart; all `plain`
Row = dict[Any, Any]


class Cell(NamedTuple):
    """A number that a paper prints.

    `paper` to `column` say where it stands, in the paper's words; a p-value is `published` as log10
    p. `source` is the result table that measures it, one of `SOURCES`, and `wanted` what to look up
    there, the model first, in the words of our tables. `settings` say how many examples and so on
    the paper took, where it says so; `at_floor`, that it could print no smaller p-value.
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
    settings: Mapping[str, int] = {}
    at_floor: bool = False


def plain(text: Any) -> str:
    """Letters and digits alone, in lower case: tables write one name in several ways."""
    return "" if pd.isna(text) else re.sub(r"[^a-z0-9]+", "", str(text).lower())


# --- what the papers print ------------------------------------------------------------------------


def published_cells(directory: Path | str) -> list[Cell]:
    """List the cells in the order of the papers; `directory` is `data/published`."""
    return [*_oren(directory), *_shi(directory), *_fu(directory)]


def _oren(directory: Path | str) -> Iterator[Cell]:
    def read(name: str) -> Iterator[Any]:
        yield from load_published(directory, f"oren2024_{name}").itertuples()

    def p_value(
        table: str, model: str, row: str, test: str, p: float, source: str, **taken: int
    ) -> Cell:
        place, wanted = (OREN, table, model, row, test), (OUR_NAMES.get(model, model), row, test)
        return Cell(*place, math.log10(p), LOG10_P, source, wanted, taken, p == FLOORS[test])

    for row in read("table1_canaries"):
        for column, test in published.PRINTED.items():
            taken = {"shards": 50, "permutations": 51} if test == PAPER_TEST else {}  # section 4.1
            taken, p = {"examples": int(row.size)} | taken, getattr(row, column)
            yield p_value("Table 1", CANARY_MODEL, row.dataset, test, p, "checkpoints", **taken)
    for row in read("table2_open_models"):
        models, source, taken = AUDITED, "mmlu_fisher", {}
        if row.dataset != FISHER:
            models, source = AUDITED | CONTROLS, "open_models"
            taken = {"shards": 50, "permutations": 250, "examples": int(row.size)}  # section 4.3
        for column, model in models.items():
            p = getattr(row, column)
            yield p_value("Table 2", model, row.dataset, PAPER_TEST, p, source, **taken)
    for row in read("table4_mmlu"):
        taken = {"shards": 50, "permutations": 1000, "examples": row.size}
        for column, model in (AUDITED | CONTROLS).items():
            p = getattr(row, column)
            yield p_value("Table 4", model, row.subset, PAPER_TEST, p, "mmlu_subsets", **taken)
    for row in read("text"):
        number, wanted = float(row.value), ("", row.key, PAPER_TEST)
        what = row.key.replace("_", " ")
        yield Cell(OREN, row.where, "", what, "", number, COUNT, "mmlu_subsets", wanted)
    for row in read("table5_mink"):  # appendix E
        where, taken = ("Table 5", CANARY_MODEL, row.dataset), {"examples": row.size, "spans": 100}
        rate = (float(row.mink_detected_percent), PERCENT, "checkpoints_min_k")
        yield Cell(OREN, *where, "detected", *rate, where[1:], taken)


def _shi(directory: Path | str) -> Iterator[Cell]:
    headline = load_published(directory, "shi2023_headline")
    row: Any
    for row in headline[headline["table"].isin(["Table 1", "Table 6"])].itertuples():
        score, unit = WIKIMIA_SCORES[row.method], AUC if row.metric == "AUC" else PERCENT
        model, _, variant = row.setting.rpartition(" ")
        place, wanted = (AVERAGE, row.method, row.metric), (AVERAGE, score, row.metric)
        if row.setting != AVERAGE:
            place = (model, row.method, variant)
            wanted = (OUR_NAMES.get(model, model), score, WIKIMIA_VARIANTS[variant])
        yield Cell(SHI, row.table, *place, row.value, unit, "wikimia", wanted)


def _fu(directory: Path | str) -> Iterator[Cell]:
    row: Any
    thousand = {"members": 1000, "non_members": 1000}
    perplexity = load_published(directory, "fu2025_perplexity")
    for name in ("table3", "within_domain_auc"):
        for table, rows in load_published(directory, f"fu2025_{name}").groupby("table", sort=False):
            for row in rows.itertuples():
                where, place = (FU, table, row.model), (row.metric, row.domain)
                auc, source = (row.auc_percent, AUC_PERCENT), "assumptions_within"
                key = (OUR_NAMES.get(row.model, row.model), *place)
                yield Cell(*where, *place, *auc, source, key, thousand)
            for row in perplexity[perplexity["table"] == table].itertuples():
                where, side = (FU, table, row.model), f"PPL_200, {row.side.replace('_', '-')}s"
                mean, source = (row.ppl_200_mean, PERPLEXITY), "assumptions_perplexity"
                key = (OUR_NAMES.get(row.model, row.model), row.side, row.domain)
                yield Cell(*where, side, row.domain, *mean, source, key)
    for row in load_published(directory, "fu2025_cross_domain_auc").itertuples():
        where, place = (FU, row.figure, row.model), (row.seen_domain, row.unseen_domain)
        auc, source = (row.auc_percent, AUC_PERCENT), "assumptions_cross"
        wanted = (OUR_NAMES.get(row.model, row.model), *place, row.metric)
        yield Cell(*where, *place, *auc, source, wanted, thousand)


# --- what a run measured --------------------------------------------------------------------------


def _titles(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(title=table["dataset"].map({k: e.title for k, e in entries().items()}))


def _subsets(table: pd.DataFrame) -> pd.DataFrame:
    """By subset, and how many the controls drop and keep; a note says what our rule does."""
    ours = table[table["source"] == MEASURED]
    tested = table[(table["test"] == PAPER_TEST) & (table["status"] == OK)]
    excluded = tested.groupby(["source", "subset"])["excluded"].any().astype(bool)
    if excluded.empty or MEASURED not in excluded:
        return ours
    rows = []
    for name, dropped in (("mmlu_subsets_dropped", True), ("mmlu_subsets_kept", False)):
        count, strict = (int((excluded[s] == dropped).sum()) for s in (MEASURED, STRICTER))
        note = f"of {len(excluded[MEASURED])} subsets; {strict} with a compressor as a control"
        rows.append({"subset": name, "log10_p": count, "note": note})
    return pd.concat([ours, pd.DataFrame(rows).assign(test=PAPER_TEST, status=OK)])


def _fisher(table: pd.DataFrame) -> pd.DataFrame:
    """By the paper's filter; a note says what remains, and what ours gives."""
    ours, strict = (table[table["source"] == name] for name in (MEASURED, STRICTER))
    ours = ours.merge(
        strict[["model", "test", "p"]], "left", on=["model", "test"], suffixes=("", "_")
    )
    beside = (
        ours["p_"].map("; p = {:.3g} with a compressor as a control".format, "ignore").fillna("")
    )
    return ours.assign(row=FISHER, note=ours["subsets_kept"].map("{} subsets kept".format) + beside)


def _wikimia(table: pd.DataFrame) -> pd.DataFrame:
    """Table 1 by its means over the lengths of the texts, and its averages over all columns."""
    rows, keys = table[table["source"] == "wikimia"], ["model", "score", "variant"]
    done, failed = rows[rows["status"] == OK], rows[rows["status"] != OK]
    groups = done.groupby(keys)
    means = groups[["auc", "tpr_at_5_fpr"]].mean()
    lengths = groups["length"].agg(lambda found: ", ".join(map(str, sorted(found))))
    means["note"] = [f"mean over {found} words" for found in lengths]
    lost = failed.loc[failed["model"].isna() | failed["model"].isin(WIKIMIA_MODELS), "status"]
    averages = []
    for score in WIKIMIA_SCORES.values():
        columns = list(product(WIKIMIA_MODELS, [score], WIKIMIA_VARIANTS.values()))
        have, status = [key for key in columns if key in means.index], OK
        if not have and lost.empty:
            continue
        if len(have) < len(columns):  # over all columns of Table 1, or not at all
            status = lost.iloc[0] if len(lost) else "not asked"
            if have:
                few = f"{len(have)} of the {len(columns)} columns of Table 1 were measured"
                status = f"{status.partition(':')[0]}: {few}, and this is their average"
        mean = means.loc[have, ["auc", "tpr_at_5_fpr"]].mean().to_numpy() * (1, 100)
        for measure, value in zip(("AUC", "TPR@5%FPR"), mean, strict=True):
            averages.append((AVERAGE, score, measure, value, status))
    known = means.reset_index().assign(status=OK)
    both = pd.DataFrame(averages, columns=[*keys, "auc", "status"])
    return pd.concat([failed[[*keys, "status"]], known, both])


def _read_once(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of texts that were read once, and of models or texts that could not be had."""
    rows = table[(table["phase"] == READ_ONCE) | (table["status"] != OK)]
    return rows.assign(metric=rows["metric"].replace(FU_METRICS)) if "metric" in rows else rows


def _within(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of `_read_once`; the published average is of more scores than are printed."""
    rows = _read_once(table)
    of_cell = rows.loc[rows["status"] == OK, ["model", "domain"]].drop_duplicates()
    return pd.concat([rows, of_cell.assign(metric="Average AUC", status=NOT_PRINTED)])


class Source(NamedTuple):
    """A result table: its notebook, columns of the key, column of the value, what to make of it."""

    notebook: str
    key: tuple[str, ...]
    value: str
    prepare: Callable[[pd.DataFrame], pd.DataFrame] = lambda table: table


_CHECKPOINTS, _MMLU, _FU = "12_released_checkpoints", "04_mmlu_fisher", "08_detection_assumptions"
SOURCES = {
    "checkpoints": Source(
        *(_CHECKPOINTS, ("model", "title", "test"), "log10_p"),
        lambda table: table[table["segmentation"] == "line"],  # most likely what was planted
    ),
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


def _measured(results: Path | str, name: str) -> dict[Key, Row]:
    """Read a result table by key, with `ours` and whether that `at_floor`.

    A model or a part that could not be had is a key with "" in the place of what it lacks.
    """
    source, found = SOURCES[name], {}
    for row in source.prepare(read_csv(results, name)).to_dict("records"):
        done = row["status"] == OK
        # The permutation test alone has a floor; of shards there are too many orderings.
        permutations = row["permutations"] if row.get("test") == "permutation" else np.inf
        found[tuple(plain(row[column]) for column in source.key)] = row | {
            "ours": float(row[source.value]) if done else math.nan,
            "at_floor": done and row.get("p", math.nan) <= (1 + 1e-9) / (permutations + 1),
        }
    return found


# --- both -----------------------------------------------------------------------------------------


def compare(
    cells: Sequence[Cell], results: Path | str, *, profile: str, notebooks: Collection[str]
) -> pd.DataFrame:
    """Put every published cell beside what was measured: one row each, in their order, `COLUMNS`.

    `ours`, `published` and `difference` (ours minus published) are in `unit`. There is no
    difference where one of the two p-values is a floor: it could not have been smaller. `status` is
    "ok", that of the row that failed, or "not asked: ..." where the profile leaves the cell out.
    `note` says what stands at its floor, and where ours took more or fewer examples, shards or
    permutations than the paper. `results` are those of a run of `profile` (a name), which runs
    these `notebooks`. Raises InputError if a table of one of them is missing.
    """
    ran = [name for name, source in SOURCES.items() if source.notebook in notebooks]
    measured = {name: _measured(results, name) for name in ran}
    rows = []
    for cell in cells:
        if cell.source in measured:
            ours = _look_up(cell, measured[cell.source], f"not asked: profile {profile} leaves out")
        else:
            notebook = SOURCES[cell.source].notebook
            ours = {"status": f"not asked: profile {profile} does not run notebook {notebook}"}
        row = cell._asdict() | {"ours": ours.get("ours", math.nan), "status": ours["status"]}
        if ours["status"] == OK:
            at = {"ours": ours["at_floor"], "published": cell.at_floor}
            floors = [side for side, floor in at.items() if floor]
            row |= {} if floors else {"difference": ours["ours"] - cell.published}
            row["note"] = _note(cell, ours, floors)
        rows.append({"difference": math.nan, "note": ""} | row)
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _look_up(cell: Cell, found: Mapping[Key, Row], not_asked: str) -> Row:
    """Return the cell of the run, the failure that it is part of, or that it was not asked for."""
    key = tuple(map(plain, cell.wanted))
    for blanks in sorted(product((True, False), repeat=len(key)), key=sum):
        wide = ("" if blank else part for blank, part in zip(blanks, key, strict=True))
        wider = found.get(tuple(wide))
        if wider is not None and not (any(blanks) and wider["status"] == OK):
            return wider
    shown = (cell.model, *cell.wanted[1:])
    # The first part of the key that the run leaves out, beside those before it.
    beside = (any(other[:n] == key[:n] for other in found) for n in range(1, len(key) + 1))
    return {"status": f"{not_asked} {shown[list(beside).index(False)]}"}


def _note(cell: Cell, ours: Row, floors: Sequence[str]) -> str:
    parts = [f"{' and '.join(floors)} at the floor"] if floors else []
    for name, theirs in cell.settings.items():
        taken = ours.get(name, math.nan)
        if not math.isnan(taken) and taken != theirs:
            parts.append(f"{int(taken):,} {name.replace('_', '-')}, published {theirs:,}")
    return "; ".join([*parts, *([] if pd.isna(ours.get("note")) else [ours["note"]])])
