"""One tiny model reads a set until no test can miss it; the other stays blind to it.

What the notebook shows is what the functions say. Choosing afterwards does not keep the level.
"""

import numpy as np
import pytest

from contamination.errors import InputError
from reproduction.notebooks.seminar import classroom as module
from reproduction.notebooks.seminar.classroom import open_classroom
from reproduction.notebooks.seminar.made_up_sets import (
    by_physical_line,
    made_up_set,
    numbered,
    sorted_by,
)
from reproduction.notebooks.seminar.tables import chosen_afterwards, power_table

SETTINGS = {"dup_counts": [1, 150], "examples": 12, "documents": 60, "seed": 3}


@pytest.fixture(scope="module")
def classroom(tmp_path_factory):
    """Train for a few seconds: one set is read so often that no test can miss it."""
    return open_classroom(tmp_path_factory.mktemp("seminar"), **SETTINGS)


def test_the_same_classroom_is_not_trained_twice(classroom, monkeypatch):
    monkeypatch.setattr(module, "train", lambda *args, **kwargs: pytest.fail("trained again"))
    again = open_classroom(classroom.directory.parent, **SETTINGS)
    assert again.directory == classroom.directory
    before = [test_set.revision for test_set in classroom.sets.values()]
    assert [test_set.revision for test_set in again.sets.values()] == before


def test_another_recipe_is_trained_anew(classroom, monkeypatch):
    trained = []
    monkeypatch.setattr(module, "train", lambda *args, label, **kwargs: trained.append(label))
    monkeypatch.setattr(module, "RECIPE", module.RECIPE + 1)
    again = open_classroom(classroom.directory.parent, **SETTINGS)
    assert again.directory != classroom.directory
    assert len(trained) == 2


def test_the_clean_model_reads_no_copy(tmp_path, monkeypatch):
    streams = {}

    def keep(tokens, tokenizer, shape, spec, directory, **kwargs):
        streams[directory.name] = tokenizer.decode(tokens)

    monkeypatch.setattr(module, "train", keep)
    room = open_classroom(tmp_path, dup_counts=[2, 3], examples=3, documents=20, seed=0)
    for name, count in room.dup_counts.items():
        whole = "".join(room.sets[name].examples)
        assert streams["contaminated"].count(whole) == count
        assert not any(example in streams["clean"] for example in room.sets[name].examples)


SET = made_up_set("made up", 9, rng=np.random.default_rng(0))


def test_records_of_a_document_share_their_town():
    document = made_up_set("d", 6, rng=np.random.default_rng(0), towns=["Cusk"])
    assert len(document.records) == 6
    assert all(record["answer"].endswith(" in Cusk") for record in document.records)
    assert len({record["town"] for record in SET.records}) > 3


def test_spoiled_sets_keep_their_records_and_are_other_sets():
    lines = by_physical_line(SET)
    towns = sorted_by(SET, "town")
    assert "".join(lines.examples) == "".join(SET.examples)
    assert [text.partition(":")[0] for text in lines.examples] == ["Question", "Answer"] * 9
    assert [r["town"] for r in towns.records] == sorted(r["town"] for r in SET.records)
    pairs = zip(towns.records, towns.examples, strict=True)
    assert all(record["question"] in example for record, example in pairs)
    assert numbered(SET).examples[8] == f"9. {SET.examples[8]}"
    assert len({each.revision for each in (SET, lines, towns, numbered(SET))}) == 4


@pytest.mark.parametrize("counts", [[], [1, 1], [0, 4]])
def test_bad_counts(counts):
    with pytest.raises(InputError, match="dup_counts"):
        open_classroom(".", **SETTINGS | {"dup_counts": counts})


def test_power_table_has_every_test_of_every_set_under_both_models(classroom):
    rows = power_table(classroom, shards=3, permutations=20, whole_set_permutations=30)
    found = rows.set_index(["model", "dataset", "test"])["p"].sort_index()
    assert found["contaminated", "x150", "permutation"] == pytest.approx(1 / 31)
    assert found["contaminated", "x150", "sharded_exact"] < 0.002
    assert found["contaminated", "x150", "successor"] < 0.002
    assert min(found["clean"].min(), found["contaminated", "x1"].min()) > 0.002


def test_the_best_of_many_rejects_too_often_and_the_corrected_ones_do_not():
    scores = np.random.default_rng(1).normal(size=(6, 5, 20))
    p = chosen_afterwards(scores, trials=50, rng=np.random.default_rng(0))
    rates = (p <= 0.1).mean()
    assert rates["best, as it is"] > 0.25
    assert rates[["fixed in advance", "best, times q", "min_p"]].max() < 0.2
    assert (p["best, as it is"] <= p["fixed in advance"]).all()
    assert (p["best, times q"] == np.minimum(1, 6 * p["best, as it is"])).all()
