"""The paper's p-values beside ours, in the layout of its Table 2."""

import math

import pandas as pd
import pytest

from contamination.audit.published import published_p
from contamination.experiments.open_models.tables import paper_layout
from contamination.results.published import AUDITED, CONTROLS, load_published
from contamination.scoring.models import ModelEntry, load_models
from contamination.testsets.registry import registered
from fakes.data_fixtures import ROOT

PUBLISHED = ROOT / "data" / "published"
COLUMNS = {**AUDITED, **CONTROLS}
BY_COLUMN = {entry.published: entry for entry in load_models().values() if entry.published}


def test_every_value_of_table_2_is_found_once() -> None:
    table = load_published(PUBLISHED, "oren2024_table2_open_models")
    printed = table[table["dataset"] != "MMLU (Fisher)"]
    others = [name for name in registered() if not name.startswith(("canaries/", "mmlu/"))]
    for column in COLUMNS:
        found = [published_p(BY_COLUMN[column], name, PUBLISHED) for name in others]
        assert sorted(p for p in found if not math.isnan(p)) == sorted(printed[column])


def test_every_subset_of_table_4_is_found() -> None:
    table = load_published(PUBLISHED, "oren2024_table4_mmlu").set_index("subset")
    for column in COLUMNS:
        for subset, p in table[column].items():
            assert published_p(BY_COLUMN[column], f"mmlu/{subset}", PUBLISHED) == p
    assert math.isnan(published_p(BY_COLUMN["biomedlm"], "mmlu/professional_law", PUBLISHED))


def test_every_canary_set_of_table_1_is_found_for_its_model_alone() -> None:
    table = load_published(PUBLISHED, "oren2024_table1_canaries")
    names = registered("canaries/")
    found = [published_p(BY_COLUMN["sharded_p"], name, PUBLISHED) for name in names]
    assert sorted(found) == sorted(table["sharded_p"])
    assert math.isnan(published_p(BY_COLUMN["sharded_p"], "boolq", PUBLISHED))
    assert math.isnan(published_p(BY_COLUMN["gpt2_xl"], "canaries/boolq", PUBLISHED))


@pytest.mark.parametrize(
    ("model", "dataset", "p"),
    [
        ("mistral-7b", "arc_easy", 0.001),
        ("biomedlm", "nq_open", 0.595),
        ("pythia-1.4b", "mmlu/astronomy", 0.05),
        ("contam-1.4b-dupcount-higher", "canaries/mnli", 1.96e-11),
        ("gpt2", "arc_easy", None),
        ("gpt2-xl", "hellaswag", None),
        ("gpt2-xl", "files/mine.jsonl", None),
    ],
)
def test_single_values(model: str, dataset: str, p: float | None) -> None:
    found = published_p(load_models()[model], dataset, PUBLISHED)
    assert math.isnan(found) if p is None else found == p
    assert math.isnan(published_p(load_models()[model], dataset, None))


def test_a_column_that_no_table_has_is_empty() -> None:
    entry = ModelEntry("m", "x/m", published="some_other")
    assert math.isnan(published_p(entry, "gsm8k", PUBLISHED))


# --- layout ---------------------------------------------------------------------------------------


def _row(model: str, dataset: str, p: float = math.nan, **fields: object) -> dict[str, object]:
    return {
        "model": model,
        "dataset": dataset,
        "examples": 1319,
        "test": "sharded_t",
        "p": p,
        "log10_p": math.log10(p),
        "holm_p": p * 2,
        "published_p": math.nan,
        "verdict": "quiet",
        "control": "compressor",
        "control_p": 0.5,
        "status": "ok",
        **fields,
    }


def test_sets_stand_below_each_other_and_models_beside() -> None:
    rows = pd.DataFrame(
        [
            _row("big", "gsm8k", 0.001, published_p=0.594),
            _row("big", "boolq", 0.04, published_p=0.421),
            _row("small", "gsm8k", 0.3, control_p=0.5),
            _row(
                *("small", "boolq"),
                status="failed: no room; free some",
                verdict=None,
                control=None,
                control_p=math.nan,
            ),
            _row("small", "boolq", 0.9, test="successor"),
        ]
    ).astype({"examples": "Int64"})
    table = paper_layout(rows, 0.05)
    assert table.loc[2, ["Set", "Test", "small"]].tolist() == ["boolq", "successor", "0.900"]
    assert table[:2].to_dict("records") == [
        {
            "Set": "gsm8k",
            "Examples": "1319",
            "Order": "quiet",
            "Test": "sharded t",
            "big": "**0.001**",
            "big, paper": "0.594",
            "small": "0.300",
            "Compressor": "0.500",
        },
        {
            "Set": "boolq",
            "Examples": "1319",
            "Order": "quiet",
            "Test": "sharded t",
            "big": "0.040",
            "big, paper": "0.421",
            "small": "failed",
            "Compressor": "0.500",
        },
    ]


def test_what_is_unknown_is_a_dash() -> None:
    gone = {"examples": None, "verdict": None, "control": None, "control_p": math.nan}
    rows = pd.DataFrame(
        [
            _row("m", "far", status="not run here: no network", published_p=0.7, **gone),
            _row("n", "far", status="not run here: no network", **gone),
        ]
    ).astype({"examples": "Int64"})
    (line,) = paper_layout(rows, 0.05).to_dict("records")
    assert line == {
        "Set": "far",
        "Examples": "—",
        "Order": "—",
        "Test": "sharded t",
        "m": "not run here",
        "m, paper": "0.700",
        "n": "not run here",
    }
