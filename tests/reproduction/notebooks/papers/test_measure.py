"""Published cells beside made-up tables of a run, with differences computed by hand."""

import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from contamination.audit.battery import TESTS
from contamination.testsets.registry import entries
from fakes.data_fixtures import ROOT
from reproduction.notebooks.assumptions import measure as assumptions_measure
from reproduction.notebooks.assumptions import tables as assumptions
from reproduction.notebooks.checkpoints import tables as checkpoints
from reproduction.notebooks.mmlu import tables as mmlu
from reproduction.notebooks.open_models import tables as open_models
from reproduction.notebooks.papers.measure import (
    COLUMNS,
    FU_METRICS,
    READ_ONCE,
    SOURCES,
    WIKIMIA_MODELS,
    WIKIMIA_SCORES,
    WIKIMIA_VARIANTS,
    compare,
    measured_cells,
    our_name,
    plain,
    published_cells,
)
from reproduction.notebooks.wikimia import benchmark
from reproduction.notebooks.wikimia import tables as wikimia_tables

CELLS = published_cells(ROOT / "data" / "published")
CANARIES = "contam-1.4b-dupcount-higher"
NAMES = {  # of every table, so that a reader finds its columns in an empty one, too
    "checkpoints": "model dataset title examples test shards permutations p log10_p status",
    "checkpoints_min_k": "model title examples spans rate_percent status",
    "open_models": "model dataset examples test shards permutations p log10_p status",
    "mmlu_subsets": "model source test subset examples p log10_p excluded status",
    "mmlu_fisher": "model source test subsets_kept p log10_p status",
    "wikimia": "model source variant length score auc tpr_at_5_fpr status",
    "assumptions_within": "model phase domain metric members non_members auc_percent status",
    "assumptions_cross": (
        "model phase seen_domain unseen_domain metric members non_members auc_percent status"
    ),
    "assumptions_perplexity": "model phase domain side perplexity status",
}
Row = dict[str, Any]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return tmp_path


def beside(
    results: Path, notebooks: tuple[str, ...] | None = None, **tables: list[Row]
) -> pd.DataFrame:
    """Compare with a run that has these rows; other tables of its notebooks are empty."""
    ran = {source.notebook for source in SOURCES.values()} if notebooks is None else set(notebooks)
    (results / "tables").mkdir(exist_ok=True)
    for name, columns in NAMES.items():
        table = pd.DataFrame(tables.get(name, []), columns=columns.split())
        table.to_csv(results / "tables" / f"{name}.csv", index=False)
    measured = measured_cells(results, ran)
    return compare(CELLS, measured, profile="made-up", notebooks=ran)


def pick(rows: pd.DataFrame, **fields: str) -> Row:
    for name, value in fields.items():
        rows = rows[rows[name] == value]
    (row,) = rows.to_dict("records")
    return row


def outcome(p: float, **fields: Any) -> Row:
    row = {"examples": 1000, "shards": 50, "permutations": 51, "status": "ok"}
    return row | {"p": p, "log10_p": math.log10(p)} | fields


def test_every_published_cell_is_a_row_whatever_was_measured(results: Path) -> None:
    rows = beside(results)
    assert list(rows) == list(COLUMNS)
    places = [(c.paper, c.table, c.model, c.row, c.column) for c in CELLS]
    assert list(rows[list(COLUMNS[:5])].itertuples(index=False, name=None)) == places
    assert rows["ours"].isna().all() and rows["difference"].isna().all()
    assert rows["status"].str.startswith("not asked: profile made-up leaves out ").all()


def test_a_notebook_that_the_profile_leaves_out(results: Path) -> None:
    rows = beside(results, ("03_open_model_audit",))
    row = pick(rows, table="Table 7", row="PPL_50", column="Github")
    told = "not asked: profile made-up does not run notebook 08_detection_assumptions"
    assert row["status"] == told


