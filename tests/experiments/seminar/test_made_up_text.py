import itertools

import numpy as np
import pytest

from contamination.errors import InputError
from contamination.experiments.seminar import made_up_text
from contamination.experiments.seminar.made_up_text import TOWNS, made_up_documents, made_up_records


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
    lists = [words for words in vars(made_up_text).values() if isinstance(words, tuple)]
    assert len(lists) == 7
    assert all(len(set(words)) == len(words) for words in lists)


def test_bad_input():
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match="0 records wanted"):
        made_up_records(0, rng=rng)
    with pytest.raises(InputError, match="0 documents wanted"):
        made_up_documents(0, 6, rng=rng)
