"""Every cell that the papers print, beside made-up tables of a run; differences by hand."""

import math
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from contamination.audit.battery import TESTS
from contamination.scoring.models import load_models
from contamination.testsets.registry import entries
from fakes.data_fixtures import ROOT
from reproduction.notebooks.assumptions import measure as passes
from reproduction.notebooks.assumptions import tables as assumptions
from reproduction.notebooks.checkpoints import tables as checkpoints
from reproduction.notebooks.mmlu import tables as mmlu
from reproduction.notebooks.open_models import tables as open_models
from reproduction.notebooks.papers import measure as papers
from reproduction.notebooks.papers.measure import COLUMNS, FU_METRICS, WIKIMIA_MODELS, plain
from reproduction.notebooks.wikimia import measure as benchmark
from reproduction.notebooks.wikimia import tables as wikimia_tables
from reproduction.output.published import STRICTER

PUBLISHED = ROOT / "data" / "published"
CELLS = papers.published_cells(PUBLISHED)
# What no released model can repeat: inputs, and experiments that train models or ask others.
LEFT_OUT = {"oren2024_table3_injected", "shi2023_downstream"}
MODELS_OF_OREN = ["llama2_7b", "mistral_7b", "pythia_1_4b", "gpt2_xl", "biomedlm"]
NUMBERS = {  # columns that hold a cell each
    "oren2024_table1_canaries": ["permutation_p", "sharded_p"],
    "oren2024_table2_open_models": MODELS_OF_OREN,
    "oren2024_table4_mmlu": MODELS_OF_OREN,
    "oren2024_table5_mink": ["mink_detected_percent"],
    "oren2024_text": ["value"],
    "shi2023_headline": ["value"],
    "fu2025_table3": ["auc_percent"],
    "fu2025_within_domain_auc": ["auc_percent"],
    "fu2025_cross_domain_auc": ["auc_percent"],
    "fu2025_perplexity": ["ppl_200_mean"],
}
CANARIES = "contam-1.4b-dupcount-higher"
WRITTEN = {  # columns of every table, by those who write it
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
AWAY = "not asked: profile made-up leaves out"
Row = dict[str, Any]


@pytest.fixture
def beside(tmp_path: Path):
    def compared(notebooks: tuple[str, ...] = (), **tables: list[Row]) -> pd.DataFrame:
        ran = set(notebooks) or {source.notebook for source in papers.SOURCES.values()}
        (tmp_path / "tables").mkdir(exist_ok=True)
        for name, columns in WRITTEN.items():
            table = pd.DataFrame(tables.get(name, []), columns=list(columns))
            table.to_csv(tmp_path / "tables" / f"{name}.csv", index=False)
        return papers.compare(CELLS, tmp_path, profile="made-up", notebooks=ran)

    return compared


def pick(rows: pd.DataFrame, **fields: str) -> Row:
    for name, value in fields.items():
        rows = rows[rows[name] == value]
    (row,) = rows.to_dict("records")
    return row


def outcome(p: float, **fields: Any) -> Row:
    row = {"examples": 1000, "shards": 50, "permutations": 51, "status": "ok"}
    return row | {"p": p, "log10_p": math.log10(p)} | fields


def test_each_published_number_is_one_cell() -> None:
    def values(name: str) -> list[float]:
        table = pd.read_csv(PUBLISHED / f"{name}.csv")
        if name == "shi2023_headline":  # its others are of notebook 09, which trains
            table = table[table["table"].isin(["Table 1", "Table 6"])]
        return [round(value, 9) for value in table[NUMBERS[name]].stack().dropna()]

    assert {path.stem for path in PUBLISHED.glob("*.csv")} == LEFT_OUT | set(NUMBERS)
    as_numbers = (10**c.published if c.unit == papers.LOG10_P else c.published for c in CELLS)
    printed = Counter(value for name in NUMBERS for value in values(name))
    assert Counter(round(value, 9) for value in as_numbers) == printed
    places = Counter((c.paper, c.table, c.model, c.row, c.column) for c in CELLS)
    assert set(places.values()) == {1} and len(CELLS) > 1500


def test_floors_are_those_of_the_paper() -> None:
    """0.009 is 1/101, cut off; elsewhere it is a p-value like others."""
    floors = [cell for cell in CELLS if cell.at_floor]
    first = [cell.column for cell in floors if cell.table == "Table 1"]
    assert Counter(first) == {"permutation": 7, "sharded_t": 5}
    others = [cell.published for cell in floors if cell.table != "Table 1"]
    assert others and others == pytest.approx([-38] * len(others))
    place = ("Table 4", "high_school_european_history", "LLaMA2-7B")
    (history,) = (cell for cell in CELLS if (cell.table, cell.row, cell.model) == place)
    assert history.published == pytest.approx(math.log10(0.009)) and not history.at_floor


def test_the_words_that_are_looked_up_are_those_of_the_other_experiments() -> None:
    """Experiments do not import each other, so that they could drift apart."""
    assert FU_METRICS.items() <= passes.LABELS.items()
    assert papers.READ_ONCE in passes.PHASES
    assert set(assumptions.SIDES.values()) == {c.wanted[1] for c in CELLS if c.unit == "perplexity"}
    assert set(papers.WIKIMIA_SCORES.values()) <= set(benchmark.SCORES)
    assert set(papers.WIKIMIA_VARIANTS.values()) == {benchmark.ORIGINAL, benchmark.PARAPHRASED}
    assert {c.wanted[2] for c in CELLS if c.source == "checkpoints"} <= set(TESTS)
    titles = {plain(entry.title) for entry in entries().values()}
    asked = {c.wanted[1] for c in CELLS if c.source in ("checkpoints", "open_models")}
    assert {plain(name) for name in asked} <= titles
    of_the_pile = {plain(c.row) for c in CELLS if c.source == "assumptions_cross"}
    assert of_the_pile == set(map(plain, passes.DOMAINS))
    assert {*WIKIMIA_MODELS, *papers.OUR_NAMES.values()} <= {
        *load_models(),
        papers.OUR_NAMES["Zephyr-7B-beta"],
    }


def test_every_published_cell_is_a_row_whatever_was_measured(beside) -> None:
    rows = beside()
    places = [(c.paper, c.table, c.model, c.row, c.column) for c in CELLS]
    assert list(rows[list(COLUMNS[:5])].itertuples(index=False, name=None)) == places
    assert rows["ours"].isna().all() and rows["difference"].isna().all()
    assert rows["status"].str.startswith(AWAY).all()
    row = pick(beside(("03_open_model_audit",)), table="Table 7", row="PPL_50", column="Github")
    told = "not asked: profile made-up does not run notebook 08_detection_assumptions"
    assert row["status"] == told


@pytest.mark.parametrize(
    ("title", "test", "p", "difference", "note"),
    [
        ("MNLI", "sharded_t", 1.96e-13, -2, ""),
        ("BoolQ", "permutation", 0.3, math.log10(0.3 / 0.099), ""),
        # A floor has no difference.
        ("PIQA", "permutation", 0.01, math.nan, "ours and published at the floor"),
        ("BoolQ", "permutation", 0.01, math.nan, "ours at the floor"),
        ("PIQA", "sharded_t", 1e-200, math.nan, "published at the floor"),
    ],
)
def test_p_values_differ_by_powers_of_ten(beside, title, test, p, difference, note) -> None:
    facts = {"model": CANARIES, "title": title, "test": test, "segmentation": "line"}
    facts |= {"permutations": 99, "shards": 1} if test == "permutation" else {}
    by_record = outcome(0.5, **facts) | {"segmentation": "record"}  # which is another reading
    rows = beside(checkpoints=[outcome(p, **facts), by_record])
    row = pick(rows, table="Table 1", row=title, column=test)
    assert (row["unit"], row["status"], row["note"]) == ("log10 p", "ok", note)
    assert row["ours"] == pytest.approx(math.log10(p))
    assert row["difference"] == pytest.approx(difference, nan_ok=True)


def test_settings_that_differ_and_cells_that_failed_are_told(beside) -> None:
    facts = {"model": "llama2-7b", "dataset": "boolq", "test": "sharded_t"}
    rows = beside(open_models=[outcome(0.0421, **facts) | {"examples": 500, "permutations": 5}])
    row = pick(rows, table="Table 2", row="BoolQ", model="LLaMA2-7B")
    assert row["difference"] == pytest.approx(-1)
    assert row["note"] == "5 permutations, published 250; 500 examples, published 3,270"
    why = "failed: meta-llama/Llama-2-7b-hf: the model is gated"
    rows = beside(open_models=[facts | {"status": why}])
    for model, row, status in [
        ("LLaMA2-7B", "BoolQ", why),
        ("LLaMA2-7B", "PIQA", f"{AWAY} PIQA"),
        ("Mistral-7B", "PIQA", f"{AWAY} Mistral-7B"),
    ]:
        assert pick(rows, table="Table 2", row=row, model=model)["status"] == status


def test_mmlu_by_subset_and_combined(beside) -> None:
    facts = {"model": "mistral-7b", "source": "measured", "test": "sharded_t"}
    done = [
        outcome(0.0246, subset="abstract_algebra", excluded=False, **facts) | {"shards": 25},
        outcome(0.5, subset="anatomy", excluded=True, **facts),
        outcome(0.5, subset="virology", excluded=False, **facts) | {"status": "failed: no room"},
        outcome(0.9, subset="astronomy", excluded=False, **facts) | {"source": "published"},
    ]
    done += [row | {"source": STRICTER, "excluded": True} for row in done[:2]]
    combined = [outcome(0.11, **facts) | {"subsets_kept": 1}]
    combined.append(outcome(0.4, **facts) | {"subsets_kept": 1, "source": STRICTER})
    combined.append(combined[0] | {"model": "llama2-7b", "status": "failed: no control"})
    rows = beside(mmlu_subsets=done, mmlu_fisher=combined)
    mistral = rows[rows["model"] == "Mistral-7B"]
    algebra = pick(mistral, row="abstract_algebra")
    assert algebra["difference"] == pytest.approx(-1)
    assert algebra["note"].startswith("25 shards, published 50; 51 permutations, published 1,000")
    assert pick(mistral, row="virology")["status"] == "failed: no room"
    assert pick(mistral, row="astronomy")["status"].startswith("not asked")
    fisher = pick(mistral, row="MMLU (Fisher)")
    assert fisher["difference"] == pytest.approx(1)
    assert fisher["note"] == "1 subsets kept; p = 0.4 with a compressor as a control"
    assert pick(rows, row="MMLU (Fisher)", model="LLaMA2-7B")["status"] == "failed: no control"
    dropped = pick(rows, row="mmlu subsets dropped")
    assert (dropped["ours"], dropped["difference"]) == (1, 1 - 14)
    assert dropped["note"] == "of 2 subsets; 2 with a compressor as a control"


def wikimia(model: str, auc: float, **fields: Any) -> Row:
    row = {"model": model, "source": "wikimia", "variant": "original", "length": 32}
    return row | {"score": "loss", "auc": auc, "tpr_at_5_fpr": 0.2, "status": "ok"} | fields


def test_wikimia_is_the_mean_over_lengths_and_the_average_needs_all_columns(beside) -> None:
    done = [wikimia("gpt-neox-20b", 0.6), wikimia("gpt-neox-20b", 0.7, length=64)]
    rows = beside(wikimia=[*done, wikimia("gpt-neox-20b", 0.9, source="read here")])
    row = pick(rows, model="NeoX-20B", row="PPL", column="original")
    assert row["difference"] == pytest.approx(0.65 - 0.70)
    assert row["note"] == "mean over 32, 64 words"
    average = {"table": "Table 1", "model": "average", "row": "PPL"}
    few = "not asked: 1 of the 10 columns of Table 1 were measured, and this is their average"
    assert pick(rows, **average)["status"] == few
    every = [
        wikimia(model, 0.5 + 0.02 * i, variant=variant)
        for i, model in enumerate(WIKIMIA_MODELS)
        for variant in ("original", "paraphrased")
    ]
    rows = beside(wikimia=every)
    assert pick(rows, **average)["difference"] == pytest.approx(0.54 - 0.67)
    rate = pick(rows, **average | {"table": "Table 6"})
    assert rate["difference"] == pytest.approx(20 - 19.3)
    why = "not run here: no network"
    for model in (None, "gpt-neox-20b"):  # a part that cannot be had, and a model
        lost = {"model": model, "source": "wikimia", "variant": "original", "length": 32}
        rows = beside(wikimia=[lost | {"status": why}])
        assert pick(rows, model="NeoX-20B", row="PPL", column="original")["status"] == why
        assert pick(rows, table="Table 6", row="PPL")["status"] == why
        other = pick(rows, model="NeoX-20B", row="PPL", column="paraphrase")["status"]
        assert other.startswith("not asked")


def test_fu_within_and_across_domains_in_every_table_that_prints_it(beside) -> None:
    pythia = {"model": "pythia-6.9b", "phase": "pre-training", "status": "ok", "domain": "ArXiv"}
    within = [pythia | {"metric": m, "auc_percent": 50.0 + i} for i, m in enumerate(FU_METRICS)]
    within.append(within[0] | {"phase": "fine-tuning", "auc_percent": 99.0})
    cross = {"seen_domain": "github", "unseen_domain": "free_law", "metric": "min_prob_25"}
    perplexity = pythia | {"side": "non_member", "perplexity": 9.0}
    rows = beside(
        assumptions_within=within,
        assumptions_cross=[pythia | cross | {"auc_percent": 80.0}],
        assumptions_perplexity=[perplexity, perplexity | {"phase": "fine-tuning", "perplexity": 2}],
    )
    found = rows[(rows["row"] == "PPL_50") & (rows["column"] == "ArXiv")].set_index("table")
    measured = found[found["status"] == "ok"]
    assert list(measured.index) == ["Table 3", "Table 12"]
    assert (measured["ours"] == 50).all()
    assert measured.loc["Table 3", "difference"] == pytest.approx(50 - 50.7)
    averages = rows[rows["row"] == "Average AUC"]
    assert len(averages) == 7 + 81 and averages["ours"].isna().all()  # of 19 scores
    assert found.loc["Table 7", "status"] == f"{AWAY} pythia-70m"
    video = pick(rows, table="Table 3", row="PPL_50", column="YoutubeSubtitles")
    assert video["status"] == f"{AWAY} YoutubeSubtitles"
    row = pick(rows, table="Figure 18", row="Github", column="FreeLaw")
    assert row["difference"] == pytest.approx(80 - 77.1)
    found = rows[(rows["unit"] == "perplexity") & (rows["status"] == "ok")]
    assert list(found["table"]) == ["Table 3", "Table 12"]
    assert (found["row"] == "PPL_200, non-members").all()
    assert (found["ours"] == 9.0).all()
    why = "failed: 13.9 GB are missing of it, and the disk has 2 GB left"
    tables = ("assumptions_within", "assumptions_cross", "assumptions_perplexity")
    rows = beside(**{key: [{"model": "pythia-6.9b", "status": why}] for key in tables})
    of_it = rows[rows["model"].str.lower() == "pythia-6.9b"]
    assert set(of_it["table"]) == {"Table 3", "Table 12", "Figure 18"}
    assert set(of_it["status"]) == {why}