def test_p_values_differ_by_powers_of_ten(results: Path) -> None:
    ours = {"model": CANARIES, "dataset": "canaries/mnli", "title": "MNLI"}
    sharded = outcome(1.96e-13, test="sharded_t", **ours)
    planted = outcome(0.3, test="permutation", model=CANARIES, title="BoolQ")
    rows = beside(results, checkpoints=[sharded, planted | {"shards": 1, "permutations": 99}])
    row = pick(rows, table="Table 1", row="MNLI", column="sharded_t")
    assert row["difference"] == pytest.approx(-2)
    assert (row["unit"], row["status"], row["note"]) == ("log10 p", "ok", "")
    row = pick(rows, table="Table 1", row="BoolQ", column="permutation")
    assert row["difference"] == pytest.approx(math.log10(0.3 / 0.099))


@pytest.mark.parametrize(
    ("title", "test", "p", "note"),
    [
        ("PIQA", "permutation", 0.01, "ours and published at the floor"),
        ("PIQA", "permutation", 0.02, "published at the floor"),
        ("BoolQ", "permutation", 0.01, "ours at the floor"),
        ("PIQA", "sharded_t", 1e-200, "published at the floor"),
    ],
)
def test_a_floor_has_no_difference(
    results: Path, title: str, test: str, p: float, note: str
) -> None:
    facts = {"model": CANARIES, "title": title, "test": test}
    facts |= {"permutations": 99, "shards": 1} if test == "permutation" else {}
    row = pick(
        beside(results, checkpoints=[outcome(p, **facts)]), table="Table 1", row=title, column=test
    )
    assert (row["status"], row["note"]) == ("ok", note)
    assert row["ours"] == pytest.approx(math.log10(p)) and math.isnan(row["difference"])


def test_settings_that_differ_are_told(results: Path) -> None:
    facts = {"model": "llama2-7b", "dataset": "boolq", "test": "sharded_t"}
    row = outcome(0.0421, **facts) | {"examples": 500, "permutations": 5}
    rows = beside(results, open_models=[row])
    row = pick(rows, table="Table 2", row="BoolQ", model="LLaMA2-7B")
    assert row["difference"] == pytest.approx(-1)
    assert row["note"] == "5 permutations, published 250; 500 examples, published 3,270"


def test_a_cell_that_failed_says_why(results: Path) -> None:
    why = "failed: meta-llama/Llama-2-7b-hf: the model is gated"
    row = {"model": "llama2-7b", "dataset": "boolq", "test": "sharded_t", "status": why}
    rows = beside(results, open_models=[row])
    assert pick(rows, table="Table 2", row="BoolQ", model="LLaMA2-7B")["status"] == why
    other = pick(rows, table="Table 2", row="PIQA", model="LLaMA2-7B")
    assert other["status"] == "not asked: profile made-up leaves out PIQA"
    unknown = pick(rows, table="Table 2", row="PIQA", model="Mistral-7B")
    assert unknown["status"] == "not asked: profile made-up leaves out Mistral-7B"


def test_mmlu_by_subset_and_combined(results: Path) -> None:
    facts = {"model": "mistral-7b", "source": "measured", "test": "sharded_t"}
    done = [
        outcome(0.0246, subset="abstract_algebra", excluded=False, **facts),
        outcome(0.5, subset="anatomy", excluded=True, **facts),
        outcome(0.5, subset="virology", excluded=False, **facts) | {"status": "failed: no room"},
        outcome(0.9, subset="astronomy", excluded=False, **facts) | {"source": "published"},
    ]
    combined = [outcome(0.11, **facts) | {"subsets_kept": 1}]
    combined.append(combined[0] | {"model": "llama2-7b", "status": "failed: no control"})
    rows = beside(results, mmlu_subsets=done, mmlu_fisher=combined)
    mistral = rows[rows["model"] == "Mistral-7B"]
    assert pick(mistral, row="abstract_algebra")["difference"] == pytest.approx(-1)
    assert pick(mistral, row="virology")["status"] == "failed: no room"
    assert pick(mistral, row="astronomy")["status"].startswith("not asked")
    fisher = pick(mistral, row="MMLU (Fisher)")
    assert fisher["difference"] == pytest.approx(1)
    assert fisher["note"] == "1 subsets kept"
    assert pick(rows, row="MMLU (Fisher)", model="LLaMA2-7B")["status"] == "failed: no control"
    dropped = pick(rows, row="mmlu subsets dropped")
    assert (dropped["ours"], dropped["difference"]) == (1, 1 - 14)
    assert dropped["note"] == "of 2 subsets"


