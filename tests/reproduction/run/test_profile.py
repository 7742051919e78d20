"""A profile is checked to the last key."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from contamination.errors import InputError
from fakes.data_fixtures import PROFILES, profile_data, released_data, write_profile
from reproduction.run.canaries import KINDS
from reproduction.run.experiment import Experiment, trained_here
from reproduction.run.profile import CanarySpec, load_profile


@pytest.fixture
def refused(tmp_path: Path):
    """Return a function that gives the message about a bad profile, checked to be one line."""

    def message(data: dict[str, Any] | str | bytes) -> str:
        path = tmp_path / "mine.yaml"
        text = yaml.safe_dump(data) if isinstance(data, dict) else data
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
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
    if profile.pretraining is None:
        assert path.stem.startswith("open")
        return
    assert profile.canaries
    assert all(spec.dup_count >= 1 for spec in profile.canaries)
    assert profile.model.n_embd % profile.model.n_head == 0
    assert profile.training.batch_size % profile.training.micro_batch_size == 0
    # Canary sets are made of what the corpus does not hold, and of as much as their shards need.
    assert not set(profile.corpus.packages) & set(profile.corpus.held_out)
    kinds = {spec.kind for spec in profile.canaries if spec.kind}
    assert kinds <= set(KINDS)
    assert profile.corpus.held_out or not kinds
    assert all(spec.examples >= 2 * profile.scoring.shards for spec in profile.canaries)


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


def test_a_base_that_has_a_base_or_is_unknown(refused, tmp_path: Path) -> None:
    write_profile(tmp_path / "first.yaml")
    (tmp_path / "second.yaml").write_text("base: first\n", "utf-8")
    assert "its base has a base" in refused({"base": "second"})
    (tmp_path / "third.yaml").write_text("base: laptpo\n", "utf-8")
    with pytest.raises(InputError, match=r"unknown profile 'laptpo': .* has first, mine, second"):
        load_profile(tmp_path / "third.yaml")


def test_a_profile_without_a_corpus_trains_nothing(tmp_path: Path) -> None:
    experiment = Experiment(write_profile(tmp_path / "mine.yaml", released_data()), tmp_path / "b")
    profile = experiment.profile
    assert (profile.name, profile.seed, profile.pretraining) == ("mine", 5, None)
    assert (profile.canaries, profile.sizes, experiment.shapes, experiment.sizes) == (
        (),
        (),
        {},
        (),
    )
    assert trained_here(experiment) == []
    refused = "profile mine has no corpus and trains no model: choose another PROFILE"
    for needs_a_corpus in (
        lambda: profile.corpus,
        lambda: profile.model,
        lambda: profile.training,
        lambda: profile.scoring,
        lambda: experiment.corpus_facts,
        lambda: experiment.model("clean"),
    ):
        with pytest.raises(InputError, match=f"^{refused}$"):
            needs_a_corpus()
    with pytest.raises(InputError, match="profile mine has no canary set 'one'; it has none"):
        experiment.test_set("one")


SHAPE = profile_data()["model"]


def test_what_is_trained_is_given_whole_or_not_at_all(refused) -> None:
    whole = profile_data() | {"sizes": [SHAPE | {"n_embd": 4}]}
    for name, missing in [("corpus", "canaries"), ("scoring", "corpus"), ("sizes", "corpus")]:
        data = released_data() | {name: whole[name]}
        assert refused(data).startswith(f"{missing}: is missing; ")
    assert "list the notebooks" in refused(released_data() | {"notebooks": {}})


def test_a_base_without_a_corpus(tmp_path: Path) -> None:
    write_profile(tmp_path / "first.yaml", released_data())
    (tmp_path / "second.yaml").write_text("base: first\nnotebooks: {06_wikimia: {}}\n", "utf-8")
    second = load_profile(tmp_path / "second.yaml")
    assert (second.seed, second.pretraining, list(second.notebooks)) == (5, None, ["06_wikimia"])


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


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        ("sede", 5, "sede"),
        ("name", "other", "name"),
        ("corpus.sede", 5, "corpus.sede"),
        ("canaries.1.dupcount", 5, "canaries.1.dupcount"),
        ("seed", ..., "seed"),
        ("notebooks", ..., "notebooks"),
        ("model.n_head", ..., "model.n_head"),
        ("canaries.2.dup_count", ..., "canaries.2.dup_count"),
        ("seed", "five", "seed"),
        ("seed", 1.5, "seed"),
        ("seed", -1, "seed"),
        ("seed", True, "seed"),
        ("corpus.characters", "6e6", "corpus.characters"),
        ("corpus.packages", "numpy", "corpus.packages"),
        ("corpus.packages", [1], "corpus.packages.0"),
        ("training.learning_rate", "fast", "training.learning_rate"),
        ("training.learning_rate", None, "training.learning_rate"),
        ("training.learning_rate", True, "training.learning_rate"),
        ("training.learning_rate", float("nan"), "training.learning_rate"),
        ("canaries", [], "canaries"),
        ("canaries", ["a"], "canaries.0"),
        ("canaries.0.name", 7, "canaries.0.name"),
        ("canaries.1.name", "one", "'one' is named twice"),
        ("canaries.0.kind", ..., "canary set 'one': give a kind, or file and template"),
        ("canaries.0.file", "a.jsonl", "canary set 'one': give a kind, or file and template"),
        ("sizes", SHAPE, "sizes"),
        ("sizes", [SHAPE], "two models have n_embd 8"),
        ("corpus", {}, "give either packages or files"),
        ("corpus.files", ["wiki.txt"], "give either packages or files"),
        ("notebooks", None, "notebooks"),
        ("notebooks.01_canary_eval", 0.05, "notebooks.01_canary_eval"),
    ],
)
def test_a_wrong_key_or_value_is_named(path: str, value: object, named: str, refused) -> None:
    assert named in refused(_with(path, value)).split("; ")[0]


@pytest.mark.parametrize("written", ["1e-3", "1.0e-3", "0.001"])
def test_a_number_without_a_dot(written: str, tmp_path: Path) -> None:
    text = write_profile(tmp_path / "mine.yaml").read_text()
    (tmp_path / "mine.yaml").write_text(text.replace("rate: 0.001", f"rate: {written}"))
    rate = load_profile(tmp_path / "mine.yaml").training.learning_rate
    assert isinstance(rate, float) and rate == 0.001


def test_a_file_goes_with_a_template(tmp_path: Path) -> None:
    spec = {"name": "a", "examples": 9, "dup_count": 1, "file": "a", "template": "piqa/1"}
    data = profile_data() | {"canaries": [spec]}
    assert load_profile(write_profile(tmp_path / "mine.yaml", data)).canaries[0].file == "a"


@pytest.mark.parametrize(
    "text", ["seed: [1\nmodel: {", "seed: 2024-13-45", b"seed: 5 # caf\xe9\n", "", "- a", "1: 2"]
)
def test_a_file_that_is_no_mapping(text: str | bytes, refused) -> None:
    assert refused(text).startswith(("not valid YAML: ", "write `key: value` lines; see "))
