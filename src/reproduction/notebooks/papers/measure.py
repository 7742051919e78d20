"""Each number that the papers print on released models, beside what a run measured of it.

Two key tables and a merge: `PUBLISHED` says where numbers stand, `OURS` which result tables measure
them. Left out are the counts of Oren's section 4.3 (notebook 04 has them), their Table 5, and
averages: all of Shi's Table 6, and Fu's, which are over 19 scores, of which the paper prints 12.
"""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from contamination.scoring.status import OK
from contamination.tables import read_csv
from contamination.testsets.registry import entries
from reproduction.output.published import AUDITED, CONTROLS, PRINTED, load_published

OREN, SHI, FU = "Oren et al. (2024)", "Shi et al. (2024)", "Fu et al. (2025)"
COLUMNS = ("paper", "table", "model", "row", "column", "ours", "published", "difference", "unit")
NOT_ASKED = "not asked: this run leaves it out"
KEYS = ["what", "model", "row", "column"]
LOG10_P, PERPLEXITY, AUC = "log10 p", "perplexity", "AUC"
# What is measured -> its unit.
UNITS = {"planted": LOG10_P, "open": LOG10_P, "mmlu": LOG10_P, AUC: AUC}
UNITS |= {"within": "AUC, percent", "across": "AUC, percent", PERPLEXITY: PERPLEXITY}

# File of `data/published`, paper; then `KEYS`, table, number: its columns, or a word for all rows.
# `of` are models or tests with a column each.
HIGHER, T_TEST, FISHER = "contam-1.4b-dupcount-higher", "sharded_t", "MMLU (Fisher)"
WITHIN = ("within", "model", "metric", "domain", "table", "auc_percent")
ACROSS = ("across", "model", "seen_domain", "unseen_domain")
PUBLISHED = (
    ("oren2024_table1_canaries", OREN, "planted", HIGHER, "dataset", "of", "Table 1", "p"),
    ("oren2024_table2_open_models", OREN, "open", "of", "dataset", T_TEST, "Table 2", "p"),
    ("oren2024_table4_mmlu", OREN, "mmlu", "of", "subset", T_TEST, "Table 4", "p"),
    ("shi2023_headline", SHI, AUC, "model", "method", "variant", "table", "value"),
    ("fu2025_table3", FU, *WITHIN),
    ("fu2025_within_domain_auc", FU, *WITHIN),
    ("fu2025_perplexity", FU, PERPLEXITY, "model", "side", "domain", "table", "ppl_200_mean"),
    ("fu2025_cross_domain_auc", FU, *ACROSS, "figure", "auc_percent"),
)
# Result table, its rows that count; then `KEYS` and number, as above.
MEASURED, ONCE = "source == 'measured'", "phase == 'pre-training'"
MIN_25 = f"{ONCE} and (metric == 'min_prob_25' or status != '{OK}')"
OURS = (
    ("open_models", "planted", "planted", "model", "title", "test", "log10_p"),
    ("open_models", "not planted", "open", "model", "title", "test", "log10_p"),
    ("mmlu_fisher", MEASURED, "open", "model", FISHER, "test", "log10_p"),
    ("mmlu_subsets", MEASURED, "mmlu", "model", "subset", "test", "log10_p"),
    ("wikimia", "source == 'wikimia'", AUC, "model", "score", "variant", "auc"),
    ("assumptions_within", ONCE, "within", "model", "metric", "domain", "auc_percent"),
    ("assumptions_perplexity", ONCE, PERPLEXITY, "model", "side", "domain", PERPLEXITY),
    ("assumptions_cross", MIN_25, *ACROSS, "auc_percent"),
)
# A word of the papers -> ours, where more differs than capitals and marks.
WORDS = {"NeoX-20B": "gpt-neox-20b", "OLMo-2-1124-7B": "olmo-2-7b", "paraphrase": "paraphrased"}
WORDS |= {"PPL": "loss", "Min-20% Prob": "min_k_20"}
WORDS |= {f"Min {k}% token": f"min_prob_{k}" for k in (5, 15, 25)}
# log10 p up to these could not be printed smaller: 0.009 is 1/101, cut off; 1e-38 stands for zero.
FLOORS = {"permutation": -2.04, T_TEST: -37.9}


