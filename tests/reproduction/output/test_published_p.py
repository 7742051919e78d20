"""The p-values that the paper prints, found by the names of our models and sets."""

import math

import pytest

from contamination.scoring.models import ModelEntry, load_models
from contamination.testsets.registry import registered
from fakes.data_fixtures import ROOT
from reproduction.output.published import AUDITED, CONTROLS, load_published
from reproduction.output.published_p import published_p

PUBLISHED = ROOT / "data" / "published"
COLUMNS = {**AUDITED, **CONTROLS}
BY_COLUMN = {entry.published: entry for entry in load_models().values() if entry.published}


def test_every_value_of_table_2_is_found_once():
    table = load_published(PUBLISHED, "oren2024_table2_open_models")
    printed = table[table["dataset"] != "MMLU (Fisher)"]
    others = [name for name in registered() if not name.startswith(("canaries/", "mmlu/"))]
    for column in COLUMNS:
        found = [published_p(BY_COLUMN[column], name, PUBLISHED) for name in others]
        assert sorted(p for p in found if not math.isnan(p)) == sorted(printed[column])


def test_every_subset_of_table_4_is_found():
    table = load_published(PUBLISHED, "oren2024_table4_mmlu").set_index("subset")
    for column in COLUMNS:
        for subset, p in table[column].items():
            assert published_p(BY_COLUMN[column], f"mmlu/{subset}", PUBLISHED) == p
    assert math.isnan(published_p(BY_COLUMN["biomedlm"], "mmlu/professional_law", PUBLISHED))


def test_every_canary_set_of_table_1_is_found_for_its_model_alone():
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
        (ModelEntry("m", "x/m", published="a column that no table has"), "gsm8k", None),
    ],
)
def test_single_values(model, dataset, p):
    entry = load_models()[model] if isinstance(model, str) else model
    found = published_p(entry, dataset, PUBLISHED)
    assert math.isnan(found) if p is None else found == p
    assert math.isnan(published_p(entry, dataset, None))
