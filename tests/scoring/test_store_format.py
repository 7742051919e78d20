from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contamination.errors import InputError
from contamination.scoring import store_format
from contamination.scoring.store_format import (
    SCHEMA,
    Header,
    may_hold,
    part_name,
    read_units,
    write_part,
)
from contamination.testsets.orderings import ordering
from fakes.made_up_store import COLUMNS, HEADER, SUCCESSORS, rows, unit, units


def test_an_ordering_is_the_one_that_the_header_names():
    for shard, bounds in enumerate([(0, 3), (3, 5)]):
        for index in range(4):
            expected = ordering(bounds, index, seed=1, dataset="data-1", shard=shard)
            np.testing.assert_array_equal(HEADER.examples((shard, index)), expected)
            assert HEADER.examples((shard, index)).dtype == np.int32


def test_successors_are_the_other_examples_of_the_shard():
    found = [SUCCESSORS.examples(unit).tolist() for unit in SUCCESSORS.units(0)]
    assert found == [[1, 2], [0, 2], [0, 1], [4], [3]]


def read_rows(directory, table: list[dict], header: Header = HEADER):
    """Read any rows as a part, which no code of the package would write."""
    path, schema = directory / "part.parquet", SCHEMA.with_metadata({"key": header.key})
    pq.write_table(pa.Table.from_pylist(table, schema=schema), path)
    return list(read_units(path, header))


def refuse(directory, table: list[dict], header: Header = HEADER) -> None:
    with pytest.raises(InputError, match="damaged"):
        read_rows(directory, table, header)


@pytest.mark.parametrize("header", [HEADER, SUCCESSORS], ids=["orderings", "successors"])
@pytest.mark.parametrize("row_group", [1, 4, 1 << 16])
def test_every_token_comes_back_with_its_example_and_position(
    tmp_path, monkeypatch, header, row_group
):
    monkeypatch.setattr(store_format, "ROW_GROUP", row_group)
    items = units(2, header)
    path = write_part(tmp_path, header, items)
    table = pq.read_table(path)
    assert table.to_pylist() == rows(items, header)
    assert [str(t) for t in table.schema.types] == ["int32"] * 4 + ["float"]
    for found, (index, examples, values) in zip(read_units(path, header), items, strict=True):
        assert found.unit == index
        np.testing.assert_array_equal(found.logprob, values)
        np.testing.assert_array_equal(found.example[found.position == 0], examples)


@pytest.mark.parametrize("row_group", [1, 4, 1 << 16])
def test_a_shard_and_the_first_orderings_can_be_read_alone(tmp_path, monkeypatch, row_group):
    monkeypatch.setattr(store_format, "ROW_GROUP", row_group)
    path = write_part(tmp_path, HEADER, units(3))
    assert [u.unit for u in read_units(path, HEADER, 1, 1)] == [(1, 0), (1, 1)]
    assert [u.unit for u in read_units(path, HEADER, None, 0)] == [(0, 0), (1, 0)]
    assert list(read_units(path, HEADER, 7, None)) == []


def test_a_name_tells_what_a_part_may_hold(tmp_path):
    path = tmp_path / part_name((2, 5), (4, 1))
    assert path.name == "part-00002.00005-00004.00001.parquet"
    assert [shard for shard in range(7) if may_hold(path, shard, None)] == [2, 3, 4]
    assert may_hold(path, None, 0)  # it holds all of shard 3
    alone = tmp_path / part_name((2, 5), (2, 9))
    assert [m for m in range(3, 8) if may_hold(alone, 2, m)] == [5, 6, 7]
    assert may_hold(tmp_path / "part-of-what.parquet", 0, 0)  # so that it is found damaged


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_not_finite_is_refused_before_anything_is_written(tmp_path, value):
    items = units(1)
    items[2][2][1] = value
    with pytest.raises(InputError, match=r"^m: .* ordering 0 of shard 1 of d is not finite"):
        write_part(tmp_path, HEADER, items)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def part(tmp_path_factory):
    return write_part(tmp_path_factory.mktemp("part"), HEADER, units(2))


class TestDamage:
    def test_another_name_or_type_of_a_column_is_damage(self, part, tmp_path):
        table = pq.read_table(part)
        names = [*COLUMNS[:2], "position", "example", "logprob"]
        wide = table.set_column(3, "position", table["position"].cast(pa.int64()))
        for changed in (table.rename_columns(names), wide):
            changed = changed.replace_schema_metadata({"key": HEADER.key})
            pq.write_table(changed, tmp_path / part.name)
            with pytest.raises(InputError, match="damaged"):
                list(read_units(tmp_path / part.name, HEADER))

    def test_rows_as_they_should_be_are_read(self, tmp_path):
        """Without this, the refusals below would prove nothing."""
        assert len(read_rows(tmp_path, rows(units(1)))) == 4

    @pytest.mark.parametrize(
        "change",
        [
            lambda table: table[:-1],  # a token is missing at the end
            lambda table: table[:2] + table[3:],  # ... within
            lambda table: table[6:] + table[:6] + table[6:12],  # a unit twice
            lambda table: [row | {"logprob": float("nan")} for row in table],
            lambda table: [row | {"example": row["example"] + 9} for row in table],
            lambda table: [row | {"shard": row["shard"] + 1} for row in table],
            lambda table: [table[0], table[2], table[1], *table[3:]],  # 0, 2, 1 in an example
            lambda table: [row | {"ordering": 1 - row["ordering"]} for row in table],  # canonical?
        ],
    )
    def test_rows_that_are_not_whole_units_are_damage(self, tmp_path, change):
        refuse(tmp_path, change(rows(units(1))))

    def test_an_example_twice_and_another_not_at_all_is_damage(self, tmp_path):
        header = replace(HEADER, example_tokens=(2, 2, 2, 4, 2))
        index, examples, values = unit((0, 1), header)
        refuse(tmp_path, rows([(index, examples[[0, 1, 1]], values)], header), header)

    @pytest.mark.parametrize(
        ("predecessor", "examples"),
        [(1, [2, 0]), (1, [0, 1]), (1, [0]), (3, [0, 1]), (3, [0, 1, 2])],
    )
    def test_successors_are_all_the_others_in_canonical_order(
        self, tmp_path, predecessor, examples
    ):
        order = np.array(examples)
        values = np.zeros(SUCCESSORS.stored[order].sum(), dtype=np.float32)
        refuse(tmp_path, rows([((0, predecessor), order, values)], SUCCESSORS), SUCCESSORS)
