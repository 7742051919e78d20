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
    passes : which models of a run these passes read: "stores" (the two models, after their canary
        sets are scored), "both", "all" (with the further sizes), "clean", or "" if there are none.
        In a profile that trains nothing they read released models.
    needs : the parameter of the notebook without which it makes no passes over trained models.
    reads : further files, from the root of the repository, or other notebooks by name.
    tables, figures : what it writes, by file name and by stem.
    released : whether it belongs to profiles that train nothing.
    """

    package: str
    passes: str = ""
    needs: str = ""
    reads: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    released: bool = False

    @property
    def outputs(self) -> list[str]:
        """The files that it writes, below the directory of the results."""
        figures = [f"figures/{stem}.{kind}" for stem in self.figures for kind in ("svg", "png")]
        return [f"tables/{name}" for name in self.tables] + figures


def _files(stem: str, csv: str = "", md: str = "") -> tuple[str, ...]:
    """Name tables by the endings of their stems, which follow `stem_`; "." is the stem itself."""
    return tuple(
        f"{stem}.{kind}" if end == "." else f"{stem}_{end}.{kind}"
        for kind, ends in (("csv", csv), ("md", md))
        for end in ends.split()
    )


PAPERS = (
    ". summary reasons oren_section_4_3 "
    "oren_table_1 oren_table_2 oren_table_4 oren_table_5 shi_table_1 shi_table_6 "
    "fu_table_3 fu_table_7 fu_table_8 fu_table_9 fu_table_10 fu_table_11 fu_table_12 fu_table_13 "
    "fu_table_14 fu_table_15 fu_figure_18"
).removeprefix(". ")

NOTEBOOKS = {
    "00_start_here": Notebook(
        package="start",
        reads=("data/stores/stores.json", "docs/measurements/mmlu_lines.csv"),
        tables=("start.csv",),
        figures=("start_orderings", "start_sets", "start_gains"),
    ),
    "01_canary_eval": Notebook(
        package="canaries",
        reads=("stores",),
        tables=("duplication_power.csv", *_files("canaries", ".", ". clean redrawn published")),
        figures=("duplication_power",),
    ),
    "02_shard_permutation_ablation": Notebook(
        package="ablation",
        passes="stores",
        tables=("shard_ablation.csv", "permutation_ablation.csv"),
        figures=("shard_ablation", "permutation_ablation"),
    ),
    "03_open_model_audit": Notebook(
        package="open_models",
        passes="stores",
        tables=_files("open_models", ".", ". by_model published"),
        figures=("open_models",),
    ),
    "04_mmlu_fisher": Notebook(
        package="mmlu",
        passes="all",
        needs="measured",
        reads=("docs/measurements/mmlu_lines.csv",),
        tables=_files("mmlu", "subsets fisher lines exclusions", "fisher table4 exclusions"),
        figures=("mmlu_ecdf",),
    ),
    "05_beyond_the_paper": Notebook(
        package="beyond",
        passes="stores",
        reads=("docs/measurements/power.csv",),
        tables=(
            *_files("power", "replicates per_token ranking", "ranking study"),
            "calibration.csv",
            *_files("failures", ".", "."),
        ),
        figures=("power_per_token", "calibration"),
    ),
    "06_wikimia": Notebook(
        package="wikimia",
        passes="all",
        tables=_files("wikimia", ". blind", ". lengths blind published"),
        figures=("wikimia",),
    ),
    "07_min_k_baseline": Notebook(
        package="min_k",
        passes="both",
        reads=("01_canary_eval",),
        tables=_files("min_k", ".", ". clean published"),
        figures=("min_k",),
    ),
    "08_detection_assumptions": Notebook(
        package="assumptions",
        passes="all",
        tables=_files(
            "assumptions",
            "within cross blind perplexity",
            "within blind tuned sizes published conclusions perplexity",
        ),
        figures=(
            "assumptions_cross",
            "assumptions_density",
            "assumptions_density_min_prob_25",
            "assumptions_density_mem_25",
            "assumptions_density_entropy_25",
        ),
    ),
    "09_controlled_contamination": Notebook(
        package="controlled",
        passes="clean",
        tables=_files(
            "controlled", "contamination trends", "contamination rates published conclusions"
        ),
        figures=("controlled_contamination",),
    ),
    "10_book_audit": Notebook(
        package="books",
        passes="clean",
        tables=_files("books", ". validation", ". validation published"),
        figures=("books",),
    ),
    "11_unlearning_audit": Notebook(
        package="unlearning",
        passes="both",
        tables=_files("unlearning", ". detection", ". detection truth"),
        figures=("unlearning",),
    ),
    "12_released_checkpoints": Notebook(
        package="checkpoints",
        passes="released",
        reads=("data/registry.yaml",),
        tables=_files("checkpoints", ". shards permutations min_k", ". min_k"),
        figures=("checkpoints_power", "checkpoints_shards", "checkpoints_permutations"),
        released=True,
    ),
    "13_beside_the_papers": Notebook(
        package="papers",
        reads=("notebooks",),
        tables=_files("papers", ".", PAPERS),
        figures=("papers",),
        released=True,
    ),
    "14_option_order": Notebook(
        package="options",
        passes="clean",
        tables=_files("options", ".", "."),
        figures=("options",),
    ),
}


def notebook_of(source: Path) -> Notebook:
    """Return the row of a notebook. Raises InputError for a file that has none."""
    if not source.is_file():
        raise InputError(f"{source}: no such notebook")
    if source.stem not in NOTEBOOKS:
        raise InputError(f"{source}: not in the table; add it to reproduction.notebooks.table")
    return NOTEBOOKS[source.stem]
