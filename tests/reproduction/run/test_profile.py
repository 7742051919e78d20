"""A profile is checked to the last key."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.utils import canonicalize_name

from contamination.errors import InputError
from fakes.data_fixtures import PROFILES, ROOT, profile_data, released_data, write_profile
from reproduction.run.canaries import KINDS
from reproduction.run.experiment import Experiment, trained_here
from reproduction.run.profile import Architecture, CanarySpec, load_profile

SHAPE, FILE = profile_data()["model"], {"file": "a", "template": "piqa/1"}


@pytest.fixture
def refused(tmp_path: Path):
    """Return a function that gives the message about a bad profile."""

    def message(data: dict[str, Any] | str | bytes) -> str:
        path = tmp_path / "mine.yaml"
        text = yaml.safe_dump(data) if isinstance(data, dict) else data
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        with pytest.raises(InputError, match=f"^{path}[:,] .*$") as caught:  # one line
            load_profile(path)
        return str(caught.value).removeprefix(f"{path}: ")

    return message


@pytest.mark.parametrize("path", PROFILES, ids=lambda p: p.stem)
def test_profiles_load(path: Path) -> None:
    profile = load_profile(path)
    assert profile.name == path.stem
    if profile.pretraining is None:
        assert path.stem.startswith(("open", "pocket", "checkpoints"))
        return
    assert profile.canaries
    shape = profile.model
    if isinstance(shape, Architecture):
        assert shape.n_embd % shape.n_head == 0
    training = profile.pretraining.training
    assert training.batch_size % training.micro_batch_size == 0
    # Same lock, same corpus: what is harvested must be pinned.
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    harvested = {*profile.corpus.packages, *profile.corpus.held_out}
    pinned = {canonicalize_name(line.partition("==")[0]) for line in lock}
    assert {canonicalize_name(name) for name in harvested} <= pinned
    # Canary sets are made of what the corpus does not hold, and of as much as their shards need.
    assert not set(profile.corpus.packages) & set(profile.corpus.held_out)
    kinds = {spec.kind for spec in profile.canaries if spec.kind}
    assert kinds <= set(KINDS)
    assert profile.corpus.held_out or not kinds
    assert all(spec.examples >= 2 * profile.scoring.shards for spec in profile.canaries)


def test_a_base_gives_what_the_profile_does_not(tmp_path: Path) -> None:
    data = profile_data()
    data["canaries"].append({"name": "a", "examples": 9, "dup_count": 1} | FILE)
    write_profile(tmp_path / "first.yaml", data)
    scoring = "seed: 6\nscoring: {shards: 2, permutations: 3, whole_set_permutations: 4}"
    for name, base, own in (
        ("second", "first", scoring),
        ("third", "second", ""),
        ("fourth", "laptpo", ""),
    ):
        (tmp_path / f"{name}.yaml").write_text(f"base: {base}\n{own}\n", "utf-8")
    first = load_profile(tmp_path / "first.yaml")
    third = load_profile(tmp_path / "third.yaml")
    ends = CanarySpec("one", 12, 1, kind="question"), CanarySpec("a", 9, 1, **FILE)
    assert (first.canaries[0], first.canaries[-1]) == ends
    assert third.name == "third"
    assert third.seed == 6
    assert third.scoring.shards == 2
    assert third.canaries == first.canaries
    assert third.corpus == first.corpus
    with pytest.raises(InputError, match=r"unknown profile 'laptpo': .* has first, second"):
        load_profile(tmp_path / "fourth.yaml")
    (tmp_path / "fifth.yaml").write_text(f"base: {tmp_path / 'first'}\n", "utf-8")  # no name
    with pytest.raises(InputError, match=r"unknown profile '.*first'"):
        load_profile(tmp_path / "fifth.yaml")


def test_a_profile_without_a_corpus_trains_nothing(tmp_path: Path) -> None:
    experiment = Experiment(write_profile(tmp_path / "mine.yaml", released_data()), tmp_path / "b")
    profile = experiment.profile
    assert profile.name == "mine"
    assert profile.seed == 5
    assert profile.pretraining is None
    assert profile.canaries == ()
    assert experiment.shapes == {}
    assert experiment.sizes == ()
    assert trained_here(experiment) == []
    for needs_a_corpus in (lambda: profile.corpus, lambda: experiment.model("clean")):
        with pytest.raises(InputError, match="profile mine has no corpus"):
            needs_a_corpus()
    with pytest.raises(InputError, match="profile mine has no canary set 'one'; it has none"):
        experiment.test_set("one")


def test_what_is_trained_is_given_whole_or_not_at_all(refused) -> None:
    whole = profile_data() | {"sizes": [SHAPE | {"n_embd": 4}]}
    for name, missing in [("corpus", "canaries"), ("scoring", "corpus"), ("sizes", "corpus")]:
        data = released_data() | {name: whole[name]}
        assert refused(data).startswith(f"{missing}: Field required")
    assert "list the notebooks" in refused(released_data() | {"notebooks": {}})


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
        ("canaries.1.dupcount", 5, "canaries.1.dupcount"),
        ("canaries.2.dup_count", ..., "canaries.2.dup_count"),
        ("seed", -1, "seed"),
        ("training.learning_rate", "1e-3", "training.learning_rate"),  # YAML wants 1.0e-3
        ("training.learning_rate", float("nan"), "training.learning_rate"),
        ("canaries", [], "canaries"),
        ("canaries.1.name", "one", "two canary sets have one name"),
        ("canaries.0.kind", "middling", "canaries.0.kind: Input should be 'signature', 'question'"),
        ("canaries.0.kind", ..., "canary set 'one': give a kind, or file and template"),
        ("sizes", [SHAPE], "two models have one n_embd"),
        ("model", {"released": "gpt2"}, "model.n_positions: Field required"),
        ("corpus", {}, "give either packages or files"),
    ],
)
def test_a_wrong_key_or_value_is_named(path: str, value: object, named: str, refused) -> None:
    assert named in refused(_with(path, value)).split("; ")[0]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("seed: [1\nmodel: {", "not valid YAML"),
        (b"seed: 5 # caf\xe9\n", "not valid YAML"),
        ("", "key: value"),
        ("1: 2", "key: value"),
        ("seed: 5\nmodel: {n_embd: 64, n_embd: 8}", "line 2: 'n_embd'"),
    ],
)
def test_a_file_that_is_no_mapping(text: str | bytes, named: str, refused) -> None:
    assert named in refused(text)
