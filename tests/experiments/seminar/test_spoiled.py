import numpy as np
import pytest

from contamination.errors import InputError
from contamination.experiments.seminar.classroom import records_as_set
from contamination.experiments.seminar.spoiled import by_physical_line, numbered, sorted_by

SET = records_as_set("made up", 9, rng=np.random.default_rng(0))


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


def test_numbers_count_from_one():
    assert numbered(SET).examples[8] == f"9. {SET.examples[8]}"


def test_each_is_another_test_set():
    spoiled = [SET, by_physical_line(SET), sorted_by(SET, "town"), numbered(SET)]
    assert len({each.revision for each in spoiled}) == len({each.name for each in spoiled}) == 4


def test_an_unknown_field_is_told():
    with pytest.raises(InputError, match="no field 'village'"):
        sorted_by(SET, "village")
