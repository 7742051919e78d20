"""Records torn into their lines: what is read, and which reading the evidence rejects."""

import csv
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from contamination.experiments.mmlu.segmentation import (
    COMPRESSOR,
    MODEL_FREE,
    OF_MODEL,
    both_readings,
    by_line,
    exclusions_layout,
    line_table,
    model_free,
    outcomes,
    physical_lines,
)
from contamination.experiments.mmlu.subsets import subset_names, subsets_at_hand
from contamination.results.published import load_published
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.records import read_text
from fakes.data_fixtures import ROOT

WORDS = [f"{a}{b}" for a in "bdfgklmnprst" for b in ("ark", "olim", "une", "ibar", "esto", "awn")]


def make_record(question: str, answer: str = "A") -> dict[str, object]:
    return {"question": question, "choices": ["one", "t,wo", 'th"ree', "four"], "answer": answer}


def make_set(questions: list[str], name: str = "made_up") -> ExampleSet:
    answers = np.random.default_rng(5).choice(list("ABCD"), len(questions)).tolist()
    records = tuple(make_record(q, a) for q, a in zip(questions, answers, strict=True))
    examples = tuple(f"{r['question']}\nAnswer: {r['answer']}\n" for r in records)
    return ExampleSet(name, examples, "mmlu/2", f"revision of {name}", records)


def passages(count: int) -> ExampleSet:
    """Records of four lines, each on a theme of few words of its own."""
    rng = np.random.default_rng(3)
    questions = []
    for _ in range(count):
        theme = rng.choice(WORDS, 4, replace=False)
        lines = [" ".join(rng.choice(theme, 9)) for _ in range(4)]
        questions.append("\n".join(lines))
    return make_set(questions, "passages")


def single_lines(count: int) -> ExampleSet:
    rng = np.random.default_rng(4)
    return make_set([" ".join(rng.choice(WORDS, 8)) for _ in range(count)], "single")


# --- what is read ---------------------------------------------------------------------------------


def test_lines_are_those_of_a_csv_file(tmp_path: Path) -> None:
    questions = [
        'He said "yes",\nthen\n\nno.',
        "plain",
        " \n starts late",
        "ends so\n",
        "é\u2028x",
        "a\n  \nb",
    ]
    records = [make_record(q) for q in questions]
    path = tmp_path / "records.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["question", "choice0", "choice1", "choice2", "choice3", "answer"])
        writer.writerows([r["question"], *r["choices"], r["answer"]] for r in records)
    text = path.read_text(encoding="utf-8")
    wanted = [line for line in text.split("\n")[1:] if line.strip()]
    assert [line for record in records for line in physical_lines(record)] == wanted
    assert [len(physical_lines(record)) for record in records] == [3, 1, 2, 2, 1, 2]


def test_choices_may_be_four_fields_or_a_list() -> None:
    record = make_record("one\ntwo")
    fields = {f"choice{i}": choice for i, choice in enumerate(record["choices"])}
    flat = {"question": record["question"], **fields, "answer": record["answer"]}
    assert physical_lines(record) == physical_lines(flat)
    assert physical_lines(record) == ['"one', 'two",one,"t,wo","th""ree",four,A']


def test_by_line_is_another_test_set() -> None:
    records = passages(3)
    lines = by_line(records)
    assert len(lines.examples) == 12
    assert all(text.endswith("\n") and text.count("\n") == 1 for text in lines.examples)
    assert lines.examples[0].startswith('"')
    assert lines.records == ()
    assert lines.name == "passages-by-line"
    assert lines.template == "csv-line/1"
    assert lines.revision != records.revision
    assert lines.revision == by_line(records).revision
    assert lines.revision != by_line(make_set(["x"], "other")).revision


def test_both_readings() -> None:
    sets = {"passages": passages(3), "single": single_lines(5)}
    readings = both_readings(sets)
    assert list(readings) == ["record", "line"]
    assert readings["record"] == sets
    assert {name: len(s.examples) for name, s in readings["line"].items()} == {
        "passages": 12,
        "single": 5,
    }
    assert both_readings({}) == {"record": {}, "line": {}}


# --- without a model ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def free() -> pd.DataFrame:
    sets = {"passages": passages(40), "single": single_lines(80)}
    return model_free(both_readings(sets), seed=1)


