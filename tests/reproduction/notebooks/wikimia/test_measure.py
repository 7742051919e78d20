"""The scores of Table 1: what is planted is found, what nobody read is not; what cannot be had."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from contamination.errors import InputError
from contamination.scoring.models import ModelEntry
from contamination.testsets.tokens import tokenize
from fakes.made_up_scorer import MadeUpScorer, log_probs_of
from reproduction.notebooks.wikimia.benchmark import SCORES, Part
from reproduction.notebooks.wikimia.measure import NO_MODEL, score_models
from reproduction.notebooks.wikimia.tables import FIELDS, wikimia_table
from reproduction.run.fine_tuning import fine_tune
from reproduction.run.grid import ACCESS, Access
from reproduction.run.tokenizer import train_tokenizer

WORDS = ["apple", "River", "stone", "Cloud", "lamp", "Green", "tower", "Quiet", "orbit", "maple"]
ENTRY = ModelEntry("made-up", "made-up", parameters=17)


def texts_of(count: int, seed: int, words: int = 32) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, size=words)) for _ in range(count)]


def part_of(source: str, members: list[str], others: list[str], length: int = 32) -> Part:
    labels = (True,) * len(members) + (False,) * len(others)
    return Part(source, "original", length, (*members, *others), labels)


def run(models, parts, *, resamples=200, access=ACCESS, **options) -> pd.DataFrame:
    with TemporaryDirectory() as folder:
        found = score_models(models, parts, Path(folder), access=access, **options)
    return wikimia_table(*found, rng=np.random.default_rng(1), resamples=resamples)


class Opening(Access):
    """Opens the scorers that it has by the name of their model; no other model can be had."""

    def __init__(self, tokenizer) -> None:
        self.known = {"made-up": MadeUpScorer(tokenizer)}

    def open_model(self, entry: ModelEntry) -> MadeUpScorer:
        if entry.name not in self.known:
            raise InputError(f"{entry.name}: no such model") from ConnectionError("no way out")
        return self.known[entry.name]


@pytest.fixture
def access(tokenizer) -> Opening:
    return Opening(tokenizer)


@pytest.fixture(scope="module")
def planted(make_model, tokenizer, tmp_path_factory) -> pd.DataFrame:
    """Scores of a model that has read 20 texts again and again, beside those it never saw."""
    blank = make_model(128)
    members, others, more = (texts_of(20, seed) for seed in (1, 2, 3))
    ids = tokenize(tokenizer, members)
    shortest = min(map(len, ids))
    assert shortest < 128
    ids = [one[:shortest] for one in ids]
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


def test_texts_that_were_read_again_and_again_are_members(planted: pd.DataFrame) -> None:
    found = cells(planted, "tuned", "planted")
    assert list(found.index) == list(SCORES)
    assert found["auc"].min() > 0.95
    assert found.loc[["loss", "min_k_20", "neighbour"], "tpr_at_5_fpr"].min() > 0.9
    assert set(found["status"]) == {"ok"}
    assert set(found["members"]) == set(found["non_members"]) == {20}
    assert set(found["reference"]) == {"blank"}


def test_texts_that_nobody_read_are_not(planted: pd.DataFrame) -> None:
    for model, source in (("tuned", "control"), ("blank", "planted"), ("blank", "control")):
        found = cells(planted, model, source)
        assert (found["auc_low"] <= 0.5).all(), (model, source)
        assert (found["auc_high"] >= 0.5).all(), (model, source)


def test_the_auc_is_that_of_the_loss(access, tokenizer) -> None:
    part = part_of("p", texts_of(7, 1), texts_of(5, 2))
    table = run([ENTRY], [part], access=access)
    values = [np.sort(log_probs_of(ids)[1:]) for ids in tokenize(tokenizer, part.texts)]
    losses = [one.mean() for one in values]
    lowest = [one[: max(1, len(one) // 5)].mean() for one in values]
    found = table.set_index("score")["auc"]
    assert found["loss"] == pytest.approx(roc_auc_score(part.members, losses))
    assert found["min_k_20"] == pytest.approx(roc_auc_score(part.members, lowest))
    assert list(found.index) == ["loss", "zlib", "lowercase", "min_k_20"]
    assert tuple(table.columns) == FIELDS
    assert set(table["parameters"]) == {17}
    assert set(table["text_revision"]) == {part.revision}


def test_a_text_of_several_parts_is_read_once(access) -> None:
    members, others = texts_of(4, 1), texts_of(3, 2)
    parts = [part_of("a", members, others), part_of("b", texts_of(4, 5), others)]
    both = run([ENTRY], parts, access=access)
    assert access.known["made-up"].scored == 2 * (4 + 3 + 4)  # as it stands, and in lower case
    alone = run([ENTRY], parts[1:], access=access)
    columns = ["score", "auc", "members", "non_members"]
    second = both.loc[both["source"] == "b", columns].reset_index(drop=True)
    pd.testing.assert_frame_equal(second, alone[columns])


def test_other_tokens_are_compared_by_bytes(access, prose) -> None:
    access.known["small"] = MadeUpScorer(train_tokenizer(prose[:20], 280))
    part = part_of("p", texts_of(6, 1), texts_of(6, 2))
    table = run(
        [ENTRY], [part], references={"made-up": ModelEntry("small", "small")}, access=access
    )
    sums = [
        [log_probs_of(ids).sum() for ids in tokenize(one.tokenizer, part.texts)]
        for one in access.known.values()
    ]
    per_byte = (np.array(sums[0]) - sums[1]) / [len(text.encode()) for text in part.texts]
    found = table.set_index("score").loc["reference_difference"]
    assert found["auc"] == pytest.approx(roc_auc_score(part.members, per_byte))
    assert found["reference"] == "small"


def test_what_cannot_be_had_or_scored_does_not_stop_the_rest(access) -> None:
    lost = "not run here: no hub"
    parts = [
        Part("wikimia", "paraphrased", 64, status=lost),
        part_of("short", ["a"], ["a b c"]),
        part_of("p", texts_of(4, 1), texts_of(4, 2)),
    ]
    table = run([ModelEntry("gone", "gone"), ENTRY], parts, access=access)
    alone, *rest = table[["model", "source", "score", "status"]].values.tolist()
    assert alone == ["", "wikimia", "", lost]
    gone = "not run here: gone: no such model"
    assert rest[:2] == [["gone", "short", "", gone], ["gone", "p", "", gone]]
    assert rest[2][:3] == ["made-up", "short", ""]
    assert rest[2][3].startswith("failed: text 0 has 1 token(s)")
    assert {tuple(row[:2] + row[3:]) for row in rest[3:]} == {("made-up", "p", "ok")}
    assert table["auc"].notna().tolist() == [False] * 4 + [True] * 4
    assert list(run([], parts)["status"]) == [lost, NO_MODEL, NO_MODEL]
    assert list(run([], []).columns) == list(FIELDS)


def test_a_reference_that_cannot_be_had_costs_its_score_alone(access) -> None:
    part = part_of("p", texts_of(4, 1), texts_of(4, 2))
    table = run([ENTRY], [part], references={"made-up": ModelEntry("gone", "gone")}, access=access)
    assert list(table["score"]) == ["loss", "zlib", "lowercase", "min_k_20"]
    assert set(table["status"]) == {"ok"}
    assert set(table["reference"]) == {"gone (not run here: gone: no such model)"}
