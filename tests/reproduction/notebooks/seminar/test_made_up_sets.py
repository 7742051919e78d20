import itertools

import numpy as np
import pytest

from contamination.errors import InputError
from reproduction.notebooks.seminar import made_up_sets
from reproduction.notebooks.seminar.classroom import records_as_set
from reproduction.notebooks.seminar.made_up_sets import (
    TOWNS,
    by_physical_line,
    made_up_documents,
    made_up_records,
    numbered,
    sorted_by,
)

SET = records_as_set("made up", 9, rng=np.random.default_rng(0))


def test_records_are_drawn_independently_and_reproducibly():
    records = made_up_records(400, rng=np.random.default_rng(3))
    assert records == made_up_records(400, rng=np.random.default_rng(3))
    assert records != made_up_records(400, rng=np.random.default_rng(4))
    same_town = np.mean([a["town"] == b["town"] for a, b in itertools.pairwise(records)])
    assert same_town == pytest.approx(1 / len(TOWNS), abs=0.05)
    assert len({record["question"] for record in records}) > 380


def test_records_of_a_document_share_their_town():
    documents = made_up_documents(30, 6, rng=np.random.default_rng(0))
    assert [len(records) for records in documents] == [6] * 30
    assert all(len({record["town"] for record in records}) == 1 for records in documents)
    assert len({records[0]["town"] for records in documents}) > 5
    assert all(
        record["answer"].endswith(f" in {record['town']}") for d in documents for record in d
    )


def test_no_list_repeats_a_word():
    lists = [words for words in vars(made_up_sets).values() if isinstance(words, tuple)]
    assert len(lists) == 7
    assert all(len(set(words)) == len(words) for words in lists)


def test_bad_input():
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match="0 records wanted"):
        made_up_records(0, rng=rng)
    with pytest.raises(InputError, match="0 documents wanted"):
        made_up_documents(0, 6, rng=rng)
    with pytest.raises(InputError, match="no field 'village'"):
        sorted_by(SET, "village")


def test_every_line_becomes_an_example():
    lines = by_physical_line(SET)
    assert len(lines.examples) == 18
    assert "".join(lines.examples) == "".join(SET.examples)
    assert lines.examples[0].startswith("Question: ")
    assert lines.examples[1].startswith("Answer: ")


def test_sorting_moves_records_with_their_examples():
    towns = sorted_by(SET, "town")
    assert [r["town"] for r in towns.records] == sorted(r["town"] for r in SET.records)
    assert sorted(towns.examples) == sorted(SET.examples)
    pairs = zip(towns.records, towns.examples, strict=True)
    assert all(record["question"] in example for record, example in pairs)


def test_numbers_count_from_one_and_each_is_another_test_set():
    assert numbered(SET).examples[8] == f"9. {SET.examples[8]}"
    spoiled = [SET, by_physical_line(SET), sorted_by(SET, "town"), numbered(SET)]
    assert len({each.revision for each in spoiled}) == len({each.name for each in spoiled}) == 4
