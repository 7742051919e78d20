"""The registry of models: what it holds, how a name is found, and what it refuses."""

from pathlib import Path

import pytest

from contamination.errors import InputError
from contamination.scoring.models import ModelEntry, find_model, label_control, load_models
from fakes.data_fixtures import ROOT, SETS, MadeUpRun
from fakes.made_up_registry import refusal
from reproduction.output.published import load_published
from reproduction.run.experiment import trained_here

PUBLISHED = ROOT / "data" / "published"


def test_a_name_is_that_of_the_registry_a_hub_id_or_a_path(tmp_path: Path) -> None:
    for name in ("gpt2-xl", "GPT2-XL", "openai-community/gpt2-xl"):
        assert find_model(name) == load_models()["gpt2-xl"]
    assert find_model("org/other") == ModelEntry("org/other", "org/other", role="audited")
    (tmp_path / "mine").mkdir()
    found = find_model(str(tmp_path / "mine"))
    assert found.name == "mine"
    assert found.id == str(tmp_path / "mine")
    assert found.role == "audited"
    assert found.dup_count("gsm8k") is None


def test_a_control_has_a_name_of_its_own_and_is_not_the_model(tmp_path: Path) -> None:
    for folder in ("a/model", "b/model"):
        (tmp_path / folder).mkdir(parents=True)
    one = tmp_path / "a/model"
    other = tmp_path / "b/model"
    link = tmp_path / "link"
    link.symlink_to(one)
    assert label_control("org/control", str(one)) == "org/control"
    assert label_control(str(other), "org/model") == "model"
    assert label_control(str(other), str(one)) == str(other)
    for same in (str(one), str(link), f"{tmp_path}/b/../a/model"):
        with pytest.raises(InputError, match="the control is the model itself"):
            label_control(same, str(one))


def test_the_released_models_hold_what_the_paper_planted() -> None:
    """Table 1 and Table 3 name the sets in their own ways: by the letters that they share."""

    def planted(model: str) -> dict[str, int]:
        counts = load_models()[model].planted
        return {name.rpartition("/")[2].replace("_", ""): n for name, n in counts.items()}

    def printed(table: str, column: str) -> dict[str, float]:
        names = {"Pro.": "professional", "H.S.": "highschool", "Psych$": "psychology"}
        found = load_published(PUBLISHED, table).replace({"dataset": names}, regex=True)
        keys = found["dataset"].str.lower().str.replace(" ", "")
        return found.set_axis(keys)[column].dropna().to_dict()

    higher = planted("contam-1.4b-dupcount-higher")
    assert higher == printed("oren2024_table1_canaries", "dup_count")
    for which in ("high", "low"):
        ours = planted(f"contam-1.4b-dupcount-{which}er")
        table3 = printed("oren2024_table3_injected", f"dup_{which}")
        assert len(table3) >= 8
        assert table3.items() <= ours.items()


def test_dup_counts_are_those_of_the_very_order() -> None:
    entry = load_models()["contam-1.4b"]
    assert entry.dup_count("contam-1.4b/boolq") == 2
    assert entry.dup_count("/data/contam-1.4b/boolq.jsonl") == 2
    assert entry.dup_count("boolq") is None  # that was planted in another order
    assert load_models()["gpt2"].dup_count("boolq") is None


def test_models_trained_here_know_their_truth(tmp_path: Path) -> None:
    contaminated, clean = trained_here(MadeUpRun(tmp_path).experiment)
    assert contaminated.role == "contaminated"
    assert clean.role == "negative_control"
    for name, count in SETS.items():
        assert contaminated.dup_count(f"profile/{name}") == count
        assert clean.dup_count(f"profile/{name}") == 0
    assert contaminated.id == str(tmp_path / "build" / "models" / "contaminated")
    assert not {"contaminated", "clean"} & set(load_models())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: {id: x/y, role: audited, revison: main}", "revison"),
        ("a: x/y", "restore data/models.yaml"),
        (None, "No such file"),
    ],
)
def test_a_mistake_in_the_registry_is_named(text, message: str, tmp_path: Path) -> None:
    path = tmp_path / "models.yaml"
    if text is not None:
        path.write_text(text)
    told = refusal(find_model, "a", path)
    assert told.startswith(str(path)) and message in told
    assert "a model has no name" in refusal(find_model, " ", path)
