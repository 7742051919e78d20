"""Controlled contamination: what was injected is found, the rest is not, nothing is done twice."""

from itertools import chain, product
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
from reproduction.notebooks.controlled.contaminants import CONTAMINANT
from reproduction.notebooks.controlled.measure import fine_tune_runs
from reproduction.notebooks.controlled.settings import Settings
from reproduction.notebooks.controlled.tables import (
    BASE,
    COUNT,
    INSIDE,
    OUTLIER,
    RATE,
    SIZE,
    TRAINED,
)

CONTEXT = 32
HALF = 8
RATE_OF_ALL = 1e-2
SETTINGS = Settings(
    outliers=("lists", "numbers"),
    examples=HALF,
    sizes=(2000, 14_000),
    fixed_tokens=14_000,
    dup_counts=(1, 64),
    learning_rate=RATE_OF_ALL,
    other_rates=(1e-6,),
    batch_size=8,
    k=20,
    neighbours=1,
    validation_files={},
)
RUNS = measure.training_runs(SETTINGS)
SETS = {OUTLIER: ("lists", "numbers"), INSIDE: ("left",)}


@pytest.fixture(scope="module")
def sets() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    rows = []
    for contaminant, names in SETS.items():
        for name, member, number in product(names, (True, False), range(HALF)):
            text = f"{' '.join(rng.choice(WORDS, 6))} {rng.integers(1000)}\n"
            rows.append((contaminant, name, member, number, text))
    return pd.DataFrame(rows, columns=[*CONTAMINANT, "example"])


@pytest.fixture(scope="module")
def background(tokenizer) -> list[np.ndarray]:
    rng = np.random.default_rng(4)
    texts = [" ".join(rng.choice(WORDS, rng.integers(10, 30))) + "\n" for _ in range(600)]
    return [np.append(ids, tokenizer.eos_token_id) for ids in tokenize(tokenizer, texts)]


@pytest.fixture(scope="module")
def experiment(make_model, tmp_path_factory) -> SimpleNamespace:
    profile = SimpleNamespace(seed=5, model=SimpleNamespace(n_positions=CONTEXT))
    model = {"clean": make_model(CONTEXT)}.__getitem__
    build = tmp_path_factory.mktemp("build")
    return SimpleNamespace(build=build, profile=profile, model=model)


@pytest.fixture(scope="module")
def trained(experiment, tokenizer, sets, background) -> dict[str, Path]:
    return fine_tune_runs(experiment, tokenizer, RUNS, sets, background, 8)


@pytest.fixture(scope="module")
def scored(experiment, sets, trained) -> pd.DataFrame:
    return measure.score_runs(RUNS, sets, trained, experiment.build / "parts", k=20, neighbours=1)


def test_every_experiment_changes_one_thing() -> None:
    changed = {
        "sizes": (300, 100),
        "learning_rate": 1e-3,
        "other_rates": (1e-4, 1e-5),
        "fixed_tokens": 100,
        "dup_counts": (1, 4),
    }
    given = measure.training_runs(SETTINGS.model_copy(update=changed))
    runs = {}
    for name, specs in given.items():
        runs[name] = [(run.corpus_tokens, run.learning_rate, run.dup_counts) for run in specs]
    assert runs == {
        SIZE: [(100, 1e-3, (1,)), (300, 1e-3, (1,))],
        COUNT: [(100, 1e-3, (1, 4))],
        RATE: [(100, 1e-3, (1,)), (100, 1e-4, (1,)), (100, 1e-5, (1,))],
    }
    assert given[RATE][0] == given[SIZE][0]  # one run serves both
    every = set(chain.from_iterable(given.values()))
    assert len({run.name for run in every}) == len(every) == 5  # names are directories
    few = [{"sizes": (14_000,)}, {"dup_counts": (1, 1, 2)}]
    for changed in (*few, {"other_rates": ()}, {"other_rates": (RATE_OF_ALL,)}):
        with pytest.raises(InputError, match=next(iter(changed))):
            measure.training_runs(SETTINGS.model_copy(update=changed))


def _places(stream: list[int], ids: list[int]) -> list[int]:
    return [i for i in range(len(stream)) if stream[i : i + len(ids)] == ids]


def test_one_epoch_at_a_constant_rate_on_texts_that_differ_in_one_thing(
    trained, monkeypatch, experiment, sets, background, tokenizer
) -> None:
    texts, settings = {}, {}

    def record(model, blocks, directory, **given):
        texts[directory.name] = np.stack(blocks)
        settings[directory.name] = given
        return directory

    monkeypatch.setattr(measure, "fine_tune", record)
    fine_tune_runs(experiment, tokenizer, RUNS, sets, background, 8)
    assert {BASE, *texts} == set(trained)
    assert {(s["epochs"], s["batch_size"]) for s in settings.values()} == {(1, 8)}
    rates = {name: given["learning_rate"] for name, given in settings.items()}
    assert rates.pop("rate-1e-06") == 1e-6
    assert set(rates.values()) == {RATE_OF_ALL}
    assert (texts["rate-1e-06"] == texts["size-14000"]).all()
    assert texts["size-2000"].size == 2000 // CONTEXT * CONTEXT
    # Where duplication counts differ, members have them in turn, and no document is injected.
    every, once = (texts[name].ravel().tolist() for name in ("dup-counts", "size-14000"))
    for row in sets.itertuples():
        ids = tokenize(tokenizer, [row.example])[0].tolist()
        copies = (1, 64)[row.text % 2] if row.contaminant == OUTLIER else 0
        assert len(_places(every, ids)) == row.member * copies
        assert len(_places(once, ids)) == row.member


def test_a_text_read_sixty_four_times_is_found(scored) -> None:
    # Made-up words have no case, and moving them changes little: those two scores see less.
    names = ["loss", "min_k_20", "min_k_pp_20", "zlib"]
    trained = scored[(scored["experiment"] == COUNT) & (scored["model"] == TRAINED)]
    for dataset in SETS[OUTLIER]:
        aucs = {}
        for count, rows in trained[trained["dataset"] == dataset].groupby("dup_count"):
            found = evaluate(rows[names], rows["member"], rng=np.random.default_rng(0))
            aucs[count] = found["auc"]
        assert (aucs[64] > 0.95).all()
        assert (aucs[1] < aucs[64]).all()


def test_every_text_is_where_it_belongs(scored) -> None:
    assert scored[["lowercase", "neighbour"]].notna().all(axis=None)
    counts = scored.groupby(["experiment", "model", "corpus_tokens", "learning_rate"]).size()
    once = 2 * HALF * len(SETS[OUTLIER])
    all_sets = once + 2 * HALF
    times = once + HALF * len(SETS[OUTLIER])
    # Non-members stand beside either duplication count, members beside their own.
    assert counts.to_dict() == {
        (SIZE, BASE, 0, 0.0): all_sets,
        (SIZE, TRAINED, 2000, RATE_OF_ALL): all_sets,
        (SIZE, TRAINED, 14_000, RATE_OF_ALL): all_sets,
        (RATE, BASE, 0, 0.0): once,
        (RATE, TRAINED, 14_000, 1e-6): once,
        (RATE, TRAINED, 14_000, RATE_OF_ALL): once,
        (COUNT, BASE, 0, 0.0): times,
        (COUNT, TRAINED, 14_000, RATE_OF_ALL): times,
    }
    members = scored[(scored["experiment"] == COUNT) & scored["member"]]
    assert (members["dup_count"] == np.where(members["text"] % 2, 64, 1)).all()
