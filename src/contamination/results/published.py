"""The numbers that the papers print, and their own aggregation of them (Oren, section 4.3).

Table 4 of Oren lists p-values of the MMLU subsets under five models. A subset is dropped where a
negative control, a model that cannot be contaminated, rejects; the rest are combined by Fisher.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from contamination.errors import InputError
from contamination.results.tables import format_p
from contamination.statistics import fisher

CONTROLS = {"biomedlm": "BioMedLM", "gpt2_xl": "GPT-2 XL"}
AUDITED = {"llama2_7b": "LLaMA2-7B", "mistral_7b": "Mistral-7B", "pythia_1_4b": "Pythia-1.4B"}

# Columns of the two tables, whatever the p-values come from.
SUBSET_COLUMNS = (
    *("model", "source", "test", "subset", "examples", "p", "log10_p", "published_p"),
    *("excluded", "reason"),
)
FISHER_COLUMNS = (
    *("model", "source", "test", "subsets_kept", "statistic", "p", "log10_p", "published_p"),
)
TEST = "sharded_t"  # of the paper: 50 shards, 1,000 permutations


def load_published(directory: Path | str, name: str) -> pd.DataFrame:
    """Read one table of `data/published/`."""
    path = Path(directory) / f"{name}.csv"
    if not path.is_file():
        raise InputError(f"{path}: no such published table; restore data/published from git")
    return pd.read_csv(path)


def published_power(table1: pd.DataFrame) -> pd.DataFrame:
    """Table 1 in long form, as Figure 2 plots it: dataset, dup_count, test, log10_p.

    The paper prints 1e-38 for every smaller p-value.
    """
    rows = table1.melt(
        id_vars=["dataset", "dup_count"],
        value_vars=["permutation_p", "sharded_p"],
        var_name="test",
        value_name="p",
    )
    rows["test"] = rows["test"].map({"permutation_p": "permutation", "sharded_p": TEST})
    return rows.assign(log10_p=np.log10(rows["p"])).drop(columns="p")


def mmlu_subsets(table4: pd.DataFrame, exclude_below: float) -> pd.DataFrame:
    """Table 4 in long form, one row per model and subset, with the exclusion and its reason.

    `excluded` is true where the p-value of BioMedLM or GPT-2 XL is below `exclude_below`. `p` and
    `log10_p` stay empty: they are for values measured here, `published_p` for those of the paper.
    """
    rejected = {name: table4[column] < exclude_below for column, name in CONTROLS.items()}
    reason = pd.DataFrame(rejected).apply(lambda row: ", ".join(row.index[row]), axis=1)
    rows = [
        pd.DataFrame(
            {
                "model": name,
                "source": "published",
                "test": TEST,
                "subset": table4["subset"],
                "examples": table4["size"],
                "p": float("nan"),
                "log10_p": float("nan"),
                "published_p": table4[column],
                "excluded": reason != "",
                "reason": reason.where(reason == "", f"p < {exclude_below:g} under " + reason),
            }
        )
        for column, name in (AUDITED | CONTROLS).items()
    ]
    return pd.concat(rows, ignore_index=True)[list(SUBSET_COLUMNS)]


def mmlu_fisher(subsets: pd.DataFrame, table2: pd.DataFrame) -> pd.DataFrame:
    """Fisher's combination of the published p-values of the kept subsets, for the audited models.

    `published_p` is the value of Table 2, which the paper prints to three decimals, cut off and not
    rounded (0.0146 stands there as 0.014).
    """
    published = table2.set_index("dataset").loc["MMLU (Fisher)"]
    rows = []
    for column, name in AUDITED.items():
        kept = subsets[(subsets["model"] == name) & ~subsets["excluded"]]
        result = fisher(kept["published_p"])
        rows.append(
            {
                "model": name,
                "source": "published",
                "test": TEST,
                "subsets_kept": len(kept),
                "statistic": result.statistic,
                "p": result.p,
                "log10_p": result.log10_p,
                "published_p": published[column],
            }
        )
    return pd.DataFrame(rows, columns=list(FISHER_COLUMNS))


def side_by_side(subsets: pd.DataFrame) -> pd.DataFrame:
    """Lay out Table 4: a row for each subset, the published p-values and those measured here.

    Parameters
    ----------
    subsets : rows of `mmlu_subsets`, and of
        `contamination.experiments.mmlu.audit.MmluAudit.subsets`.

    Returns
    -------
    DataFrame
        Text under its headings: Subset, Examples, a column for each published model, one for each
        model and test measured; bold where the subset is excluded, "—" where there is no value.
    """
    index = pd.Index(sorted(subsets["subset"].unique()), name="Subset")
    examples = subsets.groupby("subset")["examples"].max()
    columns = {"Examples": examples.reindex(index).map(str)}
    for (source, model, test), found in subsets.groupby(["source", "model", "test"], sort=False):
        rows = found.set_index("subset")
        ours = source == "measured"
        values = rows["p"] if ours else rows["published_p"]
        shown = [
            f"**{format_p(p, log10_p)}**" if excluded else format_p(p, log10_p)
            for p, log10_p, excluded in zip(values, rows["log10_p"], rows["excluded"], strict=True)
        ]
        heading = f"{model}, {test.replace('_', ' ')}, here" if ours else model
        columns[heading] = pd.Series(shown, index=rows.index).reindex(index, fill_value="—")
    return pd.DataFrame(columns).reset_index()
