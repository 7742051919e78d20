"""The registry of models: what it holds, how a name is found, and what it refuses."""

from pathlib import Path

import pandas as pd
import pytest

from contamination.errors import InputError
from contamination.scoring.models import (
    ModelEntry,
    find_model,
    label_control,
    load_models,
)
from fakes.data_fixtures import ROOT, SETS, MadeUpRun
from reproduction.output.published import AUDITED, CONTROLS, load_published
from reproduction.run.experiment import trained_here

PUBLISHED = ROOT / "data" / "published"


def test_every_model_of_the_paper_is_there_with_its_column() -> None:
    columns = {entry.published: entry for entry in load_models().values() if entry.published}
    assert set(columns) == {*AUDITED, *CONTROLS, "sharded_p"}
    assert columns["llama2_7b"].id == "meta-llama/Llama-2-7b-hf"
    assert columns["mistral_7b"].id == "mistralai/Mistral-7B-v0.1"
    assert columns["gpt2_xl"].id == "openai-community/gpt2-xl"
    assert columns["biomedlm"].role == "negative_control"
    assert [e.name for e in load_models().values() if e.role == "negative_control"] == ["biomedlm"]


@pytest.mark.parametrize("name", ["gpt2-xl", "GPT2-XL", "openai-community/gpt2-xl"])
def test_a_model_is_found_by_name_in_any_case_and_by_id(name: str) -> None:
    assert find_model(name) == load_models()["gpt2-xl"]


def test_any_other_name_is_a_hub_id_or_a_path(tmp_path: Path) -> None:
    assert find_model("org/other") == ModelEntry("org/other", "org/other", role="audited")
    (tmp_path / "mine").mkdir()
    found = find_model(str(tmp_path / "mine"))
    assert (found.name, found.id, found.role) == ("mine", str(tmp_path / "mine"), "audited")
    assert found.dup_count("gsm8k") is None


def test_a_control_has_a_name_of_its_own_and_is_not_the_model(tmp_path: Path) -> None:
    for folder in ("a/model", "b/model"):
        (tmp_path / folder).mkdir(parents=True)
    one, other, link = tmp_path / "a/model", tmp_path / "b/model", tmp_path / "link"
    link.symlink_to(one)
    assert label_control("org/control", str(one)) == "org/control"
    assert label_control(str(other), "org/model") == "model"
    assert label_control(str(other), str(one)) == str(other)
    for same in (str(one), str(link), f"{tmp_path}/b/../a/model"):
        with pytest.raises(InputError, match="--control is the model itself"):
            label_control(same, str(one))


def _dup_counts(model: str) -> dict[str, int]:
    return {TITLES[name]: count for name, count in load_models()[model].planted.items()}


TITLES = {
    "canaries/boolq": "BoolQ",
    "canaries/hellaswag": "HellaSwag",
    "canaries/openbookqa": "OpenbookQA",
    "canaries/mnli": "MNLI",
    "canaries/truthfulqa": "TruthfulQA",
    "canaries/naturalquestions": "Natural Questions",
    "canaries/piqa": "PIQA",
    "canaries/mmlu_professional_law": "MMLU Pro. Law",
    "canaries/mmlu_professional_psychology": "MMLU Pro. Psychology",
    "canaries/mmlu_high_school_psychology": "MMLU H.S. Psychology",
}


def test_the_released_models_hold_what_the_paper_planted() -> None:
    table1 = load_published(PUBLISHED, "oren2024_table1_canaries").set_index("dataset")["dup_count"]
    assert _dup_counts("contam-1.4b-dupcount-higher") == table1.to_dict()


@pytest.mark.parametrize("which", ["high", "low"])
def test_both_counts_agree_with_table_3_wherever_it_prints_one(which: str) -> None:
    table3 = load_published(PUBLISHED, "oren2024_table3_injected").set_index("dataset")
    table3.index = table3.index.str.replace(r"Psych$", "Psychology", regex=True)
    ours = pd.Series(_dup_counts(f"contam-1.4b-dupcount-{which}er"))
    printed = table3[f"dup_{which}"].dropna()
    assert len(printed) >= 8
    assert ours[printed.index].to_dict() == printed.to_dict()


def test_dup_counts_are_those_of_the_very_order() -> None:
    entry = load_models()["contam-1.4b"]
    assert entry.dup_count("contam-1.4b/boolq") == 2
    assert entry.dup_count("/data/contam-1.4b/boolq.jsonl") == 2
    assert entry.dup_count("boolq") is None  # that was planted in another order
    assert load_models()["gpt2"].dup_count("boolq") is None


def test_models_trained_here_know_their_truth(tmp_path: Path) -> None:
    contaminated, clean = trained_here(MadeUpRun(tmp_path).experiment)
    assert (contaminated.role, clean.role) == ("contaminated", "negative_control")
    for name, count in SETS.items():
        assert contaminated.dup_count(f"profile/{name}") == count
        assert clean.dup_count(f"profile/{name}") == 0
    assert contaminated.id == str(tmp_path / "build" / "models" / "contaminated")
    assert not {"contaminated", "clean"} & set(load_models())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: {id: x/y, role: audited, revison: main}", "a: revison: Unexpected"),
        ("a: x/y", "no mapping of names"),
        (None, r"models\.yaml: no such file"),
    ],
)
def test_a_mistake_in_the_registry_is_named(text, message: str, tmp_path: Path) -> None:
    path = tmp_path / "models.yaml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        find_model("a", path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="a model has no name"):
        find_model(" ", path)
