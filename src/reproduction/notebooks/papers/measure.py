"""Each number that the papers print on released models, and that of a run.

Two key tables and a merge: `PUBLISHED` says where numbers stand, `OURS` which result
tables measure them. Left out are the counts of Oren's section 4.3 (notebook 04 has
them), their Table 5, and averages: all of Shi's Table 6, and Fu's, which are over 19
scores, of which the paper prints 12.
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from contamination.scoring.status import OK
from contamination.tables import read_csv
from contamination.testsets.registry import entries
from reproduction.output.published import AUDITED, CONTROLS, PRINTED, load_published

OREN = "Oren et al. (2024)"
SHI = "Shi et al. (2024)"
FU = "Fu et al. (2025)"
COLUMNS = (
    "paper",
    "table",
    "model",
    "row",
    "column",
    "ours",
    "published",
    "difference",
    "unit",
)
NOT_ASKED = "not asked: this run leaves it out"
KEYS = ["what", "model", "row", "column"]
# Units.
LOG10_P = "log10 p"
PERPLEXITY = "perplexity"
AUC = "AUC"
AUC_PERCENT = "AUC, percent"
# What is measured -> its unit.
UNITS = {
    "planted": LOG10_P,
    "open": LOG10_P,
    "mmlu": LOG10_P,
    AUC: AUC,
    "within": AUC_PERCENT,
    "across": AUC_PERCENT,
    PERPLEXITY: PERPLEXITY,
}


@dataclass(frozen=True)
class Constant:
    """A word that stands for all rows, in place of a column."""

    word: str


Source = str | Constant  # the name of a column, or a word for all rows


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where the numbers of a table stand.

    Attributes
    ----------
    what
        Kind of number, a key of `UNITS`.
    number
        Column of the number.
    model, row, column
        Model, row and column of a number.
    table
        Name of the paper's table; no word in our tables.
    """

    what: str
    number: str
    model: Source = "model"
    row: Source
    column: Source
    table: Source = Constant("")


HIGHER = "contam-1.4b-dupcount-higher"  # model of Oren's Table 1
T_TEST = "sharded_t"
FISHER = "MMLU (Fisher)"  # row of Oren's Table 2
WITHIN = Place(what="within", number="auc_percent", row="metric", column="domain")
FU_WITHIN = replace(WITHIN, table="table")
ACROSS = Place(what="across", number="auc_percent", row="seen_domain", column="unseen_domain")
# File of `data/published`, paper, and place. `of` are models or tests with a column each.
PUBLISHED = (
    (
        "oren2024_table1_canaries",
        OREN,
        Place(
            what="planted",
            number="p",
            model=Constant(HIGHER),
            row="dataset",
            column="of",
            table=Constant("Table 1"),
        ),
    ),
    (
        "oren2024_table2_open_models",
        OREN,
        Place(
            what="open",
            number="p",
            model="of",
            row="dataset",
            column=Constant(T_TEST),
            table=Constant("Table 2"),
        ),
    ),
    (
        "oren2024_table4_mmlu",
        OREN,
        Place(
            what="mmlu",
            number="p",
            model="of",
            row="subset",
            column=Constant(T_TEST),
            table=Constant("Table 4"),
        ),
    ),
    (
        "shi2023_headline",
        SHI,
        Place(what=AUC, number="value", row="method", column="variant", table="table"),
    ),
    ("fu2025_table3", FU, FU_WITHIN),
    ("fu2025_within_domain_auc", FU, FU_WITHIN),
    (
        "fu2025_perplexity",
        FU,
        Place(what=PERPLEXITY, number="ppl_200_mean", row="side", column="domain", table="table"),
    ),
    ("fu2025_cross_domain_auc", FU, replace(ACROSS, table="figure")),
)
# Result table, its rows that count, and place.
MEASURED = "source == 'measured'"
ONCE = "phase == 'pre-training'"
MIN_25 = f"{ONCE} and (metric == 'min_prob_25' or status != '{OK}')"
OURS = (
    (
        "open_models",
        "planted",
        Place(what="planted", number="log10_p", row="title", column="test"),
    ),
    (
        "open_models",
        "not planted",
        Place(what="open", number="log10_p", row="title", column="test"),
    ),
    (
        "mmlu_fisher",
        MEASURED,
        Place(what="open", number="log10_p", row=Constant(FISHER), column="test"),
    ),
    (
        "mmlu_subsets",
        MEASURED,
        Place(what="mmlu", number="log10_p", row="subset", column="test"),
    ),
    (
        "wikimia",
        "source == 'wikimia'",
        Place(what=AUC, number="auc", row="score", column="variant"),
    ),
    ("assumptions_within", ONCE, WITHIN),
    (
        "assumptions_perplexity",
        ONCE,
        Place(what=PERPLEXITY, number=PERPLEXITY, row="side", column="domain"),
    ),
    ("assumptions_cross", MIN_25, ACROSS),
)
# A word of the papers -> ours, where more differs than capitals and marks.
WORDS = {
    "NeoX-20B": "gpt-neox-20b",
    "OLMo-2-1124-7B": "olmo-2-7b",
    "paraphrase": "paraphrased",
    "PPL": "loss",
    "Min-20% Prob": "min_k_20",
    "Min 5% token": "min_prob_5",
    "Min 15% token": "min_prob_15",
    "Min 25% token": "min_prob_25",
}
# log10 p up to these could not be printed smaller: 0.009 is 1/101, cut off; 1e-38
# stands for zero.
FLOORS = {"permutation": -2.04, T_TEST: -37.9}


