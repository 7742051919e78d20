"""The table of notebooks: what each is made of, what it reads and what it writes.

The Makefile gets its rules from here (`reproduction.stages.rules`), and the stage `measure` its
package. A new notebook is a new row.
"""

from dataclasses import dataclass
from pathlib import Path

from contamination.errors import InputError


@dataclass(frozen=True)
class Notebook:
    """One notebook.

    Attributes
    ----------
    package : of `reproduction.notebooks`; the passes over models are its `measure.measure`.
    tables, figures : what it writes, by file name and by stem.
    passes : which models of a run these passes read: "stores" (the two models, after their canary
        sets are scored), "both", "all" (with the further sizes), "clean", or "" if there are none.
        In a profile that trains nothing they read released models.
    needs : the parameter of the notebook without which it makes no passes over trained models.
    reads : further files, from the root of the repository, or other notebooks by name.
    released : whether it belongs to profiles that train nothing.
    """

    package: str
    tables: str
    figures: str
    passes: str = ""
    needs: str = ""
    reads: tuple[str, ...] = ()
    released: bool = False

    @property
    def outputs(self) -> list[str]:
        """The files that it writes, below the directory of the results."""
        figures = [f"figures/{stem}.{kind}" for stem in self.figures.split() for kind in KINDS]
        return [f"tables/{name}" for name in self.tables.split()] + figures


KINDS = ("svg", "png")
NOTEBOOKS = {
    "00_start_here": Notebook(
        "start",
        "start.csv",
        "start_orderings start_sets start_gains",
        reads=("data/stores/stores.json", "docs/measurements/mmlu_lines.csv"),
    ),
    "01_canary_eval": Notebook(
        "canaries",
        "canaries.csv duplication_power.csv canaries.md canaries_clean.md canaries_redrawn.md "
        "canaries_published.md",
        "duplication_power",
        reads=("stores",),
    ),
    "02_shard_permutation_ablation": Notebook(
        "ablation",
        "shard_ablation.csv permutation_ablation.csv",
        "shard_ablation permutation_ablation",
        passes="stores",
    ),
    "03_open_model_audit": Notebook(
        "open_models",
        "open_models.csv open_models.md open_models_by_model.md open_models_published.md",
        "open_models",
        passes="stores",
    ),
    "04_mmlu_fisher": Notebook(
        "mmlu",
        "mmlu_subsets.csv mmlu_fisher.csv mmlu_lines.csv mmlu_exclusions.csv mmlu_fisher.md "
        "mmlu_table4.md mmlu_exclusions.md",
        "mmlu_ecdf",
        passes="all",
        needs="measured",
        reads=("docs/measurements/mmlu_lines.csv",),
    ),
    "05_beyond_the_paper": Notebook(
        "beyond",
        "power_replicates.csv power_per_token.csv power_ranking.csv calibration.csv failures.csv "
        "power_ranking.md power_study.md failures.md",
        "power_per_token calibration",
        passes="stores",
        reads=("docs/measurements/power.csv",),
    ),
    "06_wikimia": Notebook(
        "wikimia",
        "wikimia.csv wikimia_blind.csv wikimia.md wikimia_lengths.md wikimia_blind.md "
        "wikimia_published.md",
        "wikimia",
        passes="all",
    ),
    "07_min_k_baseline": Notebook(
        "min_k",
        "min_k.csv min_k.md min_k_clean.md min_k_published.md",
        "min_k",
        passes="both",
        reads=("01_canary_eval",),
    ),
    "08_detection_assumptions": Notebook(
        "assumptions",
        "assumptions_within.csv assumptions_cross.csv assumptions_blind.csv "
        "assumptions_perplexity.csv assumptions_within.md assumptions_blind.md "
        "assumptions_tuned.md assumptions_sizes.md assumptions_published.md "
        "assumptions_conclusions.md assumptions_perplexity.md",
        "assumptions_cross assumptions_density assumptions_density_min_prob_25 "
        "assumptions_density_mem_25 assumptions_density_entropy_25",
        passes="all",
    ),
    "09_controlled_contamination": Notebook(
        "controlled",
        "controlled_contamination.csv controlled_trends.csv controlled_contamination.md "
        "controlled_rates.md controlled_published.md controlled_conclusions.md",
        "controlled_contamination",
        passes="clean",
    ),
    "10_book_audit": Notebook(
        "books",
        "books.csv books_validation.csv books.md books_validation.md books_published.md",
        "books",
        passes="clean",
    ),
    "11_unlearning_audit": Notebook(
        "unlearning",
        "unlearning.csv unlearning_detection.csv unlearning.md unlearning_detection.md "
        "unlearning_truth.md",
        "unlearning",
        passes="both",
    ),
    "12_released_checkpoints": Notebook(
        "checkpoints",
        "checkpoints.csv checkpoints_shards.csv checkpoints_permutations.csv "
        "checkpoints_min_k.csv checkpoints.md checkpoints_min_k.md",
        "checkpoints_power checkpoints_shards checkpoints_permutations",
        passes="released",
        reads=("data/registry.yaml",),
        released=True,
    ),
    "13_beside_the_papers": Notebook(
        "papers",
        "papers.csv papers_summary.md papers_reasons.md papers_oren_section_4_3.md "
        "papers_oren_table_1.md papers_oren_table_2.md papers_oren_table_4.md "
        "papers_oren_table_5.md papers_shi_table_1.md papers_shi_table_6.md "
        "papers_fu_table_3.md papers_fu_table_7.md papers_fu_table_8.md papers_fu_table_9.md "
        "papers_fu_table_10.md papers_fu_table_11.md papers_fu_table_12.md "
        "papers_fu_table_13.md papers_fu_table_14.md papers_fu_table_15.md "
        "papers_fu_figure_18.md",
        "papers",
        reads=("notebooks",),
        released=True,
    ),
    "14_option_order": Notebook("options", "options.csv options.md", "options", passes="clean"),
}


def notebook_of(source: Path) -> Notebook:
    """Return the row of a notebook. Raises InputError for a file that has none."""
    if not source.is_file():
        raise InputError(f"{source}: no such notebook")
    if source.stem not in NOTEBOOKS:
        raise InputError(f"{source}: not in the table; add it to reproduction.notebooks.table")
    return NOTEBOOKS[source.stem]