def wikimia(model: str, auc: float, **fields: Any) -> Row:
    row = {"model": our_name(model), "source": "wikimia", "variant": "original", "length": 32}
    return row | {"score": "loss", "auc": auc, "tpr_at_5_fpr": 0.2, "status": "ok"} | fields


def test_wikimia_is_the_mean_over_lengths(results: Path) -> None:
    done = [wikimia("NeoX-20B", 0.6), wikimia("NeoX-20B", 0.7, length=64)]
    there = wikimia("NeoX-20B", 0.9, source="read here")
    rows = beside(results, wikimia=[*done, there])
    row = pick(rows, model="NeoX-20B", row="PPL", column="original")
    assert row["difference"] == pytest.approx(0.65 - 0.70)
    assert row["note"] == "mean over 32, 64 words"
    average = pick(rows, table="Table 1", model="average", row="PPL")
    assert average["status"] == (
        "not asked: 1 of the 10 columns of Table 1 were measured, and this is their average"
    )


def test_the_average_of_wikimia_needs_all_columns(results: Path) -> None:
    done = [
        wikimia(model, 0.5 + 0.02 * i, variant=variant)
        for i, model in enumerate(WIKIMIA_MODELS)
        for variant in ("original", "paraphrased")
    ]
    rows = beside(results, wikimia=done)
    average = pick(rows, table="Table 1", model="average", row="PPL")
    assert average["difference"] == pytest.approx(0.54 - 0.67)
    rate = pick(rows, table="Table 6", model="average", row="PPL")
    assert rate["difference"] == pytest.approx(20 - 19.3)


@pytest.mark.parametrize("model", [None, "NeoX-20B"])
def test_a_part_or_a_model_of_wikimia_that_cannot_be_had(results: Path, model: str | None) -> None:
    why = "not run here: no network"
    lost = {"model": model and our_name(model), "source": "wikimia", "variant": "original"}
    rows = beside(results, wikimia=[lost | {"length": 32, "status": why}])
    assert pick(rows, model="NeoX-20B", row="PPL", column="original")["status"] == why
    assert pick(rows, table="Table 6", row="PPL")["status"] == why
    other = pick(rows, model="NeoX-20B", row="PPL", column="paraphrase")["status"]
    assert other.startswith("not asked")


def within(metric: str, auc: float, **fields: Any) -> Row:
    row = {"model": our_name("pythia-6.9b"), "phase": "pre-training", "domain": "arxiv"}
    row |= {"metric": metric, "members": 1000, "non_members": 1000, "status": "ok"}
    return row | {"auc_percent": auc} | fields


def test_fu_within_a_domain_in_both_tables_that_print_it(results: Path) -> None:
    done = [within(metric, 50.0 + i) for i, metric in enumerate(FU_METRICS)]
    later = within("ppl_50", 99.0, phase="fine-tuning")
    rows = beside(results, assumptions_within=[*done, later])
    found = rows[(rows["row"] == "PPL_50") & (rows["column"] == "ArXiv")].set_index("table")
    measured = found[found["status"] == "ok"]
    assert list(measured.index) == ["Table 3", "Table 12"]
    assert (measured["ours"] == 50).all()
    assert measured.loc["Table 3", "difference"] == pytest.approx(50 - 50.7)
    average = pick(rows, row="Average AUC", column="ArXiv")
    assert average["difference"] == pytest.approx(55.5 - 51.8)
    assert found.loc["Table 7", "status"] == "not asked: profile made-up leaves out pythia-70m"
    video = pick(rows, table="Table 3", row="PPL_50", column="YoutubeSubtitles")
    assert video["status"] == "not asked: profile made-up leaves out YoutubeSubtitles"


