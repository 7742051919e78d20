"""Every model on every set: one correction over all, and reasons in the place of what failed."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest

from contamination.audit.many import audit_pairs
from contamination.audit.request import Request
from contamination.audit.rows import judged_rows
from contamination.errors import InputError
from contamination.statistics import adjust
from fakes.made_up_scorer import MadeUpScorer
from fakes.remembering_scorer import Remembers, made_up_set

ORDER = np.random.default_rng(1).permutation(40)  # the numbers of made-up examples count up
SET = replace(made_up_set(40), examples=tuple(made_up_set(40).examples[i] for i in ORDER))


def missing() -> None:
    raise InputError("nothere.jsonl: no such file")


def test_every_pair_is_audited_and_corrected_over_all(tokenizer, tmp_path):
    opened = []

    def open_model(name: str):
        opened.append(name)
        if name == "broken":
            raise MemoryError("no room")
        return Remembers(tokenizer, SET, 12.0) if name == "reader" else MadeUpScorer(tokenizer)

    request = Request(["successor", "sharded_exact"], permutations=5, directory=tmp_path)
    sets = {"words": lambda: SET, "nothere.jsonl": missing}
    pairs = list(audit_pairs(["reader", "broken", "clean"], sets, request, open_model))
    assert opened == ["reader", "broken", "clean"]
    assert [pair[:2] for pair in pairs] == list(itertools.product(opened, sets))
    assert pairs[1][2] == "failed: nothere.jsonl: no such file"
    rows = judged_rows(pairs, alpha=0.05)
    verdicts = [(row["model"], row["test"], row["verdict"]) for row in rows]
    assert verdicts == [
        *(("reader", test, "proven") for test in request.tests),
        *((model, None, "failed") for model in ("reader", "broken", "broken")),
        *(("clean", test, "no evidence") for test in request.tests),
        ("clean", None, "failed"),
    ]
    told = [row for row in rows if row["p"] is not None]
    expected = adjust(log10_p=[row["log10 p"] for row in told], method="holm").p
    assert [row["p (Holm)"] for row in told] == pytest.approx(expected)
    power = {row["test"] for row in told if row["power"]}  # of the test that finds copies best
    assert len(power) == 1 and all(not row["power"] for row in told if row["model"] == "reader")


def test_two_models_of_one_name_and_the_axis_of_options_are_refused(tmp_path):
    folders = [tmp_path / one / "m" for one in "ab"]
    for folder in folders:
        folder.mkdir(parents=True)
    for models, request, named in (
        ([*map(str, folders)], Request(), "one name"),
        (["a"], Request(axis="options"), "axis"),
    ):
        with pytest.raises(InputError, match=named):
            next(audit_pairs(models, {}, request, MadeUpScorer))


def test_the_command(call, model_directory, prose, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f'{{"text": "{i} words {i * 7 % 13}"}}\n' for i in range(20))
    (tmp_path / "words.jsonl").write_text(rows)
    asked = ("words.jsonl={text}\\n", "--model", model_directory)
    status, out, _ = call("audit", "nothere.jsonl", *asked)
    assert status == 3
    assert "nothere.jsonl: no such file" in out
    for sets, named in ((("nosuch/*",), "nosuch/*"), (("a={b}", "a={c}"), "a has two templates")):
        status, _, err = call("audit", *sets, "--model", model_directory)
        assert status == 2
        assert named in err
    # Files of one stem have stores of their own.
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "words.jsonl").write_text(rows.replace("words", "lamps"))
    found = json.loads(call("audit", "more/words.jsonl", *asked, "--json")[1])
    assert [row["set"] for row in found] == ["more/words.jsonl", "words.jsonl"]
    assert {row["verdict"] for row in found} == {"no evidence"}
    assert all("p = " in row["reason"] and row["precision"] for row in found)
    told = ("--csv", "table.csv", "--html", "page.html", "--store", "stores")
    assert call("audit", "nothere.jsonl", *asked, *told)[0] == 3
    assert "words" in (tmp_path / "page.html").read_text()
    assert call("verify", "stores", "--against", "table.csv")[0] == 0
