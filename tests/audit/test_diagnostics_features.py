import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contamination.audit.diagnostics import (
    codes,
    label_codes,
    number_columns,
    span_lines,
    tf_idf,
)


def with_field(field, values):
    return [{field: value} for value in values]


def test_codes_tell_types_apart_and_take_any_value():
    values = [1, "1", True, [1, "a"], 1, [1, "a"], None, float("nan"), float("nan")]
    np.testing.assert_array_equal(codes(values), [0, 1, 2, 3, 0, 3, 4, 5, 5])


def test_label_is_found_by_the_usual_names_likeliest_first():
    records = [{"answer": a, "gold_label": g} for a, g in zip("xyxy", "ABBA", strict=True)]
    field, found = label_codes(records)
    assert field == "gold_label"
    np.testing.assert_array_equal(found, [0, 1, 1, 0])


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([True, False, True, True], True),
        ([0, 1, 1, 0], True),
        ([["a"], ["b"], ["a"], ["b"]], True),
        ([0, 0, 0, 0], False),  # one value tells nothing
        ([0, 1, 2, 1], False),  # an answer of one's own rather than a class
        (list(range(20)) * 2, True),
        (list(range(21)) * 2, False),
    ],
)
def test_a_label_has_a_few_values_that_recur(values, found):
    assert (label_codes(with_field("answer", values)) is not None) == found


def test_a_label_is_in_every_record():
    assert label_codes([{"label": 0}, {"label": 1}, {}, {"label": 0}]) is None
    assert label_codes(None) is None
    assert label_codes(with_field("topic", "aabb")) is None


def test_line_breaks_count_in_fields_not_in_the_template():
    texts = ["Question: a\nAnswer: b\n"] * 4
    records = [{"q": "a\nb"}, {"q": "a"}, {"q": {"stem": ["x", "a\n"]}}, {"q": 3, "r": ("\n",)}]
    np.testing.assert_array_equal(span_lines(texts, records), [True, False, True, True])


def test_line_breaks_inside_texts_but_not_around_them():
    np.testing.assert_array_equal(span_lines(["a\n", "a\nb", "\na\n\n", ""], None), [0, 1, 0, 0])


def test_ids_shown_and_hidden():
    records = [
        {"id": 7, "key": "test/0030", "word": "six", "year": 1990, "note": "by 12"},
        {"id": 8, "key": "test/0020", "word": "two3", "year": 1990, "note": "by 13"},
        {"id": 9, "key": "test/0010", "word": "ten4", "year": 1990, "note": "by 14"},
    ]
    texts = ["Question in test/0030: 7?", "Question in test/0020: 70?", "Question (test/0010): 9?"]
    shown, hidden = number_columns(texts, records)
    assert {name: list(column) for name, column in shown.items()} == {
        "the number that the texts start with": [30, 20, 10],
        "field 'key'": [30, 20, 10],
    }
    assert {name: list(column) for name, column in hidden.items()} == {"field 'id'": [7, 8, 9]}


@pytest.mark.parametrize("value", [None, "", "nan", "inf", "a 5", "5 a", [1]])
def test_a_field_without_a_number_in_every_record_is_no_id(value):
    records = with_field("id", [1, 2, value])
    assert number_columns(["a", "b", "c"], records) == ({}, {})
    assert number_columns(["a", "b", "c"], [*records[:2], {}]) == ({}, {})


def test_numbers_of_csv_fields_and_decimals():
    _, hidden = number_columns(["a", "b"], with_field("id", ["-1.5", "2e3"]))
    np.testing.assert_array_equal(hidden["field 'id'"], [-1.5, 2000])


@pytest.mark.parametrize("start", ["{}. Why?", "Q{}: why?", "Question no. {}"])
def test_the_number_at_the_start_needs_no_records(start):
    shown, hidden = number_columns([start.format(i) for i in (3, 1, 12)], None)
    assert not hidden
    np.testing.assert_array_equal(*shown.values(), [3, 1, 12])


def test_a_number_further_on_or_after_a_line_end_is_no_start():
    assert number_columns([f"{'x' * 21}{i}" for i in range(3)], None) == ({}, {})
    assert number_columns([f"x\n{i}" for i in range(3)], None) == ({}, {})


def test_rows_have_length_one_and_blank_texts_none():
    rows = tf_idf(["lamp tower", "", "日本語のテキスト", " \n", "x"])
    norms = np.sqrt(rows.multiply(rows).sum(axis=1)).ravel()
    np.testing.assert_allclose(norms, [[1, 0, 1, 0, 1]])
    assert tf_idf(["", " \n"]).nnz == 0


def test_likeness_of_texts():
    rows = tf_idf(["green river stone", "stone river greens", "orbit of maple", "orbits of maple"])
    cosine = (rows @ rows.T).toarray()
    assert cosine[0, 1] > 0.7
    assert cosine[2, 3] > 0.7
    assert cosine[0, 2] == 0


@given(st.lists(st.text(), min_size=1, max_size=5))
def test_any_text_has_features(texts):
    rows = tf_idf(texts)
    assert rows.shape[0] == len(texts)
    assert np.isfinite(rows.data).all()