def test_a_model_of_fu_that_cannot_be_had(results: Path) -> None:
    why = "failed: 13.9 GB are missing of it, and the disk has 2 GB left"
    lost = [{"model": our_name("pythia-6.9b"), "status": why}]
    rows = beside(
        results, assumptions_within=lost, assumptions_cross=lost, assumptions_perplexity=lost
    )
    of_it = rows[rows["model"].str.lower() == "pythia-6.9b"]
    assert set(of_it["table"]) == {"Table 3", "Table 12", "Figure 18"}
    assert set(of_it["status"]) == {why}


def test_fu_across_domains_and_perplexities(results: Path) -> None:
    cross = within("min_prob_25", 80.0) | {"seen_domain": "github", "unseen_domain": "free_law"}
    perplexity = {"model": our_name("Pythia-6.9B"), "phase": "pre-training", "domain": "ArXiv"}
    perplexity |= {"side": "non_member", "perplexity": 9.0, "status": "ok"}
    later = perplexity | {"phase": "fine-tuning", "perplexity": 2.0}
    rows = beside(results, assumptions_cross=[cross], assumptions_perplexity=[perplexity, later])
    row = pick(rows, table="Figure 18", row="Github", column="FreeLaw")
    assert row["difference"] == pytest.approx(80 - 77.1)
    found = rows[(rows["unit"] == "perplexity") & (rows["status"] == "ok")]
    assert list(found["table"]) == ["Table 3", "Table 12"]
    assert (found["row"] == "PPL_200, non-members").all()
    assert (found["ours"] == 9.0).all()


# --- what the other notebooks write ---------------------------------------------------------------

WRITTEN = {
    "checkpoints": checkpoints.COLUMNS,
    "checkpoints_min_k": checkpoints.RATES,
    "open_models": open_models.COLUMNS,
    "mmlu_subsets": mmlu.SUBSET_COLUMNS,
    "mmlu_fisher": mmlu.FISHER_COLUMNS,
    "wikimia": wikimia_tables.FIELDS,
    "assumptions_within": assumptions.WITHIN_COLUMNS,
    "assumptions_cross": assumptions.CROSS_COLUMNS,
    "assumptions_perplexity": assumptions.PERPLEXITY_COLUMNS,
}


def test_the_words_that_are_looked_up_are_those_of_the_other_experiments() -> None:
    """Experiments do not import each other, so that they could drift apart."""
    assert all(set(NAMES[name].split()) <= set(WRITTEN[name]) for name in NAMES)
    assert FU_METRICS.items() <= assumptions_measure.LABELS.items()
    assert READ_ONCE in assumptions_measure.PHASES
    assert set(assumptions.SIDES.values()) == {c.wanted[1] for c in CELLS if c.unit == "perplexity"}
    assert set(WIKIMIA_SCORES.values()) <= set(benchmark.SCORES)
    assert set(WIKIMIA_VARIANTS.values()) == {benchmark.ORIGINAL, benchmark.PARAPHRASED}
    assert {c.wanted[2] for c in CELLS if c.source == "checkpoints"} <= set(TESTS)
    titles = {plain(entry.title) for entry in entries().values()}
    asked = {c.wanted[1] for c in CELLS if c.source in ("checkpoints", "open_models")}
    assert {plain(name) for name in asked} <= titles
    of_the_pile = {plain(c.row) for c in CELLS if c.source == "assumptions_cross"}
    assert of_the_pile == set(map(plain, assumptions_measure.DOMAINS))