def plain(text: Any) -> str:
    """Return letters and digits alone, in lower case, to compare names of tables."""
    if pd.isna(text):
        return ""
    word = str(WORDS.get(text, text)).lower()
    return re.sub(r"[^a-z0-9]+", "", word)


def _columns(table: pd.DataFrame, place: Place) -> pd.DataFrame:
    """Return `KEYS` and the number; raise KeyError for a column that the table lacks."""
    columns = {
        "what": place.what,
        "model": _values(table, place.model),
        "row": _values(table, place.row),
        "column": _values(table, place.column),
        "number": table[place.number],
    }
    return pd.DataFrame(columns, table.index)


def _values(table: pd.DataFrame, source: Source) -> pd.Series | str:
    """Return a column of the table, or the word that stands for all rows."""
    return source.word if isinstance(source, Constant) else table[source]


def published_cells(directory: Path | str) -> pd.DataFrame:
    """Return the numbers in `directory`, as of data/published, in the order of the papers."""
    headings = PRINTED | AUDITED | CONTROLS
    parts = []
    for file, paper, place in PUBLISHED:
        table = load_published(directory, file)
        wide = {column: name for column, name in headings.items() if column in table}
        if wide:
            kept = [name for name in table if name not in wide]
            table = table.melt(kept, var_name="of", value_name="p")
            table = table.assign(of=table["of"].map(wide), p=np.log10(table["p"]))
        # "NeoX-20B original"; the other tables are of models that train
        if "setting" in table:
            table[["model", "variant"]] = table["setting"].str.split(
                " ",
                n=1,
                expand=True,
            )
            table = table[(table["table"] == "Table 1") & table["variant"].notna()]
        part = _columns(table, place).rename(columns={"number": "published"})
        parts.append(part.assign(table=_values(table, place.table), paper=paper))
    cells = pd.concat(parts, ignore_index=True).dropna(subset="published")
    return cells[cells["row"] != "Average AUC"].reset_index(drop=True)


def measured(results: Path | str) -> pd.DataFrame:
    """Read the numbers of a run by `KEYS`; a key that a row lacks is ""."""
    parts = [pd.DataFrame(columns=[*KEYS, "ours", "status"])]
    titles = {name: entry.title for name, entry in entries().items()}
    for name, query, place in OURS:
        if not (Path(results) / "tables" / f"{name}.csv").is_file():
            continue  # the profile does not run its notebook
        table = read_csv(results, name)
        if "dataset" in table:
            table["title"] = table["dataset"].map(titles).fillna(table["dataset"])
            table["planted"] = table["dataset"].astype(str).str.startswith("canaries/")
        table = table.query(query)
        part = _columns(table, place).rename(columns={"number": "ours"})
        parts.append(part.assign(status=table["status"]))
    ours = pd.concat(parts, ignore_index=True).astype({"ours": float})
    for key in KEYS[1:]:
        ours[key] = ours[key].map(plain)
    return ours


def compare(directory: Path | str, results: Path | str) -> pd.DataFrame:
    """Return a row for each published number, with our own beside it: `COLUMNS` and status.

    `ours`, `published` and `difference` (ours minus published) are in `unit`; p-values
    are on the log10 scale, and have no difference where the published one is the
    smallest that could be printed. Of WikiMIA ours is the mean over the lengths of
    texts. `status` is "ok", that of the row that failed, or `NOT_ASKED`.
    """
    cells = published_cells(directory)
    rows = measured(results)
    is_done = rows["status"] == OK
    means = rows[is_done].groupby(KEYS, as_index=False)["ours"].mean()
    keyed = cells[KEYS].copy()
    for key in KEYS[1:]:
        keyed[key] = keyed[key].map(plain)
    keyed = keyed.merge(means, "left", KEYS, validate="m:1")
    cells["unit"] = cells["what"].map(UNITS)
    cells["ours"] = keyed["ours"]
    at_floor = cells["published"] <= cells["column"].map(FLOORS)
    cells["difference"] = (cells["ours"] - cells["published"]).mask(at_floor)
    cells["row"] = cells["row"].mask(
        cells["unit"] == PERPLEXITY,
        "PPL_200, " + cells["row"],
    )
    return cells[list(COLUMNS)].assign(status=_statuses(keyed, rows[~is_done]))


def _statuses(keyed: pd.DataFrame, lost: pd.DataFrame) -> pd.Series:
    """Return the status of every published number, from the rows that were not measured.

    The row with the most keys comes first; a row that lacks a key stands for all its
    values.
    """
    statuses = keyed["ours"].map(lambda value: OK, na_action="ignore").astype(object)
    rows = lost.drop_duplicates().to_dict("records")
    for row in sorted(rows, key=_missing_keys):
        fits = pd.Series(True, index=keyed.index)
        for key in KEYS:
            if row[key]:
                fits &= keyed[key] == row[key]
        statuses = statuses.mask(statuses.isna() & fits, row["status"])
    return statuses.fillna(NOT_ASKED)


def _missing_keys(row: dict[Any, Any]) -> int:
    """Return how many keys a row lacks."""
    return sum(not row[key] for key in KEYS)
