"""Every cell that the papers print on released models, and where a run measures it.

Oren, Tables 1, 2, 4 and 5 and the counts of section 4.3; Shi, Tables 1 and 6; Fu, Tables 3 and 7 to
15 with the perplexities below them, and Figure 18. `data/published` has no number of Oren's and
Shi's Figure 2 and of Fu's Figures 1, 19 and 20, which print none.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from contamination.scoring.models import find_model
from reproduction.output.published import AUDITED, CONTROLS, load_published

OREN, SHI, FU = "Oren et al. (2024)", "Shi et al. (2024)", "Fu et al. (2025)"
LOG10_P, AUC, AUC_PERCENT = "log10 p", "AUC", "AUC, percent"
PERCENT, PERPLEXITY, COUNT = "percent", "perplexity", "subsets"

CANARY_MODEL = "contam-1.4b-dupcount-higher"  # Tables 1 and 5 of Oren, as it was released
FISHER = "MMLU (Fisher)"  # row of Table 2
AVERAGE = "average"
# The paper's floors: 1/101, cut off, and what its floating point could not tell from zero.
PERMUTATION_FLOOR, ZERO = 0.009, 1e-38

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


@dataclass(frozen=True)
class Cell:
    """A number that a paper prints.

    Attributes
    ----------
    paper, table, model, row, column : where it stands, in the paper's words.
    published : in its `unit`; a p-value as log10 p.
    source : the result table that measures it (`measured.NOTEBOOKS` has its notebook).
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


def plain(text: str) -> str:
    """Letters and digits alone, in lower case: tables write one name in several ways."""
    return re.sub(r"[^a-z0-9]+", "", text.lower())


def our_name(model: str) -> str:
    """What tables of ours call a model of the papers."""
    return find_model(IDS.get(model, model)).name


def published_cells(directory: Path | str) -> list[Cell]:
    """List the cells in the order of the papers; `directory` is `data/published`."""
    return [*_oren(Path(directory)), *_shi(Path(directory)), *_fu(Path(directory))]


def _oren(directory: Path) -> Iterator[Cell]:
    tests = {"permutation_p": "permutation", "sharded_p": "sharded_t"}
    for row in load_published(directory, "oren2024_table1_canaries").to_dict("records"):
        for printed, test in tests.items():
            p, settings = row[printed], {"examples": row["size"]}
            if test == "sharded_t":
                settings |= {"shards": 50, "permutations": 51}  # section 4.1
            yield Cell(
                *(OREN, "Table 1", CANARY_MODEL, row["dataset"], test, math.log10(p), LOG10_P),
                *("checkpoints", (CANARY_MODEL, row["dataset"], test), settings),
                at_floor=p == (ZERO if test == "sharded_t" else PERMUTATION_FLOOR),
            )
    models = {column: our_name(name) for column, name in (AUDITED | CONTROLS).items()}
    for table, name in (("Table 2", "table2_open_models"), ("Table 4", "table4_mmlu")):
        printed = load_published(directory, f"oren2024_{name}")
        for row in printed.to_dict("records"):
            yield from _sharded_t(table, row, models)
    for row in load_published(directory, "oren2024_text").to_dict("records"):
        yield Cell(
            *(OREN, row["where"], "", row["key"].replace("_", " "), "", float(row["value"])),
            *(COUNT, "mmlu_subsets", ("", row["key"], "sharded_t")),
        )
    for row in load_published(directory, "oren2024_table5_mink").to_dict("records"):
        yield Cell(
            *(OREN, "Table 5", CANARY_MODEL, row["dataset"], "detected"),
            *(float(row["mink_detected_percent"]), PERCENT),
            *("checkpoints_min_k", (CANARY_MODEL, row["dataset"])),
            {"examples": row["size"], "spans": 100},  # appendix E
        )


def _sharded_t(table: str, row: dict[str, object], models: Mapping[str, str]) -> Iterator[Cell]:
    """Cells of a set in Table 2 or of a subset in Table 4: a p-value under each model."""
    name = str(row["dataset" if table == "Table 2" else "subset"])
    source, settings = "open_models", {"shards": 50, "permutations": 250}  # section 4.3
    if table == "Table 4":
        source, settings = "mmlu_subsets", {"permutations": 1000}
    if name == FISHER:
        source, settings = "mmlu_fisher", {}
    else:
        settings["examples"] = int(row["size"])  # type: ignore[call-overload]
    for column, printed in (AUDITED | CONTROLS).items():
        p = float(row[column])  # type: ignore[arg-type]
        if not math.isnan(p):  # Fisher's method is for the audited models alone
            yield Cell(
                *(OREN, table, printed, name, "sharded_t", math.log10(p), LOG10_P, source),
                *((models[column], name, "sharded_t"), settings),
                at_floor=p == ZERO,
            )


def _shi(directory: Path) -> Iterator[Cell]:
    for row in load_published(directory, "shi2023_headline").to_dict("records"):
        if row["table"] not in ("Table 1", "Table 6"):
            continue
        score, measure = WIKIMIA_SCORES[row["method"]], row["metric"]
        model, _, variant = row["setting"].rpartition(" ")
        place, wanted = (model, row["method"], variant), ("", "", "")
        if row["setting"] == AVERAGE:
            place, wanted = (AVERAGE, row["method"], measure), (AVERAGE, score, measure)
        else:
            wanted = (our_name(model), score, WIKIMIA_VARIANTS[variant])
        unit = AUC if measure == "AUC" else PERCENT
        yield Cell(SHI, row["table"], *place, row["value"], unit, "wikimia", wanted)


def _fu(directory: Path) -> Iterator[Cell]:
    thousand = {"members": 1000, "non_members": 1000}
    perplexity = load_published(directory, "fu2025_perplexity")
    for name in ("table3", "within_domain_auc"):
        printed = load_published(directory, f"fu2025_{name}")
        for table, rows in printed.groupby("table", sort=False):
            for row in rows.to_dict("records"):
                metric, domain = row["metric"], row["domain"]
                yield Cell(
                    *(FU, table, row["model"], metric, domain, row["auc_percent"], AUC_PERCENT),
                    *("assumptions_within", (our_name(row["model"]), metric, domain), thousand),
                )
            for row in perplexity[perplexity["table"] == table].to_dict("records"):
                side, domain = row["side"], row["domain"]
                yield Cell(
                    *(FU, table, row["model"], f"PPL_200, {side.replace('_', '-')}s", domain),
                    *(row["ppl_200_mean"], PERPLEXITY, "assumptions_perplexity"),
                    (our_name(row["model"]), side, domain),
                )
    for row in load_published(directory, "fu2025_cross_domain_auc").to_dict("records"):
        seen, unseen, metric = row["seen_domain"], row["unseen_domain"], row["metric"]
        yield Cell(
            *(FU, row["figure"], row["model"], seen, unseen, row["auc_percent"], AUC_PERCENT),
            *("assumptions_cross", (our_name(row["model"]), seen, unseen, metric), thousand),
        )
