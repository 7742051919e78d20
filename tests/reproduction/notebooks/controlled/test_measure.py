"""Controlled contamination: what was injected is found, the rest is not, nothing is done twice."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from contamination.errors import InputError
from contamination.membership.evaluate import evaluate
from contamination.testsets.tokens import tokenize
from fakes.data_fixtures import WORDS
from reproduction.notebooks.controlled import measure
from reproduction.notebooks.controlled.measure import (
    FOLDER,
    ContaminantSet,
    Run,
    fine_tune_runs,
    mixture,
    score_runs,
    training_runs,
)
from reproduction.notebooks.controlled.tables import (
    BASE,
    COUNT,
    INSIDE,
    OUTLIER,
    RATE,
    SIZE,
    TRAINED,
)
from reproduction.run.fine_tuning import RECORD

CONTEXT = 32
HALF = 8
RATE_OF_ALL = 1e-2
ARGUMENTS = {"sizes": (2000, 14_000), "learning_rate": RATE_OF_ALL, "other_rates": (1e-6,)}
ARGUMENTS |= {"fixed_tokens": 14_000, "dup_counts": (1, 64)}
RUNS = training_runs(**ARGUMENTS)
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
def background(tokenizer) -> list[np.ndarray]:
    rng = np.random.default_rng(4)
    texts = [" ".join(rng.choice(WORDS, rng.integers(10, 30))) + "\n" for _ in range(600)]
    return [np.append(ids, tokenizer.eos_token_id) for ids in tokenize(tokenizer, texts)]


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
def trained(experiment, sets, background) -> dict[Run, Path]:
    return fine_tune_runs(experiment, RUNS, sets, background, batch_size=8)


@pytest.fixture(scope="module")
def scored(experiment, sets, trained) -> pd.DataFrame:
    base, parts = experiment.model("clean"), experiment.build / "parts"
    return score_runs(RUNS, sets, base, trained, parts, k=20, neighbours=1)


def _judged(scored: pd.DataFrame, **chosen: object) -> pd.DataFrame:
    for name, value in chosen.items():
        scored = scored[scored[name] == value]
    # Made-up words have no case, and moving them changes little: those two scores see less.
    names = ["loss", "min_k_20", "min_k_pp_20", "zlib"]
    rng = np.random.default_rng(0)
    return evaluate(scored[names], scored["member"], rng=rng).set_index("score")


def test_every_experiment_changes_one_thing() -> None:
    given = training_runs((300, 100), 1e-3, (1e-4, 1e-5), 100, (1, 4))
    runs = {
        name: [(r.corpus_tokens, r.learning_rate, r.dup_counts) for r in found]
        for name, found in given.items()
    }
    assert runs == {
        SIZE: [(100, 1e-3, (1,)), (300, 1e-3, (1,))],
        COUNT: [(100, 1e-3, (1, 4))],
        RATE: [(100, 1e-3, (1,)), (100, 1e-4, (1,)), (100, 1e-5, (1,))],
    }
    assert given[RATE][0] == given[SIZE][0]  # one run serves both
    every = {run for found in given.values() for run in found}
    assert len({run.name for run in every}) == len(every) == 5  # names are directories


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"sizes": (14_000,)}, r"sizes \[14000\]"),
        ({"dup_counts": (0, 1)}, "dup_counts"),
        ({"other_rates": (RATE_OF_ALL,)}, "other_rates"),
        ({"fixed_tokens": 200}, "fixed_tokens 200"),
    ],
)
def test_what_cannot_be_compared(changed: dict[str, object], named: str) -> None:
    with pytest.raises(InputError, match=named):
        training_runs(**(ARGUMENTS | changed))


def _places(stream: list[int], ids: list[int]) -> list[int]:
    return [i for i in range(len(stream)) if stream[i : i + len(ids)] == ids]


def test_every_copy_stands_whole_between_documents(sets, background, tokenizer) -> None:
    run = Run("some", 5000, 1e-3, (1, 3))
    blocks, same, other = (
        mixture(sets, background, run, tokenizer, context=CONTEXT, rng=np.random.default_rng(seed))
        for seed in (0, 0, 1)
    )
    assert (blocks == same).all()  # the generator alone decides the places
    assert (blocks != other).any()
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
    assert kept.tolist() == np.concatenate(background)[: len(kept)].tolist()


def test_one_epoch_at_a_constant_rate_on_texts_that_differ_in_one_thing(
    trained, monkeypatch, experiment, sets, background, tokenizer
) -> None:
    texts, settings = {}, {}

    def record(model, blocks, directory, **given):
        texts[directory.name], settings[directory.name] = np.stack(blocks), given
        return directory

    monkeypatch.setattr(measure, "fine_tune", record)
    fine_tune_runs(experiment, RUNS, sets, background, batch_size=8)
    assert sorted(texts) == sorted(path.name for path in trained.values())
    assert {(s["epochs"], s["batch_size"]) for s in settings.values()} == {(1, 8)}
    rates = {name: given["learning_rate"] for name, given in settings.items()}
    assert rates.pop("rate-1e-06") == 1e-6
    assert set(rates.values()) == {RATE_OF_ALL}
    assert (texts["rate-1e-06"] == texts["size-14000"]).all()
    assert texts["size-2000"].size == 2000 // CONTEXT * CONTEXT
    # Where duplication counts differ, no document is injected.
    (left,) = (one for one in sets if one.contaminant == INSIDE)
    ids = tokenize(tokenizer, left.members)[0].tolist()
    assert len(_places(texts["size-14000"].ravel().tolist(), ids)) == 1
    assert not _places(texts["dup-counts"].ravel().tolist(), ids)


def test_only_what_is_missing_or_changed_is_trained_again(trained, experiment, sets, background):
    weights = {run.name: path / "model.safetensors" for run, path in trained.items()}
    before = {name: (path.stat().st_mtime_ns, path.read_bytes()) for name, path in weights.items()}
    (trained[RUNS[SIZE][0]] / RECORD).unlink()  # as after a kill
    assert fine_tune_runs(experiment, RUNS, sets, background, batch_size=8) == trained
    again = {name for name, path in weights.items() if path.stat().st_mtime_ns != before[name][0]}
    assert again == {"size-2000"}
    assert all(path.read_bytes() == before[name][1] for name, path in weights.items())
    assert {p.parent for p in trained.values()} == {experiment.build / FOLDER}


def test_a_text_read_sixty_four_times_is_found(scored) -> None:
    for name in SETS[OUTLIER]:
        chosen = {"experiment": COUNT, "model": TRAINED, "dataset": name}
        often = _judged(scored, **chosen, dup_count=64)
        assert (often["auc"] > 0.95).all()
        assert (often[["members", "non_members"]] == [HALF // 2, HALF]).all(axis=None)
        once = _judged(scored, **chosen, dup_count=1)
        assert (once["auc"] < often["auc"]).all()


def test_every_text_is_where_it_belongs(scored) -> None:
    assert scored[["lowercase", "neighbour"]].notna().all(axis=None)
    counts = scored.groupby(["experiment", "model", "corpus_tokens", "learning_rate"]).size()
    outliers = len(SETS[OUTLIER])
    once = 2 * HALF
    # Non-members stand beside either duplication count, members beside their own.
    times = (HALF + 2 * HALF) * outliers
    assert counts.to_dict() == {
        (SIZE, BASE, 0, 0.0): once * (outliers + 1),
        (SIZE, TRAINED, 2000, RATE_OF_ALL): once * (outliers + 1),
        (SIZE, TRAINED, 14_000, RATE_OF_ALL): once * (outliers + 1),
        (RATE, BASE, 0, 0.0): once * outliers,
        (RATE, TRAINED, 14_000, 1e-6): once * outliers,
        (RATE, TRAINED, 14_000, RATE_OF_ALL): once * outliers,
        (COUNT, BASE, 0, 0.0): times,
        (COUNT, TRAINED, 14_000, RATE_OF_ALL): times,
    }
    members = scored[(scored["experiment"] == COUNT) & scored["member"]]
    assert (members["dup_count"] == np.where(members["text"] % 2, 64, 1)).all()