def test_torn_records_are_found_and_whole_ones_are_quiet(free: pd.DataFrame) -> None:
    assert tuple(free) == MODEL_FREE
    rows = free.set_index(["subset", "reading"])
    assert rows["examples"].to_dict() == {
        ("passages", "record"): 40,
        ("passages", "line"): 160,
        ("single", "record"): 80,
        ("single", "line"): 80,
    }
    torn = rows.loc["passages", "line"]
    assert torn["verdict"] == "order carries information"
    assert torn["compressor_log10_p"] < -3
    for whole in [("passages", "record"), ("single", "record"), ("single", "line")]:
        assert rows.loc[whole, "verdict"] == "quiet"
        assert rows.loc[whole, "compressor_log10_p"] > -2


def test_facts_about_lines() -> None:
    shared = "From this:"
    questions = [f"{shared}\nA?", "B?", f"{shared}\nC?", "one\ntwo\nthree", *"defghijk"]
    free = model_free(both_readings({"set": make_set(questions)}), seed=1)
    assert (free["lines_per_record"] == (2 + 1 + 2 + 3 + 8) / 12).all()
    assert (free["spanning"] == 3 / 12).all()
    # The longest line counts: of the others, that with the choices, which differ in the question.
    assert (free["shared_passages"] == 0).all()
    longer = [
        q.replace(shared, f"{shared}, and which is the longest line of each") for q in questions
    ]
    free = model_free(both_readings({"set": make_set(longer)}), seed=1)
    assert (free["shared_passages"] == 2 / 12).all()
    refrain = "a line that its own record says twice"
    free = model_free(
        both_readings({"set": make_set([f"?\n{refrain}\n{refrain}\n!", *"abcdefg"])}), seed=1
    )
    assert (free["shared_passages"] == 0).all()


def test_nothing_gives_an_empty_table_with_its_columns(published: pd.DataFrame) -> None:
    free = model_free(both_readings({}), seed=1)
    assert tuple(free) == MODEL_FREE
    measured = pd.DataFrame(columns=["subset", "reading", *OF_MODEL])
    lines = line_table(free, measured, published, 0.05)
    assert lines.empty
    assert {*MODEL_FREE, *OF_MODEL, "excluded_in_paper"} <= set(lines)
    found = outcomes(lines, 0.05)
    assert found.empty
    assert {"subset", "evidence", "record", "line", "outcome"} <= set(found)


# --- beside the paper -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def published() -> pd.DataFrame:
    return load_published(ROOT / "data" / "published", "oren2024_table4_mmlu")


SUBSETS = ("nutrition", "high_school_us_history", "professional_law")


def made_up_free() -> pd.DataFrame:
    rows = [
        (subset, reading, 10, 1.5, 0.5, 0.0, verdict, log10_p)
        for subset, verdicts, values in zip(
            SUBSETS,
            [("quiet", "order carries information"), ("suspicious", "quiet"), ("quiet", "quiet")],
            [(-0.1, -4.0), (-2.0, -2.0), (np.log10(0.05), -1.31)],
            strict=True,
        )
        for reading, verdict, log10_p in zip(("record", "line"), verdicts, values, strict=True)
    ]
    return pd.DataFrame(rows, columns=list(MODEL_FREE))


def made_up_rows() -> pd.DataFrame:
    rows = [
        (subset, reading, "clean", test, 5, 2, 1.0, 10**log10_p, log10_p, 100)
        for test, shift in (("sharded_t", 0.0), ("successor", -1.2))
        for subset, values in zip(SUBSETS, [(-0.5, -9.0), (-3.0, -0.2), (0.0, -0.2)], strict=True)
        for reading, value in zip(("record", "line"), values, strict=True)
        for log10_p in [value + shift]
    ]
    return pd.DataFrame(rows, columns=["subset", "reading", *OF_MODEL])


@pytest.fixture
def lines(published: pd.DataFrame) -> pd.DataFrame:
    return line_table(made_up_free(), made_up_rows(), published, 0.05)


