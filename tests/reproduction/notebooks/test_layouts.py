"""Every layout prints the numbers of the reference run as its Markdown tables have them."""

from collections.abc import Callable
from functools import partial

import pandas as pd
import pytest

from contamination.audit.registry import TESTS
from contamination.tables import read_csv, to_markdown
from fakes.data_fixtures import ROOT
from reproduction.notebooks.assumptions import tables as assumptions
from reproduction.notebooks.assumptions.conclusions import conclusions
from reproduction.notebooks.beyond.pretrained import pretrained_layout
from reproduction.notebooks.beyond.tables import generated_layout, ranking_layout
from reproduction.notebooks.canaries import tables as canaries
from reproduction.notebooks.controlled import tables as controlled
from reproduction.notebooks.min_k.held_out_tables import held_out_layout
from reproduction.notebooks.min_k.tables import shares_and_p_values
from reproduction.notebooks.mmlu import tables as mmlu
from reproduction.notebooks.mmlu.lines import exclusions_layout, outcomes
from reproduction.notebooks.mmlu.released import released_layout, released_rows
from reproduction.notebooks.open_models import tables as open_models
from reproduction.notebooks.options.tables import axes_layout
from reproduction.notebooks.wikimia import tables as wikimia
from reproduction.output import published
from reproduction.run.null_calibration import pooled_null_calibration

REFERENCE = ROOT / "results" / "reference"
PUBLISHED = ROOT / "data" / "published"
LABELS = {"min_k_20": "Min-20%", "min_k_pp_20": "Min-20%++", "loss": "PPL", "zlib": "Zlib"}
METHODS = {"neighbour": "Neighbor", "zlib": "Zlib", "lowercase": "Lowercase", "loss": "PPL"}
METHODS |= {name: LABELS[name] for name in ("min_k_20", "min_k_pp_20")}
table = partial(read_csv, REFERENCE)
paper = partial(published.load_published, PUBLISHED)


def of_clean(name: str) -> pd.DataFrame:
    rows = table(f"assumptions_{name}")
    return rows[(rows["model"] == "clean") & (rows["status"] == "ok")]


def conclusions_of_fu() -> pd.DataFrame:
    within, cross = (table(f"assumptions_{name}") for name in ("within", "cross"))
    return conclusions(within, cross, model="clean", near=5.0)


def audited() -> pd.DataFrame:
    return table("open_models").astype(dict.fromkeys(open_models.COUNTS, "Int64"))


def exclusions() -> pd.DataFrame:
    lines = pd.read_csv(ROOT / "docs" / "measurements" / "mmlu_lines.csv")
    return exclusions_layout(lines, outcomes(lines, 0.05))


LAYOUTS: dict[str, Callable[[], pd.DataFrame]] = {
    "canaries": lambda: canaries.canary_layout(table("canaries"), "contaminated", 0.05),
    "canaries_clean": lambda: canaries.canary_layout(table("canaries"), "clean", 0.05),
    "canaries_redrawn": lambda: canaries.null_calibration_layout(
        pooled_null_calibration(table("canaries").astype({"redrawn_orders": "Int64"}))
    ),
    "canaries_published": lambda: published.published_layout(
        paper("oren2024_table1_canaries"),
        {name: f"{TESTS[test].label} p" for name, test in published.PRINTED.items()},
    ),
    "open_models": lambda: open_models.paper_layout(audited(), 0.05),
    "open_models_by_model": lambda: open_models.model_layout(audited(), 0.05),
    "open_models_published": lambda: published.published_layout(
        paper("oren2024_table2_open_models"),
        published.AUDITED | dict(reversed(published.CONTROLS.items())),
    ),
    "mmlu_fisher": lambda: mmlu.fisher_layout(table("mmlu_fisher")),
    "mmlu_table4": lambda: mmlu.table4_layout(table("mmlu_subsets").astype({"examples": "Int64"})),
    "mmlu_exclusions": exclusions,
    "wikimia": lambda: wikimia.table1_layout(table("wikimia"), 128),
    "wikimia_lengths": lambda: wikimia.lengths_layout(table("wikimia")),
    "wikimia_published": lambda: wikimia.published_layout(paper("shi2023_headline")),
    "min_k": lambda: shares_and_p_values(
        table("min_k"), table("canaries"), "contaminated", LABELS, 0.05
    ),
    "min_k_held_out": lambda: held_out_layout(table("min_k_held_out"), alpha=0.05),
    "assumptions_within": lambda: assumptions.within_layout(of_clean("within"), "pre-training"),
    "assumptions_tuned": lambda: assumptions.within_layout(of_clean("within"), "fine-tuning"),
    "assumptions_sizes": lambda: assumptions.sizes_layout(
        table("assumptions_within"), {"clean": 4_273_664, "clean-64": 478_592}
    ),
    "assumptions_perplexity": lambda: assumptions.perplexity_layout(of_clean("perplexity")),
    "assumptions_conclusions": conclusions_of_fu,
    "assumptions_published": lambda: assumptions.published_layout(
        paper("fu2025_table3"), paper("fu2025_within_domain_auc")
    ),
    "controlled_contamination": lambda: controlled.main_layout(
        table("controlled_contamination"), METHODS
    ),
    "controlled_rates": lambda: controlled.rate_layout(
        table("controlled_contamination"), "min_k_20"
    ),
    "mmlu_released": lambda: released_layout(
        released_rows(read_csv(REFERENCE / "pocket", "mmlu_subsets"))
    ),
    "generated": lambda: generated_layout(table("generated")),
    "power_ranking": lambda: ranking_layout(table("power_ranking")),
    "power_pretrained": lambda: pretrained_layout(
        pd.read_csv(ROOT / "docs" / "measurements" / "planted_means.csv")
    ),
    "controlled_published": lambda: controlled.published_layout(paper("shi2023_downstream")),
    "controlled_conclusions": lambda: controlled.conclusions(
        table("controlled_contamination"), table("controlled_trends"), score="min_k_20"
    ),
    "options": lambda: axes_layout(table("options"), alpha=0.05),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_numbers_of_the_reference_give_its_printed_tables(name: str) -> None:
    printed = (REFERENCE / "tables" / f"{name}.md").read_text(encoding="utf-8").splitlines()
    assert to_markdown(LAYOUTS[name]()).splitlines()[2:] == printed[2:]