def plain(text: Any) -> str:
    """Letters and digits alone, in lower case: tables write one name in several ways."""
    return "" if pd.isna(text) else re.sub(r"[^a-z0-9]+", "", str(WORDS.get(text, text)).lower())


def _columns(table: pd.DataFrame, what: str, *names: str, last: list[str]) -> pd.DataFrame:
    """Return `KEYS` and the last columns; a name that is no column stands for all rows."""
    chosen = zip([*KEYS[1:], *last], names, strict=True)
    found = {"what": what} | {new: table.get(old, old) for new, old in chosen}
    return pd.DataFrame(found, table.index)


def published_cells(directory: Path | str) -> pd.DataFrame:
    """List the numbers in the order of the papers; `directory` is `data/published`."""
    found = []
    for file, paper, *names in PUBLISHED:
        table = load_published(directory, file)
        wide = {k: name for k, name in (PRINTED | AUDITED | CONTROLS).items() if k in table}
        if wide:
            kept = [name for name in table if name not in wide]
            table = table.melt(kept, var_name="of", value_name="p")
            table = table.assign(of=table["of"].map(wide), p=np.log10(table["p"]))
        if "setting" in table:  # "NeoX-20B original"; the other tables are of models that train
            table[["model", "variant"]] = table["setting"].str.split(" ", n=1, expand=True)
            table = table[(table["table"] == "Table 1") & table["variant"].notna()]
        found.append(_columns(table, *names, last=["table", "published"]).assign(paper=paper))
    cells = pd.concat(found, ignore_index=True).dropna(subset="published")
    return cells[cells["row"] != "Average AUC"].reset_index(drop=True)


def measured(results: Path | str) -> pd.DataFrame:
    """Read what a run measured: plain `KEYS`, ours, status; a key that a row lacks is ""."""
    found = [pd.DataFrame(columns=[*KEYS, "ours", "status"])]
    titles = {name: entry.title for name, entry in entries().items()}
    for name, rows, *names in OURS:
        if not (Path(results) / "tables" / f"{name}.csv").is_file():
            continue  # the profile does not run its notebook
        table = read_csv(results, name)
        if "dataset" in table:
            table["title"] = table["dataset"].map(titles).fillna(table["dataset"])
            table["planted"] = table["dataset"].astype(str).str.startswith("canaries/")
        found.append(_columns(table.query(rows), *names, "status", last=["ours", "status"]))
    ours = pd.concat(found, ignore_index=True).astype({"ours": float})
    return ours.assign(**{key: ours[key].map(plain) for key in KEYS[1:]})


def compare(directory: Path | str, results: Path | str) -> pd.DataFrame:
    """Put every published number beside what was measured: one row each, `COLUMNS` and status.

    `ours`, `published` and `difference` (ours minus published) are in `unit`; p-values are on the
    log10 scale, and have no difference where the published one is the smallest that could be
    printed. Of WikiMIA ours is the mean over the lengths of texts. `status` is "ok", that of the
    row that failed, or `NOT_ASKED`.
    """
    cells, rows = published_cells(directory), measured(results)
    done = rows[rows["status"] == OK].groupby(KEYS, as_index=False)["ours"].mean()
    keyed = cells[KEYS].assign(**{key: cells[key].map(plain) for key in KEYS[1:]})
    keyed = keyed.merge(done, "left", KEYS, validate="m:1")
    status = keyed["ours"].map(lambda value: OK, na_action="ignore").astype(object)
    lost = rows[rows["status"] != OK].drop_duplicates().to_dict("records")
    for row in sorted(lost, key=lambda row: sum(not row[key] for key in KEYS)):
        part = np.logical_and.reduce([keyed[key] == row[key] for key in KEYS if row[key]])
        status = status.mask(status.isna() & part, row["status"])
    cells["unit"], cells["ours"] = cells["what"].map(UNITS), keyed["ours"]
    at_floor = cells["published"] <= cells["column"].map(FLOORS)
    cells["difference"] = (cells["ours"] - cells["published"]).mask(at_floor)
    cells["row"] = cells["row"].mask(cells["unit"] == PERPLEXITY, "PPL_200, " + cells["row"])
    return cells[list(COLUMNS)].assign(status=status.fillna(NOT_ASKED))
