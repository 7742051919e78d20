"""Right answers pass, every usual mistake gets its own hint, and an open exercise stops nothing."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from contamination.errors import InputError
from reproduction.notebooks.seminar.exercises import EXERCISES, Checks

SCORES = -np.array([41, 44, 41, 43, 47, 45, 42, 40, 44, 43, 46, 41, 48, 42, 45, 43, 47, 44, 46, 42])
TOKENS = -np.random.default_rng(0).exponential(2.0, size=400).astype(np.float32)
SHARDS = np.random.default_rng(1).normal(size=(6, 10)) + np.eye(1, 10)
SMALL = np.array([[-10, -12, -11, -14], [-21, -20, -23, -22], [-15, -18, -16, -17]])
PAIRS = np.where(np.eye(5, dtype=bool), np.nan, np.random.default_rng(2).normal(-9, 1, (5, 5)))
NULLS = np.arange(1, 21) / 20
P_VALUES = np.array([0.02, 0.9, 0.011, 0.0125])
TRIED = np.array([0.04, 0.3, 0.011])
VERDICTS = {"A": "contaminated", "B": "no evidence"}
VERDICTS |= {"C": "the order carries information", "D": "no evidence"}


def _s() -> np.ndarray:
    return SHARDS[:, 0] - SHARDS[:, 1:].mean(axis=1)


def _t(ddof: int) -> float:
    return math.sqrt(len(SHARDS)) * _s().mean() / np.std(_s(), ddof=ddof)


COUNTED = np.mean([sum(each) >= -46 for each in itertools.product(*SMALL.tolist())])
CASES = {  # exercise -> its facts and the right answer
    "1": ({"flips": 10, "heads": 9}, 11 / 1024),
    "2": ({"scores": SCORES}, 4 / 20),
    "3": ({"token_logprobs": TOKENS}, float(TOKENS.sum())),
    "4": ({"target": 0.001}, 999),
    "5": ({"log_probs": SHARDS}, scipy.stats.ttest_1samp(_s(), 0, alternative="greater").pvalue),
    "6": ({"log_probs": SMALL}, COUNTED),
    "7": ({"successors": PAIRS}, PAIRS[0, 1] + PAIRS[1, 2] + PAIRS[2, 3] + PAIRS[3, 4]),
    "8": ({"p_values": NULLS, "alpha": 0.05}, 0.05),
    "9": ({"p_values": P_VALUES}, [0.044, 0.9, 0.044, 0.044]),
    "10": ({"p_values": TRIED}, 0.033),
    "11": ({}, VERDICTS),
}
FACTS = {name: facts for name, (facts, _) in CASES.items()}
RIGHT = {name: right for name, (_, right) in CASES.items()}
NUMBERS = [name for name in EXERCISES if name != "11"]


@pytest.mark.parametrize("name", NUMBERS)
def test_a_right_answer_passes_and_every_usual_mistake_gets_its_own_hint(name, capsys):
    facts = FACTS[name]
    strict = Checks(strict=True)
    strict(name, RIGHT[name], **facts)
    assert capsys.readouterr().out == f"✓ Exercise {name}: right.\n"
    _, mistakes = EXERCISES[name].solve(**facts)
    *usual, general = mistakes
    answers = {hint: mistakes[hint] for hint in usual}
    answers[general] = "a lot"
    for hint, answer in answers.items():
        Checks()(name, answer, **facts)
        assert capsys.readouterr().out == f"✗ Exercise {name}: not yet. {hint}\n"
    with pytest.raises(InputError, match=f"Exercise {name}: not yet"):
        strict(name, answers[general], **facts)
    assert strict.outcomes[name][0] == "wrong"


@pytest.mark.parametrize("wrong", ["C", "D", "AC", "CD", "ABCD"])
def test_every_wrong_audit_gets_its_own_hint(wrong, capsys):
    calls = VERDICTS | dict.fromkeys(wrong, "contaminated")
    if "A" in wrong:
        calls["A"] = "no evidence"
    Checks()("11", calls)
    printed = capsys.readouterr().out
    named = [audit for audit in VERDICTS if f"Look at {audit} again" in printed]
    assert named == sorted(wrong)


def test_a_call_is_compared_without_case_and_article():
    check = Checks(strict=True)
    calls = {"a": "Contaminated", "b": "No evidence ", "c": "order carries information"}
    check("11", calls | {"d": "no evidence"})
    assert check.outcomes["11"][0] == "right"


def test_a_call_in_other_words_is_told_the_words(capsys):
    Checks()("11", VERDICTS | {"B": "not contaminated"})
    assert '"no evidence"' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("2", [0.1, 0.2]),
        ("9", 0.044),
        ("5", float("nan")),
        *(("11", wrong) for wrong in ("p", {"A": "p"}, pd.Series(VERDICTS))),
    ],
)
def test_answers_of_another_kind_are_wrong(name, answer):
    check = Checks()
    check(name, answer, **FACTS[name])
    assert check.outcomes[name][0] == "wrong"


def test_the_last_answer_counts_and_is_written_open_ones_too(tmp_path, capsys):
    check = Checks()
    check("4", 1000, **FACTS["4"])
    check("4", 999, **FACTS["4"])
    check("1", 0.5, **FACTS["1"])
    check("7", None, **FACTS["7"])
    assert "Exercise 7: not answered yet." in capsys.readouterr().out
    table = check.finish(tmp_path)
    assert capsys.readouterr().out.endswith("1 of 11 exercises are right.\n")
    written = pd.read_csv(tmp_path / "tables" / "seminar_answers.csv", dtype=str)
    assert dict(zip(written["exercise"], written["outcome"], strict=True)) == {
        name: {"4": "right", "1": "wrong"}.get(name, "open") for name in EXERCISES
    }
    assert table.loc[table["exercise"] == "4", "answer"].item() == "999"


def test_strict_checks_want_every_answer_and_rounded_ones_are_right(tmp_path):
    check = Checks(strict=True)
    for name in EXERCISES:
        check(name, None if name == "7" else RIGHT[name], **FACTS[name])
    check("1", 0.010742, **FACTS["1"])  # four digits
    with pytest.raises(InputError, match="exercises 7 are not right"):
        check.finish(tmp_path)
    check("7", RIGHT["7"], **FACTS["7"])
    assert set(check.finish(tmp_path)["outcome"]) == {"right"}
