"""Runs of characters are those of scikit-learn, and weigh the same to the last bit."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from contamination.audit.controls.diagnosis import tf_idf
from contamination.audit.controls.grams import count_grams

BY_FOURS = {"analyzer": "char_wb", "ngram_range": (4, 4)}
# capitals whose small letters are two characters, half a character, blanks of all kinds
LETTERS = st.sampled_from("abAB.é\u0130\u4e00\U0001f600\ud800 \t\n\x1c\u00a0")
TEXTS = st.lists(st.text(LETTERS, max_size=40), min_size=1, max_size=6).filter(
    lambda texts: any(text.strip() for text in texts)
)


@given(texts=TEXTS)
def test_every_run_is_counted_as_often(texts):
    vectorizer = CountVectorizer(**BY_FOURS)
    expected = vectorizer.fit_transform(texts).toarray()
    counts = count_grams(texts).toarray()
    assert sorted(counts.T.tolist()) == sorted(expected.T.tolist())


@given(texts=TEXTS)
def test_cosines_are_the_same_to_the_last_bit(texts):
    reference = TfidfVectorizer(sublinear_tf=True, **BY_FOURS).fit_transform(texts)
    weights = tf_idf(texts)
    expected = (reference @ reference.T).toarray()
    np.testing.assert_array_equal((weights @ weights.T).toarray(), expected)
