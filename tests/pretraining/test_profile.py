"""A profile is checked to the last key."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from contamination.errors import InputError
from contamination.pretraining.experiment import Experiment
from contamination.pretraining.profile import CanarySpec, load_profile
from fakes.data_fixtures import PROFILES, profile_data, write_profile


@pytest.fixture
def refused(tmp_path: Path):
    """Return a function that gives the message about a bad profile, checked to be one line."""

    def message(data: dict[str, Any] | str) -> str:
        path = tmp_path / "mine.yaml"
        path.write_text(data if isinstance(data, str) else yaml.safe_dump(data), encoding="utf-8")
        with pytest.raises(InputError) as caught:
            load_profile(path)
        text = str(caught.value)
        assert len(text.splitlines()) == 1
        assert text.startswith(f"{path}: ")
        return text.removeprefix(f"{path}: ")

    return message


@pytest.mark.parametrize("path", PROFILES, ids=lambda p: p.stem)
def test_profiles_load(path: Path) -> None:
    profile = load_profile(path)
    assert profile.name == path.stem
    assert profile.canaries
    assert all(spec.dup_count >= 1 for spec in profile.canaries)
    assert profile.model.n_embd % profile.model.n_head == 0
    assert profile.training.batch_size % profile.training.micro_batch_size == 0


def test_there_are_profiles() -> None:
    assert {"laptop", "quick"} <= {path.stem for path in PROFILES}


def test_values_arrive(tmp_path: Path) -> None:
    profile = load_profile(write_profile(tmp_path / "mine.yaml"))
    assert (profile.name, profile.seed) == ("mine", 5)
    assert profile.corpus.packages == ("alpha",)
    assert profile.corpus.characters is None
    assert profile.canaries[0] == CanarySpec("one", 12, 1, kind="question")
    assert profile.scoring.whole_set_permutations == 9
    assert profile.notebooks == {"01_canary_eval": {"alpha": 0.05}}


def test_a_base_gives_what_the_profile_does_not(tmp_path: Path) -> None:
    write_profile(tmp_path / "first.yaml")
    scoring = "scoring: {shards: 2, permutations: 3, whole_set_permutations: 4}"
    (tmp_path / "second.yaml").write_text(f"base: first\nseed: 6\n{scoring}\n", "utf-8")
    first, second = load_profile(tmp_path / "first.yaml"), load_profile(tmp_path / "second.yaml")
    assert (second.name, second.seed, second.scoring.shards) == ("second", 6, 2)
    assert (second.canaries, second.corpus) == (first.canaries, first.corpus)


def test_a_base_has_no_base_of_its_own(refused, tmp_path: Path) -> None:
    write_profile(tmp_path / "first.yaml")
    (tmp_path / "second.yaml").write_text("base: first\n", "utf-8")
    assert "its base has a base" in refused({"base": "second"})


def test_an_unknown_base_is_told(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("base: laptpo\n", "utf-8")
    with pytest.raises(InputError, match=r"unknown profile 'laptpo': .* has mine"):
        load_profile(tmp_path / "mine.yaml")


def _with(path: str, value: object) -> dict[str, Any]:
    """Return a valid profile with the value at a dotted path replaced, or deleted if `...`."""
    data = profile_data()
    *parents, last = path.split(".")
    place: Any = data  # a mapping or a list
    for name in parents:
        place = place[int(name) if name.isdigit() else name]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return data


@pytest.mark.parametrize("section", ["", "corpus", "model", "training", "scoring"])
def test_unknown_key(section: str, refused) -> None:
    message = refused(_with(f"{section}.sede".lstrip("."), 5))
    where = f"{section}: " if section else ""
    assert message.startswith(f"{where}unknown key 'sede'; choose from ")


def test_unknown_key_of_a_canary_set_names_which(refused) -> None:
    message = refused(_with("canaries.1.dupcount", 5))
    assert message.startswith("canaries[1]: unknown key 'dupcount'; choose from name, examples, ")


def test_keys_that_are_no_text(refused) -> None:
    data = {**profile_data(), 1: 2, "zzz": 3, None: 4}
    assert "unknown key" in refused(data)


def test_a_name_in_the_file_is_refused(refused) -> None:
    assert "unknown key 'name'" in refused(_with("name", "other"))


@pytest.mark.parametrize(
    ("path", "where"),
    [
        ("seed", ""),
        ("model", ""),
        ("notebooks", ""),
        ("model.n_head", "model: "),
        ("training.learning_rate", "training: "),
        ("scoring.shards", "scoring: "),
        ("canaries.2.dup_count", "canaries[2]: "),
    ],
)
def test_missing_key(path: str, where: str, refused) -> None:
    assert refused(_with(path, ...)) == f"{where}key '{path.rsplit('.', 1)[-1]}' is missing"


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("seed", "five", "seed: 'five' is not a whole number of at least 0"),
        ("seed", 1.5, "seed: 1.5 is not a whole number"),
        ("seed", -1, "seed: -1 is not a whole number"),
        ("seed", True, "seed: True is not a whole number"),
        ("corpus.characters", "6e6", "corpus: characters: '6e6' is not a whole number"),
        ("corpus.packages", "numpy", "corpus: packages: write a list of names"),
        ("corpus.packages", [1], "corpus: packages[0]: 1 is not text"),
        ("training.learning_rate", "fast", "training: learning_rate: 'fast' is not a number"),
        ("training.learning_rate", None, "training: learning_rate: None is not a number"),
        ("training.learning_rate", True, "training: learning_rate: True is not a number"),
        ("training.learning_rate", float("nan"), "training: learning_rate: nan is not a number"),
        ("training.learning_rate", [1], "training: learning_rate: [1] is not a number"),
        ("canaries", [], "canaries: write a list of at least one canary set"),
        ("canaries", {"a": 1}, "canaries: write a list of at least one canary set"),
        ("canaries", ["a"], "canaries[0]: write a mapping with the keys of CanarySpec"),
        ("canaries.0.name", 7, "canaries[0]: name: 7 is not text"),
        ("canaries.0.kind", 7, "canaries[0]: kind: 7 is not text"),
        ("model", 7, "model: write a mapping with the keys of Architecture"),
        ("notebooks", ["01_canary_eval"], "notebooks: write a mapping from notebook to parameters"),
        ("notebooks", None, "notebooks: write a mapping from notebook to parameters"),
        ("notebooks.01_canary_eval", 0.05, "notebooks.01_canary_eval: write a mapping of notebook"),
    ],
)
def test_wrong_type(path: str, value: object, message: str, refused) -> None:
    assert refused(_with(path, value)).startswith(message)


@pytest.mark.parametrize("written", ["1e-3", "1.0e-3", "0.001", "1E-3"])
def test_a_number_without_a_dot(written: str, tmp_path: Path) -> None:
    text = write_profile(tmp_path / "mine.yaml").read_text()
    assert text.count("learning_rate: 0.001") == 1
    (tmp_path / "mine.yaml").write_text(text.replace("rate: 0.001", f"rate: {written}"))
    rate = load_profile(tmp_path / "mine.yaml").training.learning_rate
    assert isinstance(rate, float)
    assert rate == 0.001


@pytest.mark.parametrize("width", [8, 4])
def test_sizes_of_one_width(width: int, refused) -> None:
    shape = {**profile_data()["model"], "n_embd": width}
    both = [shape, {**shape, "n_layer": 2}]
    message = refused({**profile_data(), "sizes": both})
    assert message == f"two models have n_embd {width}; give each size its own"


def test_a_shape_alone_is_no_list_of_sizes(refused) -> None:
    message = refused({**profile_data(), "sizes": profile_data()["model"]})
    assert message == "sizes: write a list of shapes, as of `model`"


def test_canary_set_named_twice(refused) -> None:
    assert refused(_with("canaries.1.name", "one")) == "canary set 'one' is named twice"


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"file": "a.jsonl"},
        {"template": "text/1"},
        {"kind": "question", "file": "a.jsonl", "template": "text/1"},
        {"kind": "question", "file": "a.jsonl"},
        {"kind": "question", "template": "text/1"},
    ],
)
def test_kind_or_file_and_template(given: dict[str, str], refused) -> None:
    spec = {"name": "one", "examples": 12, "dup_count": 1, **given}
    message = refused({**profile_data(), "canaries": [spec]})
    assert message == "canary set 'one': give a kind, or file and template"


def test_file_and_template(tmp_path: Path) -> None:
    spec = {"name": "a", "examples": 9, "dup_count": 1, "file": "a.csv", "template": "piqa/1"}
    path = write_profile(tmp_path / "mine.yaml", {**profile_data(), "canaries": [spec]})
    assert load_profile(path).canaries[0].file == "a.csv"


@pytest.mark.parametrize("corpus", [{}, {"packages": ["alpha"], "files": ["wiki.txt"]}])
def test_packages_or_files(corpus: dict[str, list[str]], refused) -> None:
    assert refused(_with("corpus", corpus)) == "give either corpus.packages or corpus.files"


def test_unknown_profile_lists_what_there_is(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_profile(tmp_path / f"{name}.yaml")
    expected = re.escape(f"unknown profile 'three': {tmp_path} has one, two")
    with pytest.raises(InputError, match=f"^{expected}$"):
        load_profile(tmp_path / "three.yaml")
    with pytest.raises(InputError, match=r"has none$"):
        load_profile(tmp_path / "empty" / "three.yaml")


@pytest.mark.parametrize("text", ["seed: [1\nmodel: {", "a: b: c", "seed: 2024-13-45", "\tseed: 1"])
def test_malformed_yaml(text: str, refused) -> None:
    assert refused(text).startswith("not valid YAML: ")


@pytest.mark.parametrize("text", ["", "just words", "- a\n- b"])
def test_yaml_that_is_no_mapping(text: str, refused) -> None:
    assert refused(text) == "write `key: value` lines; see profiles/laptop.yaml"


def test_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_bytes(b"seed: 5 # caf\xe9\n")
    with pytest.raises(InputError, match="not valid YAML"):
        load_profile(tmp_path / "mine.yaml")


@pytest.mark.parametrize("path", PROFILES, ids=lambda p: p.stem)
def test_make_reads_the_names_of_the_sizes(path: Path) -> None:
    command = ["make", "-s", f"PROFILE={path.stem}", "--eval=sizes: ; @echo $(SIZES)", "sizes"]
    told = subprocess.run(
        command, cwd=path.parent.parent, check=True, capture_output=True, text=True
    )
    assert tuple(told.stdout.split()) == Experiment(path, path.parent).sizes
