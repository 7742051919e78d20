"""The subsets of MMLU: their names, and what is lost where records are torn into lines."""

import csv
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from contamination.errors import InputError
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.records import read_text
from contamination.testsets.registry import entries
from fakes.data_fixtures import ROOT
from reproduction.notebooks.mmlu import subsets
from reproduction.notebooks.mmlu.subsets import (
    FAMILY,
    by_line,
    model_free,
    physical_lines,
    segmented,
    subset_names,
    subsets_at_hand,
)
from reproduction.output.published import load_published
from reproduction.run.grid import Access

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
    themes = [rng.choice(WORDS, 4, replace=False) for _ in range(count)]
    lines = [[" ".join(rng.choice(theme, 9)) for _ in range(4)] for theme in themes]
    return make_set(["\n".join(each) for each in lines], "passages")


def single_lines(count: int) -> ExampleSet:
    rng = np.random.default_rng(4)
    return make_set([" ".join(rng.choice(WORDS, 8)) for _ in range(count)], "single")


def test_names_and_sizes_are_those_of_table_4_and_professional_law() -> None:
    table4 = load_published(ROOT / "data" / "published", "oren2024_table4_mmlu")
    names = subset_names()
    assert names == [*table4["subset"], "professional_law"]
    sizes = {name: entries()[FAMILY + name].records for name in table4["subset"]}
    assert sizes == dict(zip(table4["subset"], table4["size"], strict=True))


class Registry(Access):
    """Sets made of their names; one is out of reach, one damaged. `opened` keeps the order."""

    def __init__(self) -> None:
        self.opened: list[str] = []

    def open_set(self, name, *, max_records, lines=False) -> ExampleSet:
        self.opened.append(name)
        if name == "mmlu/anatomy":
            raise InputError(f"{name}: fetch it") from ConnectionError("no way out")
        if name == "mmlu/virology":
            raise InputError(f"{name}: another checksum")
        return ExampleSet(name, (f"{name}\n",) * max_records, "text/1", f"revision of {name}")


def test_subsets_are_opened_under_their_own_names_or_say_why_not(monkeypatch) -> None:
    monkeypatch.setattr(subsets, "available", lambda name: name != "mmlu/astronomy")
    access = Registry()
    found = subsets_at_hand(7, wanted=True, access=access)
    assert list(found) == subset_names()
    away, wrong = "not run here: mmlu/anatomy: fetch it", "failed: mmlu/virology: another checksum"
    lost = {name: one for name, one in found.items() if isinstance(one, str)}
    assert lost == {"anatomy": away, "astronomy": away, "virology": wrong}
    assert "mmlu/astronomy" not in access.opened
    assert (found["nutrition"].name, len(found["nutrition"].examples)) == ("nutrition", 7)
    with pytest.raises(InputError, match="max_records is 1"):
        subsets_at_hand(1, wanted=False, access=access)
    access.opened.clear()
    (reason,) = set(subsets_at_hand(7, wanted=False, access=access).values())
    assert reason.startswith("not run here") and access.opened == []


def test_lines_are_those_of_a_csv_file(tmp_path: Path) -> None:
    questions = ['He said "yes",\nthen\n\nno.', "plain", " \n starts late"]
    questions += ["ends so\n", "é\u2028x", "a\n  \nb"]
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


def test_by_line_is_another_test_set() -> None:
    records = passages(3)
    lines = by_line(records)
    both = {"record": {"a": records}, "line": {"a": lines}}
    assert segmented({"a": records, "b": "failed: gone"}) == both
    assert len(lines.examples) == 12
    found = (lines.name, lines.template, lines.records)
    assert found == ("passages-by-line", "csv-line/1", ())
    others = {one.revision for one in (lines, records, by_line(make_set(["x"], "other")))}
    assert len(others) == 3


@pytest.fixture(scope="module")
def free() -> pd.DataFrame:
    sets = {"passages": passages(40), "single": single_lines(80)}
    return model_free(segmented(sets), seed=1)


def test_torn_records_are_found_and_whole_ones_are_quiet(free: pd.DataFrame) -> None:
    rows = free.set_index(["subset", "segmentation"])
    counts = rows["examples"].unstack()[["record", "line"]]
    assert counts.to_dict("list") == {"record": [40, 80], "line": [160, 80]}
    torn = rows.loc["passages", "line"]
    assert torn["verdict"] == "order carries information"
    assert torn["compressor_log10_p"] < -3
    for whole in [("passages", "record"), ("single", "record"), ("single", "line")]:
        assert rows.loc[whole, "verdict"] == "quiet"
        assert rows.loc[whole, "compressor_log10_p"] > -2


@pytest.mark.parametrize(
    ("shared", "expected"),
    [("From this:", 0), ("From this, and which is the longest line of each", 2 / 12)],
)
def test_facts_about_lines(shared: str, expected: float) -> None:
    """The longest line counts: where that has the choices, it differs in the question."""
    refrain = "a line that its own record says twice"
    questions = [f"{shared}\nA?", "B?", f"{shared}\nC?", f"?\n{refrain}\n{refrain}", *"defghijk"]
    free = model_free(segmented({"set": make_set(questions)}), seed=1)
    assert (free["lines_per_record"] == (2 + 1 + 2 + 3 + 8) / 12).all()
    assert (free["spanning"] == 3 / 12).all()
    assert (free["shared_passages"] == expected).all()


@pytest.mark.skipif(
    "CONTAMINATION_DATA" not in os.environ,
    reason="set CONTAMINATION_DATA to a directory with mmlu/test/*_test.csv to read real records",
)
def test_lines_of_all_subsets_are_those_of_their_files() -> None:
    sets = subsets_at_hand(10_000, wanted=True)
    for name in subset_names():
        path = Path(os.environ["CONTAMINATION_DATA"], "mmlu", "test", f"{name}_test.csv")
        wanted = [line for line in read_text(path).split("\n")[1:] if line.strip()]
        # The files number the answers that the records letter.
        numbered = [r | {"answer": "ABCD".index(r["answer"])} for r in sets[name].records]
        assert [line for record in numbered for line in physical_lines(record)] == wanted, name
