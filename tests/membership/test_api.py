"""The table of scores: what is in it, what it finds in a model that has learnt texts by heart."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from contamination.errors import InputError
from contamination.membership import scores
from contamination.membership.api import membership_scores, word_neighbours
from contamination.membership.evaluate import evaluate
from contamination.membership.signals import text_log_probs, token_signals
from contamination.scoring.loading import ModelSource
from contamination.testsets.tokens import tokenize
from fakes.made_up_scorer import MadeUpScorer, log_probs_of
from reproduction.run.tokenizer import train_tokenizer

OF_LOG_PROBS = ["loss", "ppl_3", "ppl_200", "min_k_20", "min_k_12.5"]
OF_DISTRIBUTION = ["min_k_pp_20", "mem_5", "mem_off_by_one_5", "entropy_15", "entropy"]
COLUMNS = [*OF_LOG_PROBS, *OF_DISTRIBUTION, "zlib", "lowercase"]


@pytest.fixture(scope="module")
def everything(taught, members, non_members, make_model) -> pd.DataFrame:
    return membership_scores(
        taught,
        [*members, *non_members],
        reference=ModelSource(str(make_model(96)), precision="float32"),
        neighbours=5,
        seed=3,
    )


def test_columns_rows_and_values_are_those_of_the_scores(taught, texts):
    table = membership_scores(taught, texts, columns=COLUMNS)
    assert list(table) == COLUMNS
    assert table.drop(columns=["ppl_3", "ppl_200", "lowercase"]).notna().all(axis=None)
    readings = token_signals(taught, tokenize(taught.tokenizer, texts))
    lower = text_log_probs(taught, tokenize(taught.tokenizer, [t.lower() for t in texts]))
    for i, (one, text) in enumerate(zip(readings, texts, strict=True)):
        read = replace(one, text=text, lower=lower[i])
        wanted = {name: scores.score_named(name).compute(read) for name in COLUMNS}
        assert table.loc[i].to_dict() == pytest.approx(wanted, nan_ok=True)


def test_a_scorer_of_log_probabilities_has_the_scores_that_need_no_more(tokenizer, texts):
    table = membership_scores(
        MadeUpScorer(tokenizer),
        texts,
        columns=COLUMNS,
        reference=MadeUpScorer(tokenizer),
    )
    rest = ["zlib", "lowercase", "reference_difference", "reference_ratio"]
    assert list(table) == [*OF_LOG_PROBS, *rest]
    ids = tokenize(tokenizer, texts)
    wanted = [log_probs_of(one)[1:].mean(dtype=np.float64) for one in ids]
    np.testing.assert_allclose(table["loss"], wanted)
    assert (table["reference_difference"] == 0).all() and (table["reference_ratio"] == 1).all()


def test_texts_learnt_by_heart_are_told_from_others(everything, members, non_members):
    labels = np.repeat([1, 0], [len(members), len(non_members)])
    short = everything.columns[everything.isna().any()]
    assert set(short) <= {"ppl_50", "ppl_100", "ppl_200"}
    # These texts have no capitals: "lowercase" compares each with itself, but for rounding.
    compared = everything.drop(columns=[*short, "lowercase"])
    rng = np.random.default_rng(0)
    judged = evaluate(compared, labels, rng=rng, resamples=200).set_index("score")
    # Of 300 tokens the best 15 are nearly all that occur; and one off, a rank tells little.
    weak = [f"mem_{k}" for k in (15, 25)] + [f"mem_off_by_one_{k}" for k in (5, 15, 25)]
    assert (judged.drop(weak)["auc"] > 0.95).all()
    assert (judged.drop(weak)["auc_low"] > 0.9).all()
    assert judged.loc["mem_off_by_one_5", "auc"] < 0.9


def test_a_reference_with_another_tokenizer_compares_per_byte(taught, prose, texts):
    other = MadeUpScorer(train_tokenizer(prose, 280))
    table = membership_scores(taught, texts, reference=other)
    for i, text in enumerate(texts):
        ours, theirs = (tokenize(one.tokenizer, [text])[0] for one in (taught, other))
        ((_, log_probs),) = taught.token_logprobs([ours])
        a, b = (float(x.sum()) / len(text.encode()) for x in (log_probs, log_probs_of(theirs)))
        assert table.loc[i, "reference_difference"] == pytest.approx(a - b, rel=1e-4)
        assert table.loc[i, "reference_ratio"] == pytest.approx(b / a, rel=1e-4)
    asked = other.scored
    with pytest.raises(InputError, match="text 0 has other tokens under the reference model"):
        membership_scores(taught, texts, reference=other, reference_per="token")
    assert other.scored == asked  # refused before it is read


def test_a_mean_over_given_tokens_is_compared_with_one_over_the_same(tokenizer):
    (whole,) = tokenize(tokenizer, ["stone"])
    parts = np.concatenate(tokenize(tokenizer, [*"stone"]))
    assert tokenizer.decode(parts) == tokenizer.decode(whole)
    assert len(parts) > len(whole)
    scorer = MadeUpScorer(tokenizer)
    with pytest.raises(InputError, match="text 0 has other tokens"):
        membership_scores(scorer, [parts], reference=scorer, reference_per="token")


def test_a_reference_that_does_not_know_a_character_is_refused(taught):
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    backend = Tokenizer(models.WordLevel({"?": 0, "lamp": 1, "stone": 2}, unk_token="?"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    other = PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="?")
    membership_scores(taught, ["lamp stone"], reference=MadeUpScorer(other))
    with pytest.raises(InputError, match="text 1 has characters that a tokenizer"):
        membership_scores(taught, ["lamp stone", "lamp Étude"], reference=MadeUpScorer(other))


@pytest.mark.parametrize(
    ("texts", "options", "named"),
    [
        (["one two", "orbit"], {}, r"text 1 .*'orbit'"),
        ([], {}, "no text"),
        (["one two"], {"columns": ["ppl_0"]}, "ppl_0"),
        (["one two", np.array([1, 2])], {}, "1 of 2 texts are given as tokens"),
    ],
)
def test_what_cannot_be_scored_is_refused_before_anything_is_read(tokenizer, texts, options, named):
    scorer = MadeUpScorer(tokenizer)
    with pytest.raises(InputError, match=named):
        membership_scores(scorer, texts, **options)
    assert scorer.scored == 0


def test_a_neighbour_swaps_or_leaves_out_one_word_in_ten():
    text = "a b\nc  d e"
    made = Counter(word_neighbours(text, 400, rng=np.random.default_rng(0)))
    swaps = {"b a\nc  d e", "a c\nb  d e", "a b\nd  c e", "a b\nc  e d"}
    losses = {"b\nc  d e", "a c  d e", "a b\nd e", "a b\nc  e"}
    assert {" ".join(one.split()) for one in made} == {" ".join(t.split()) for t in swaps | losses}
    assert swaps <= made.keys()  # spaces and line ends stay
    assert 150 < sum(made[one] for one in swaps) < 250
    assert not word_neighbours(" étude\n", 1, rng=np.random.default_rng(0))


def test_a_text_of_one_word_has_no_neighbour_and_so_no_such_score(taught):
    for texts in (["tower-maple-stone"], ["tower-maple-stone", "lamp stone river tower apple"]):
        found = membership_scores(taught, texts, columns=["loss"], neighbours=2)["neighbour"]
        assert found.isna().tolist() == [True, False][: len(texts)]