def test_line_table(lines: pd.DataFrame, published: pd.DataFrame) -> None:
    assert len(lines) == 3 * 2 * 2
    assert not lines.duplicated(["subset", "reading", "model", "test"]).any()
    row = lines.set_index(["subset", "reading", "test"]).loc["nutrition", "line", "successor"]
    assert row["log10_p"] == pytest.approx(-10.2)
    assert row["compressor_log10_p"] == -4
    assert row["published_gpt2_xl"] == 0.865
    assert row["published_biomedlm"] == 0.609
    of = lines.drop_duplicates("subset").set_index("subset")["excluded_in_paper"]
    assert of["nutrition"] is np.False_ or of["nutrition"] == False  # noqa: E712
    assert of["high_school_us_history"]
    assert pd.isna(of["professional_law"])
    everything = (
        made_up_free().iloc[:1].drop(columns="subset").merge(published[["subset"]], how="cross")
    )
    table = line_table(everything[list(MODEL_FREE)], made_up_rows(), published, 0.05)
    assert table.drop_duplicates("subset")["excluded_in_paper"].sum() == 13


def test_outcomes(lines: pd.DataFrame) -> None:
    found = outcomes(lines, 0.05)
    assert len(found) == 3 * 4
    outcome = found.pivot(index="subset", columns="evidence", values="outcome")
    assert outcome.loc["nutrition"].to_dict() == {
        "diagnostics": "by line only",
        COMPRESSOR: "by line only",
        "clean, sharded_t": "by line only",
        "clean, successor": "by both",
    }
    assert outcome.loc["high_school_us_history"].to_dict() == {
        "diagnostics": "by neither",  # suspicious is not enough
        COMPRESSOR: "by both",
        "clean, sharded_t": "by record only",
        "clean, successor": "by both",
    }
    assert outcome.loc["professional_law"].to_dict() == {
        "diagnostics": "by neither",
        COMPRESSOR: "by line only",  # p = 0.05 itself is not below 0.05
        "clean, sharded_t": "by neither",
        "clean, successor": "by line only",
    }
    nutrition = found[found["subset"] == "nutrition"].set_index("evidence")
    assert nutrition["record"].sum() == 1
    assert nutrition["line"].all()


def test_the_exclusions_laid_out() -> None:
    measured = pd.read_csv(ROOT / "docs" / "measurements" / "mmlu_lines.csv")
    layout = exclusions_layout(measured, outcomes(measured, 0.05)).set_index("Subset")
    assert len(layout) == 13
    world = layout.loc["high school world history"]
    assert (world["Compressor"], world["Diagnostics"]) == ("**line only**", "**line only**")
    assert world["Clean, successor"] == "neither"
    assert float(world["Lines per record"]) > 4
    assert layout.loc["econometrics", "BioMedLM"] == "0.035"
    assert layout.loc["high school computer science", "Compressor"] == "both"  # not bold


def test_without_a_model_the_other_evidence_remains(published: pd.DataFrame) -> None:
    table = line_table(made_up_free(), made_up_rows().iloc[:0], published, 0.05)
    found = outcomes(table, 0.05)
    assert set(found["evidence"]) == {"diagnostics", COMPRESSOR}
    assert len(found) == 6


# --- the files themselves -------------------------------------------------------------------------


needs_files = pytest.mark.skipif(
    "CONTAMINATION_DATA" not in os.environ,
    reason="set CONTAMINATION_DATA to a directory with mmlu/test/*_test.csv to read real records",
)


@needs_files
def test_lines_of_all_subsets_are_those_of_their_files() -> None:
    sets, reason = subsets_at_hand(10_000, wanted=True)
    assert reason == ""
    for name in subset_names():
        path = Path(os.environ["CONTAMINATION_DATA"], "mmlu", "test", f"{name}_test.csv")
        wanted = [line for line in read_text(path).split("\n")[1:] if line.strip()]
        # The files number the answers that the records letter.
        numbered = [r | {"answer": "ABCD".index(r["answer"])} for r in sets[name].records]
        assert [line for record in numbered for line in physical_lines(record)] == wanted, name


@needs_files
def test_histories_and_nutrition_are_quiet_by_record_and_not_by_line() -> None:
    """Nutrition spans lines, too, and the controls of the paper keep it."""
    sets, _ = subsets_at_hand(10_000, wanted=True)
    chosen = [f"high_school_{where}_history" for where in ("european", "us", "world")]
    chosen.append("nutrition")
    free = model_free(both_readings({name: sets[name] for name in chosen}), seed=0)
    verdicts = free.set_index(["subset", "reading"])["verdict"].unstack()
    assert (verdicts["record"] == "quiet").all()
    assert (verdicts["line"] == "order carries information").all()
    assert (free["spanning"] == 1).all()
    shared = free.drop_duplicates("subset").set_index("subset")["shared_passages"]
    assert (shared[chosen[:3]] > 0.5).all()
    assert shared["nutrition"] == 0
