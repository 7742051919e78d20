"""What the report says of a run: each count is planted, with rows beside it that must not count."""

from fakes import made_up_tables as made_up
from reproduction.report.readings import (
    read_assumptions,
    read_books,
    read_calibration,
    read_failures,
    read_min_k,
    read_options,
    read_short_prefixes,
    read_unlearning,
)


def test_the_set_that_short_prefixes_cost_most() -> None:
    texts = {"set": "same-start", "with_32": "−21.5", "with_8": "0.0"}
    assert read_short_prefixes(made_up.REPLICATES) == texts


def test_calibration_counts_intervals_off_the_level() -> None:
    assert read_calibration(made_up.CALIBRATION) == {
        "exact": "3",
        "exact_above": "1",
        "exact_below": "1",
        "anytime": "2.2",
        "t_low": "4.2",
        "t_high": "6",
        "t_low_tails": "2.9",
        "t_high_tails": "2.9",
        "fewest_shards": "5",
        "ddof_0": "7.1",
    }


def test_failures_count_orders_with_a_meaning_under_the_clean_model() -> None:
    assert read_failures(made_up.FAILURES) == {
        "orders": "3",
        "rejected": "1",
        "rejected_names": "near-duplicates in pairs",
        "noticed": "2",
        "compressed": "2",
    }
    none = made_up.FAILURES.assign(log10_p_successor=0.0)
    assert read_failures(none)["rejected_names"] == "none"


def test_min_k_beside_the_tests() -> None:
    assert read_min_k(made_up.MIN_K, made_up.CANARIES, 0.05) == {
        "most_copies": "64",
        "share_at_most": "92.5",
        "heuristic_alone": "1",
        "tests_alone": "2",
    }


def test_assumptions_count_the_metrics_of_fu() -> None:
    assert read_assumptions(made_up.WITHIN) == {
        "ppl_read_once": "51.2",
        "ppl_tuned": "—",
        "mem_tuned": "95.4",
        "mem_off_by_one_tuned": "—",
        "metrics": "3",
        "near": "2",
        "furthest": "Min 5% token",
        "furthest_auc": "43.0",
    }
    nothing = read_assumptions(made_up.WITHIN.head(0))
    assert set(nothing.values()) == {"—"} and len(nothing) == 8


def test_books_by_the_validation_of_their_threshold() -> None:
    assert read_books(made_up.BOOKS, made_up.BOOKS_VALIDATION) == {
        "auc_same": "0.55",
        "auc_other": "0.76",
        "accused_same": "0",
        "accused_other": "2",
        "unread": "2",
    }
    nothing = read_books(made_up.BOOKS.head(0), made_up.BOOKS_VALIDATION.head(0))
    assert nothing == dict.fromkeys(nothing, "—") | {"unread": "0"}


def test_options_at_the_most_copies_and_the_smallest_control() -> None:
    assert read_options(made_up.OPTIONS) == {
        "whole_records": "1.0\u00a0×\u00a010⁻⁵",
        "whole_options": "1.0\u00a0×\u00a010⁻⁹",
        "shuffled_records": "0.250",
        "shuffled_options": "1.0\u00a0×\u00a010⁻⁸",
        "single_records": "0.750",
        "single_options": "1.0\u00a0×\u00a010⁻⁴⁰⁰",
        "examples": "60",
        "copies": "16",
        "controls": "8",
        "control_smallest": "0.060",
    }


def test_unlearning_by_the_published_window() -> None:
    assert read_unlearning(made_up.DETECTION) == {
        "chunks": "24",
        "suspicious": "5",
        "hits": "4",
        "untreated": "12",
        "missed": "8",
        "low": "9.9",
        "high": "65.1",
        "auc_ratio": "0.87",
    }
    assert set(read_unlearning(made_up.DETECTION.head(0)).values()) == {"—"}
