"""Thresholds come from the validation books alone, and planted books get the rates they must."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from contamination.errors import InputError
from contamination.experiments.books.audit import Validation, audit_books
from contamination.experiments.books.snippets import SCORES
from contamination.membership.evaluate import roc


def scored(means: dict[str, float], size: int = 20, *, seed: int = 0) -> pd.DataFrame:
    """Normal scores around the mean of each book; `loss` knows nothing."""
    rng = np.random.default_rng(seed)
    rows = [
        (book, i, *rng.normal(mean, 1, 1), *rng.normal(0, 1, 1), *rng.normal(mean, 1, 2))
        for book, mean in means.items()
        for i in range(size)
    ]
    return pd.DataFrame(rows, columns=["book", "snippet", *SCORES])


def books(name: str, count: int, mean: float, **options: int) -> pd.DataFrame:
    return scored({f"{name}{i}": mean for i in range(count)}, **options)


@pytest.fixture(scope="module")
def validation() -> Validation:
    return Validation(books("r", 8, 2.0, seed=1), books("u", 9, 0.0, seed=2))


def test_the_threshold_is_that_of_best_accuracy(validation: Validation) -> None:
    read, unread = (side["min_k_20"] for side in (validation.members, validation.non_members))
    right = [
        (read >= value).sum() + (unread < value).sum() for value in np.concatenate([read, unread])
    ]
    value = validation.threshold.value
    assert (read >= value).sum() + (unread < value).sum() == max(right)
    assert validation.tpr == (read >= value).mean()
    assert validation.false_positive_rate == (unread >= value).mean()


def test_a_threshold_may_be_asked_to_keep_a_rate(validation: Validation) -> None:
    strict = Validation(validation.members, validation.non_members, fpr=0.02)
    assert strict.threshold.value > validation.threshold.value
    assert 0 < strict.false_positive_rate <= 0.02


def test_the_threshold_is_of_the_score_that_is_asked_for(validation: Validation) -> None:
    other = Validation(validation.members, validation.non_members, score="loss")
    assert other.tpr - other.false_positive_rate < 0.3 < validation.tpr - 0.5


def test_planted_books_get_their_rates(validation: Validation) -> None:
    table = validation.rates(scored({"read": 2.0, "unread": 0.0, "few": 2.0}, 200, seed=3))
    assert table["book"].tolist() == ["read", "unread", "few"]
    table = table.set_index("book")
    value = validation.threshold.value
    for book, mean in (("read", 2.0), ("unread", 0.0)):
        expected = stats.norm.sf(value - mean)
        assert table.loc[book, "rate"] == pytest.approx(expected, abs=0.1)
        assert table.loc[book, "low"] < expected < table.loc[book, "high"]
        hits = round(200 * table.loc[book, "rate"])
        exact = stats.binomtest(hits, 200).proportion_ci()
        assert (table.loc[book, "low"], table.loc[book, "high"]) == pytest.approx(tuple(exact))
    assert table.loc["read", "p"] == pytest.approx(1 / 10)
    assert table.loc["read", "log10_p"] == pytest.approx(-1)
    assert table.loc["unread", "p"] > 0.1


def test_p_ranks_the_mean_among_the_unread_validation_books() -> None:
    flat = dict.fromkeys(SCORES, 0.0)
    unread = pd.DataFrame(
        [
            {**flat, "book": f"u{mean}", "snippet": i, "min_k_20": mean + (-1) ** i}
            for mean in (1, 2, 3)
            for i in range(2)
        ]
    )
    read = unread.assign(min_k_20=9.0)
    audited = unread.assign(book="x", min_k_20=2.0)
    (row,) = Validation(read, unread).rates(audited).itertuples()
    assert row.mean == 2.0
    assert row.p == (1 + 2) / 4  # the tied one counts against the book


def test_p_of_unread_books_is_valid_whatever_the_threshold() -> None:
    """The rank of one of ten exchangeable books is uniform."""
    rng = np.random.default_rng(0)
    means = rng.normal(0, 1, (300, 10))
    found = []
    for number, row in enumerate(means):
        table = scored({f"b{i}": mean for i, mean in enumerate(row)}, 3, seed=number)
        first = table["book"] == "b0"
        found += Validation(books("r", 1, 3.0), table[~first]).rates(table[first])["p"].tolist()
    assert (
        stats.chisquare(np.bincount(np.round(10 * np.array(found)).astype(int))[1:]).pvalue > 0.01
    )


def test_aucs_are_over_snippets_and_intervals_over_books(validation: Validation) -> None:
    table = validation.aucs(rng=np.random.default_rng(0), resamples=200).set_index("score")
    assert table.index.tolist() == list(SCORES)
    assert (table["member_books"] == 8).all() and (table["non_member_books"] == 9).all()
    assert (table["members"] == 160).all() and (table["non_members"] == 180).all()
    both = pd.concat([validation.members, validation.non_members])
    for score in SCORES:
        auc = roc(both[score], [1] * 160 + [0] * 180).auc
        assert table.loc[score, "auc"] == pytest.approx(auc)
        assert table.loc[score, "auc_low"] < auc < table.loc[score, "auc_high"]
    assert table.loc["min_k_20", "auc"] > 0.85
    assert table.loc["loss", "auc_low"] < 0.5 < table.loc["loss", "auc_high"]


def test_intervals_are_wider_where_snippets_of_a_book_are_alike() -> None:
    rng = np.random.default_rng(4)
    widths = []
    for spread in (0.0, 3.0):
        sides = [
            scored({f"{s}{i}": s + m for i, m in enumerate(rng.normal(0, spread, 6))}, 50, seed=s)
            for s in (1, 0)
        ]
        row = Validation(*sides).aucs(rng=rng, resamples=200).iloc[0]
        widths.append(row["auc_high"] - row["auc_low"])
    assert widths[1] > 3 * widths[0]


@pytest.mark.parametrize("wrong", [{"score": "ppl"}, {"fpr": 0.0}, {"fpr": 1.0}])
def test_settings_that_cannot_be(validation: Validation, wrong: dict[str, object]) -> None:
    with pytest.raises(InputError):
        Validation(validation.members, validation.non_members, **wrong)
    with pytest.raises(InputError, match="1 or more"):
        validation.aucs(rng=np.random.default_rng(0), resamples=0)


# --- the whole, with a network --------------------------------------------------------------------


@pytest.fixture(scope="module")
def library(prose) -> dict[str, dict[str, str]]:
    texts = [" ".join(prose[i : i + 3]) for i in range(0, 24, 3)]
    return {
        "books": {"a": texts[0], "b": texts[1]},
        "members": {f"r{i}": text for i, text in enumerate(texts[2:5])},
        "non_members": {f"u{i}": text for i, text in enumerate(texts[5:])},
    }


def audited(model, library, **options):
    return audit_books(model, **library, rng=np.random.default_rng(0), words=12, most=4, **options)


def test_every_part_is_scored_as_what_it_is(model_directory, library, monkeypatch) -> None:
    """A made-up model that knows the members, by their text."""
    from contamination.experiments.books import audit as book_audit

    def known(model, sampled):
        assert model == model_directory
        knows = [any(t in text for text in library["members"].values()) for t in sampled["text"]]
        made = {name: np.array(knows, dtype=float) for name in SCORES}
        return sampled[["book", "snippet"]].assign(**made)

    monkeypatch.setattr(book_audit, "score_snippets", known)
    rates, validation = audited(model_directory, library)
    assert set(validation.members["book"]) == {"r0", "r1", "r2"}
    assert set(validation.non_members["book"]) == {"u0", "u1", "u2"}
    assert (validation.threshold.value, validation.tpr, validation.false_positive_rate) == (1, 1, 0)
    assert rates["book"].tolist() == ["a", "b"]
    assert rates["rate"].tolist() == [0, 0]
    library = library | {"books": {"m": library["members"]["r0"] + " more"}}
    assert audited(model_directory, library)[0]["rate"].tolist() == [1]


def test_an_audited_book_that_is_a_validation_book(model_directory, library) -> None:
    wrong = library | {"books": {"z": library["members"]["r1"].upper()}}
    with pytest.raises(InputError, match="r1 in the validation books read is the same book as z"):
        audited(model_directory, wrong)
    wrong = library | {"non_members": {"z": library["members"]["r1"]}}
    with pytest.raises(InputError, match="z in the validation books not read is the same book as"):
        audited(model_directory, wrong)


def test_a_rate_that_cannot_be_is_told_before_a_model_is_opened(library) -> None:
    with pytest.raises(InputError, match="give a rate between 0 and 1"):
        audited("no such model", library, fpr=2.0)


def test_a_network_gives_a_row_per_book(model_directory, library) -> None:
    rates, validation = audited(model_directory, library, fpr=0.2)
    assert rates["snippets"].tolist() == [4, 4]
    assert validation.false_positive_rate <= 0.2
    again, _ = audited(model_directory, library, fpr=0.2)
    pd.testing.assert_frame_equal(rates, again)
