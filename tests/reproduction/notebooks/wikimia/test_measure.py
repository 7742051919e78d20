"""The scores of Table 1: what is planted is found, what nobody read is not; unavailable sets."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from contamination.errors import InputError
from contamination.scoring.models import ModelEntry
from contamination.testsets.tokens import tokenize
from fakes.made_up_scorer import log_probs_of
from fakes.opening import Opening
from reproduction.notebooks.wikimia.measure import (
    NO_MODEL,
    SCORES,
    Scoring,
    score_models,
    tables_of,
)
from reproduction.notebooks.wikimia.tables import FIELDS, table1_layout, wikimia_table
from reproduction.notebooks.wikimia.texts import Part
from reproduction.run.fine_tuning import fine_tune
from reproduction.run.grid import ACCESS

WORDS = ["apple", "River", "stone", "Cloud", "lamp", "Green", "tower", "Quiet", "orbit", "maple"]
ENTRY = ModelEntry("made-up", "made-up", parameters=17)


def texts_of(count: int, seed: int, words: int = 32) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, size=words)) for _ in range(count)]


def part_of(source: str, members: list[str], others: list[str], length: int = 32) -> Part:
    labels = (True,) * len(members) + (False,) * len(others)
    return Part(source, "original", length, (*members, *others), labels)


def run(models, parts, references=None, access=ACCESS, neighbours=0) -> pd.DataFrame:
    with TemporaryDirectory() as folder:
        scoring = Scoring(access=access, neighbours=neighbours)
        rows = score_models(models, parts, Path(folder), references or {}, scoring)
    return wikimia_table(*tables_of(rows), rng=np.random.default_rng(1), resamples=200)


@pytest.fixture
def access(tokenizer) -> Opening:
    lost = InputError("gone: no such model")
    lost.__cause__ = ConnectionError("no way out")
    return Opening(tokenizer, gone=lost)


@pytest.fixture(scope="module")
def planted(make_model, tokenizer, tmp_path_factory) -> pd.DataFrame:
    blank = make_model(128)
    members, others, more = (texts_of(20, seed) for seed in (1, 2, 3))
    ids = tokenize(tokenizer, members)
    ids = [one[: min(map(len, ids))] for one in ids]
    directory = tmp_path_factory.mktemp("tuned")
    tuned = fine_tune(blank, ids, directory, epochs=40, learning_rate=5e-3, seed=0)
    return run(
        [ModelEntry("blank", str(blank)), ModelEntry("tuned", str(tuned))],
        [part_of("planted", members, others), part_of("control", more, others)],
        references={"tuned": ModelEntry("blank", str(blank))},
        neighbours=4,
    )


def cells(table: pd.DataFrame, model: str, source: str) -> pd.DataFrame:
    return table[(table["model"] == model) & (table["source"] == source)].set_index("score")


def test_texts_read_again_and_again_are_members_and_others_are_not(planted) -> None:
    found = cells(planted, "tuned", "planted")
    assert list(found.index) == list(SCORES)
    assert found["auc"].min() > 0.95
    assert found.loc[["loss", "min_k_20", "neighbour"], "tpr_at_5_fpr"].min() > 0.9
    assert set(found["status"]) == {"ok"}
    assert set(found["reference"]) == {"blank"}
    for model, source in (("tuned", "control"), ("blank", "planted"), ("blank", "control")):
        found = cells(planted, model, source)
        assert (found["auc_low"] <= 0.5).all(), (model, source)
        assert (found["auc_high"] >= 0.5).all(), (model, source)


def test_the_auc_is_that_of_the_loss_without_a_reference_too(access, tokenizer) -> None:
    part = part_of("p", texts_of(7, 1), texts_of(5, 2))
    table = run([ENTRY], [part], {"made-up": ModelEntry("gone", "gone")}, access)
    values = [np.sort(log_probs_of(ids)[1:]) for ids in tokenize(tokenizer, part.texts)]
    losses = [one.mean() for one in values]
    lowest = [one[: max(1, len(one) // 5)].mean() for one in values]
    found = table.set_index("score")["auc"]
    assert list(found.index) == ["loss", "zlib", "lowercase", "min_k_20"]
    assert found["loss"] == pytest.approx(roc_auc_score(part.members, losses))
    assert found["min_k_20"] == pytest.approx(roc_auc_score(part.members, lowest))
    facts = {"parameters": 17, "text_revision": part.revision, "status": "ok"}
    facts["reference"] = "gone (not run here: gone: no such model)"
    for name, value in facts.items():
        assert set(table[name]) == {value}


def test_a_text_of_several_parts_is_read_once(access) -> None:
    members = texts_of(4, 1)
    others = texts_of(3, 2)
    parts = [part_of("a", members, others), part_of("b", texts_of(4, 5), others)]
    both = run([ENTRY], parts, access=access)
    assert access.scorers["made-up"].scored == 2 * (4 + 3 + 4)  # as it stands, and in lower case
    alone = run([ENTRY], parts[1:], access=access)
    assert both.loc[both["source"] == "b", "auc"].tolist() == alone["auc"].tolist()


def test_without_a_part_or_a_model_rows_say_so(access) -> None:
    lost = Part("wikimia", "paraphrased", 64, status="not run here: no hub")
    table = run([ENTRY], [lost, part_of("short", ["a"], ["a b c"])], access=access)
    assert table["model"].tolist() == ["", "made-up"]
    assert table["auc"].isna().all()
    assert table["status"].str.match("not run here: no hub|failed: text 0 has 1 token").all()
    assert list(run([], [lost, part_of("p", ["a"], ["b"])])["status"]) == [lost.status, NO_MODEL]


def test_several_benchmarks_are_named_and_controls_of_them() -> None:
    cells = [("a", 0.6, "wikimia"), ("a", 0.7, "mine"), ("c", 0.8, "control (wikimia)")]
    rows = pd.DataFrame(cells, columns=["model", "auc", "source"], dtype=object)
    rows = rows.assign(score="loss", variant="original", length=64, status="ok")
    rows = rows.assign(auc_low=rows["auc"] - 0.1, auc_high=rows["auc"] + 0.1)
    both = pd.concat([rows, rows[2:].assign(variant="paraphrased")]).reindex(columns=list(FIELDS))
    shown = table1_layout(both, 64)
    judged, controls = ["wikimia: a, Ori.", "mine: a, Ori."], "c, control (wikimia)"
    assert list(shown)[1:] == [*judged, controls, f"{controls}, Para.", "Average"]
    assert shown["Average"].tolist() == ["0.65"]
