"""One tiny model reads a set until no test can miss it; the other stays blind to it."""

import numpy as np
import pytest

from contamination.errors import InputError
from contamination.statistics import sharded_exact_test
from reproduction.notebooks.seminar import classroom as module
from reproduction.notebooks.seminar.classroom import (
    MODELS,
    by_physical_line,
    made_up_documents,
    made_up_records,
    numbered,
    open_classroom,
    records_as_set,
    sorted_by,
)

SETTINGS = {"dup_counts": [1, 150], "examples": 12, "documents": 60, "seed": 3}  # of `classroom`


def _differences(log_probs):
    return log_probs[:, 0] - log_probs[:, 1:].mean(axis=1)


def test_only_the_planted_set_under_the_model_that_read_it_rejects(classroom):
    p, means = {}, {}
    for model in MODELS:
        for name, test_set in classroom.sets.items():
            scores = classroom.log_probs(model, test_set, shards=3, permutations=20)
            assert scores.shape == (3, 21)
            p[model, name] = sharded_exact_test(scores).p
            means[model, name] = _differences(scores).mean()
    assert p.pop(("contaminated", "x150")) < 0.002
    assert min(p.values()) > 0.002
    assert means["contaminated", "x150"] > 5
    assert abs(means["clean", "x150"]) < 5


def test_the_same_classroom_is_not_trained_twice(classroom, monkeypatch):
    monkeypatch.setattr(module, "train", lambda *args, **kwargs: pytest.fail("trained again"))
    again = open_classroom(classroom.directory.parent, **SETTINGS)
    assert again.directory == classroom.directory
    revisions = [[one.revision for one in room.sets.values()] for room in (again, classroom)]
    assert revisions[0] == revisions[1]


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


# --- the made-up world ----------------------------------------------------------------------------

SET = records_as_set("made up", 9, rng=np.random.default_rng(0))


def test_records_of_a_document_share_their_town():
    documents = made_up_documents(30, 6, rng=np.random.default_rng(0))
    assert [len(records) for records in documents] == [6] * 30
    assert all(len({record["town"] for record in records}) == 1 for records in documents)
    assert len({records[0]["town"] for records in documents}) > 5
    assert all(
        record["answer"].endswith(f" in {record['town']}") for d in documents for record in d
    )


def test_spoiled_sets_keep_their_records_and_are_other_sets():
    lines, towns = by_physical_line(SET), sorted_by(SET, "town")
    assert "".join(lines.examples) == "".join(SET.examples)
    assert [text.partition(":")[0] for text in lines.examples] == ["Question", "Answer"] * 9
    assert [r["town"] for r in towns.records] == sorted(r["town"] for r in SET.records)
    pairs = zip(towns.records, towns.examples, strict=True)
    assert all(record["question"] in example for record, example in pairs)
    assert numbered(SET).examples[8] == f"9. {SET.examples[8]}"
    assert len({each.revision for each in (SET, lines, towns, numbered(SET))}) == 4


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda rng: made_up_records(0, rng=rng), "0 records"),
        (lambda rng: made_up_documents(0, 6, rng=rng), "0 documents"),
        (lambda rng: sorted_by(SET, "village"), "'village'"),
        *(
            (lambda rng, c=c: open_classroom(".", **SETTINGS | {"dup_counts": c}), "dup_counts")
            for c in ([], [1, 1], [0, 4])
        ),
    ],
)
def test_bad_input(call, named):
    with pytest.raises(InputError, match=named):
        call(np.random.default_rng(0))
