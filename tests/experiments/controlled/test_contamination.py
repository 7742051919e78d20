"""Controlled contamination: what was injected is found, the rest is not, nothing is done twice."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from contamination.errors import InputError
from contamination.experiments.controlled.contaminants import (
    INSIDE,
    OUTLIER,
    Background,
    ContaminantSet,
)
from contamination.experiments.controlled.contamination import (
    BASE,
    FOLDER,
    TRAINED,
    mixture,
    score_runs,
    train_runs,
)
from contamination.experiments.controlled.plan import RATE, SIZE, TIMES, Plan, Run
from contamination.membership.evaluate import evaluate
from contamination.pretraining import fine_tuning
from contamination.pretraining.fine_tuning import RECORD
from contamination.testsets.tokens import tokenize
from fakes.data_fixtures import WORDS

CONTEXT = 32
HALF = 8
RATE_OF_ALL = 1e-2
PLAN = Plan((2000, 14_000), RATE_OF_ALL, (1e-6,), 14_000, (1, 64), batch_size=8)
SETS = {OUTLIER: ("lists", "numbers"), INSIDE: ("left",)}


def _half(rng: np.random.Generator) -> tuple[str, ...]:
    return tuple(f"{' '.join(rng.choice(WORDS, 6))} {rng.integers(1000)}\n" for _ in range(HALF))


@pytest.fixture(scope="module")
def sets() -> list[ContaminantSet]:
    rng = np.random.default_rng(3)
    return [
        ContaminantSet(contaminant, name, _half(rng), _half(rng))
        for contaminant, names in SETS.items()
        for name in names
    ]


@pytest.fixture(scope="module")
def around(tokenizer) -> Background:
    rng = np.random.default_rng(4)
    texts = [" ".join(rng.choice(WORDS, rng.integers(10, 30))) + "\n" for _ in range(600)]
    parts = [np.append(ids, tokenizer.eos_token_id) for ids in tokenize(tokenizer, texts)]
    return Background(np.concatenate(parts), np.cumsum([len(ids) for ids in parts]), 0)


@pytest.fixture(scope="module")
def experiment(make_model, tmp_path_factory) -> SimpleNamespace:
    base = make_model(CONTEXT)
    (base / "training.json").write_text("{}")
    shape = SimpleNamespace(n_positions=CONTEXT)
    return SimpleNamespace(
        build=tmp_path_factory.mktemp("build"),
        profile=SimpleNamespace(seed=5, model=shape),
        model={"clean": base}.__getitem__,
    )


@pytest.fixture(scope="module")
def trained(experiment, sets, around) -> dict[Run, Path]:
    return train_runs(experiment, PLAN, sets, around)


@pytest.fixture(scope="module")
def scored(experiment, sets, trained) -> pd.DataFrame:
    return score_runs(PLAN, sets, experiment.model("clean"), trained, k=20)


def _judged(scored: pd.DataFrame, **chosen: object) -> pd.DataFrame:
    for name, value in chosen.items():
        scored = scored[scored[name] == value]
    names = ["loss", "min_k_20", "min_k_pp_20", "zlib"]
    rng = np.random.default_rng(0)
    return evaluate(scored[names], scored["member"], rng=rng).set_index("score")


# --- the mixture ----------------------------------------------------------------------------------


def _places(stream: list[int], ids: list[int]) -> list[int]:
    return [i for i in range(len(stream)) if stream[i : i + len(ids)] == ids]


def test_every_copy_stands_whole_between_documents(sets, around, tokenizer) -> None:
    run = Run("some", 5000, 1e-3, (1, 3))
    rng = np.random.default_rng(0)
    blocks = mixture(sets, around, run, tokenizer, context=CONTEXT, rng=rng)
    assert blocks.shape == (5000 // CONTEXT, CONTEXT)
    stream = blocks.ravel().tolist()
    rest = [True] * len(stream)
    for one in sets:
        for i, ids in enumerate(tokenize(tokenizer, one.members)):
            copy = [*ids.tolist(), tokenizer.eos_token_id]
            places = _places(stream, copy)
            assert len(places) == (1, 3)[i % 2]
            for place in places:
                assert place == 0 or stream[place - 1] == tokenizer.eos_token_id
                rest[place : place + len(copy)] = [False] * len(copy)
        for ids in tokenize(tokenizer, one.non_members):
            assert not _places(stream, ids.tolist())
    kept = np.array(stream)[rest]
    assert kept.tolist() == around.tokens[: len(kept)].tolist()


def test_places_are_those_of_the_generator(sets, around, tokenizer) -> None:
    run = Run("some", 5000, 1e-3)
    first, same, other = (
        mixture(sets, around, run, tokenizer, context=CONTEXT, rng=np.random.default_rng(seed))
        for seed in (0, 0, 1)
    )
    assert (first == same).all()
    assert (first != other).any()


@pytest.mark.parametrize("tokens", [300, 10_000_000])
def test_a_mixture_that_cannot_be(sets, around, tokenizer, tokens: int) -> None:
    run = Run("some", tokens, 1e-3)
    with pytest.raises(InputError, match=r"some: .* raise the size, or lower `examples`"):
        mixture(sets, around, run, tokenizer, context=CONTEXT, rng=np.random.default_rng(0))


# --- training -------------------------------------------------------------------------------------


def test_one_epoch_at_a_constant_rate(trained, monkeypatch, experiment, sets, around) -> None:
    seen = []

    def record(model, texts, directory, **settings):
        seen.append((directory.name, np.stack(texts), settings))
        return directory

    monkeypatch.setattr(fine_tuning, "fine_tune", record)
    train_runs(experiment, PLAN, sets, around)
    texts = {name: blocks for name, blocks, _ in seen}
    assert sorted(texts) == sorted(path.name for path in trained.values())
    assert {(s["epochs"], s["batch_size"]) for _, _, s in seen} == {(1, 8)}
    rates = {name: s["learning_rate"] for name, _, s in seen}
    assert rates.pop("rate-1e-06") == 1e-6
    assert set(rates.values()) == {RATE_OF_ALL}
    # Learning rates are compared on one text; the text for occurrences has no documents injected.
    assert (texts["rate-1e-06"] == texts["size-14000"]).all()
    assert texts["size-2000"].size == 2000 // CONTEXT * CONTEXT


def test_documents_are_not_injected_for_occurrences(
    monkeypatch, experiment, sets, around, tokenizer
) -> None:
    texts = {}

    def record(model, blocks, directory, **_):
        texts[directory.name] = np.concatenate(blocks).tolist()
        return directory

    monkeypatch.setattr(fine_tuning, "fine_tune", record)
    train_runs(experiment, PLAN, sets, around)
    (left,) = (one for one in sets if one.contaminant == INSIDE)
    ids = tokenize(tokenizer, left.members)[0].tolist()
    assert len(_places(texts["size-14000"], ids)) == 1
    assert not _places(texts["occurrences"], ids)


def test_only_what_is_missing_or_changed_is_trained_again(
    trained, experiment, sets, around
) -> None:
    weights = {run.name: path / "model.safetensors" for run, path in trained.items()}
    before = {name: (path.stat().st_mtime_ns, path.read_bytes()) for name, path in weights.items()}
    (trained[PLAN.runs[SIZE][0]] / RECORD).unlink()  # as after a kill
    assert train_runs(experiment, PLAN, sets, around) == trained
    again = {name for name, path in weights.items() if path.stat().st_mtime_ns != before[name][0]}
    assert again == {"size-2000"}
    assert all(path.read_bytes() == before[name][1] for name, path in weights.items())
    assert {p.parent for p in trained.values()} == {experiment.build / FOLDER}


def test_a_base_that_is_not_trained(experiment, sets, around, tmp_path) -> None:
    bare = SimpleNamespace(**(vars(experiment) | {"model": lambda name: tmp_path / name}))
    with pytest.raises(InputError, match="clean is not trained: run"):
        train_runs(bare, PLAN, sets, around)


# --- scores ---------------------------------------------------------------------------------------


def test_a_text_read_sixty_four_times_is_found(scored) -> None:
    for name in SETS[OUTLIER]:
        chosen = {"experiment": TIMES, "model": TRAINED, "dataset": name}
        often = _judged(scored, **chosen, occurrences=64)
        assert (often["auc"] > 0.95).all()
        assert (often[["members", "non_members"]] == [HALF // 2, HALF]).all(axis=None)
        once = _judged(scored, **chosen, occurrences=1)
        assert (once["auc"] < often["auc"]).all()


def test_halves_are_alike_before_training(scored) -> None:
    for name in (*SETS[OUTLIER], *SETS[INSIDE]):
        found = _judged(scored, experiment=SIZE, model=BASE, dataset=name)
        assert (found["auc_low"] <= 0.5).all()
        assert (found["auc_high"] >= 0.5).all()


def test_a_learning_rate_of_almost_nothing_changes_almost_nothing(scored) -> None:
    rate = scored[scored["experiment"] == RATE].set_index(["learning_rate", "model"])["loss"]
    base = rate.loc[0.0, BASE].to_numpy()
    assert np.abs(rate.loc[1e-6, TRAINED].to_numpy() - base).max() < 0.5
    assert np.abs(rate.loc[RATE_OF_ALL, TRAINED].to_numpy() - base).min() > 0.5


def test_every_text_is_where_it_belongs(scored) -> None:
    counts = scored.groupby(["experiment", "model", "corpus_tokens", "learning_rate"]).size()
    outliers = len(SETS[OUTLIER])
    once = 2 * HALF
    # Non-members stand beside either number of occurrences, members beside their own.
    times = (HALF + 2 * HALF) * outliers
    assert counts.to_dict() == {
        (SIZE, BASE, 0, 0.0): once * (outliers + 1),
        (SIZE, TRAINED, 2000, RATE_OF_ALL): once * (outliers + 1),
        (SIZE, TRAINED, 14_000, RATE_OF_ALL): once * (outliers + 1),
        (RATE, BASE, 0, 0.0): once * outliers,
        (RATE, TRAINED, 14_000, 1e-6): once * outliers,
        (RATE, TRAINED, 14_000, RATE_OF_ALL): once * outliers,
        (TIMES, BASE, 0, 0.0): times,
        (TIMES, TRAINED, 14_000, RATE_OF_ALL): times,
    }
    members = scored[(scored["experiment"] == TIMES) & scored["member"]]
    assert (members["occurrences"] == np.where(members["text"] % 2, 64, 1)).all()
