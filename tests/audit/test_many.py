"""Every model on every set: one correction over all, and reasons in the place of what failed."""

import csv
import io
import itertools
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from contamination.audit.comparison import ASSUMPTION, STATED
from contamination.audit.controls.sides import compare_sides
from contamination.audit.controls.zlib import zlib_test
from contamination.audit.export_rows import conda, model_cards
from contamination.audit.held_out import SidesRequest
from contamination.audit.many import audit_pairs
from contamination.audit.request import Request
from contamination.audit.rows import judged_rows
from contamination.cli.audit import _print_rows
from contamination.errors import InputError
from contamination.statistics import adjust
from fakes.made_up_registry import jsonl
from fakes.made_up_scorer import MadeUpScorer
from fakes.remembering_scorer import Remembers, RemembersText, made_up_set

ORDER = np.random.default_rng(1).permutation(40)  # the numbers of made-up examples count up
SET = replace(made_up_set(40), examples=tuple(made_up_set(40).examples[i] for i in ORDER))


EXAMPLES = made_up_set(80).examples
DRAWN = np.random.default_rng(3).permutation(80)
PUBLISHED = replace(SET, examples=tuple(EXAMPLES[i] for i in DRAWN[:40]))
HELD_OUT = replace(SET, examples=tuple(EXAMPLES[i] for i in DRAWN[40:]), name="kept back")
READ = replace(PUBLISHED, examples=PUBLISHED.examples[::-1])  # in an order that no shard has
REQUEST = Request(["sharded_exact"], permutations=5)
SIDES = SidesRequest(resamples=9_999)


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
    assert [row["p (Holm)"] for row in told] == pytest.approx(expected, rel=1e-9, abs=0)
    power = {row["test"] for row in told if row["power"]}  # of the test that finds copies best
    assert len(power) == 1 and all(not row["power"] for row in told if row["model"] == "reader")


def test_what_needs_no_model_is_computed_once_for_all_models(tokenizer, tmp_path):
    request = Request(["successor"], directory=tmp_path)
    pairs = audit_pairs(
        ["a", "b"], {"words": lambda: SET}, request, lambda _: MadeUpScorer(tokenizer)
    )
    one, other = (pair.found.findings[0] for pair in pairs)
    assert one.diagnosis is other.diagnosis
    assert one.zlib is other.zlib
    alone = zlib_test(SET, kind="successors", shards=one.result.shards, permutations=25, seed=0)
    assert one.zlib.p == alone.p


def test_baselines_of_two_sides_are_computed_once_for_all_models(rows_of, monkeypatch):
    computed = []

    def counted(*arguments, **named):
        computed.append(arguments)
        return compare_sides(*arguments, **named)

    monkeypatch.setattr("contamination.audit.held_out.compare_sides", counted)
    rows = rows_of("reader", "clean", control="control")
    blind = [row["blind"] for row in rows if row["axis"] == "held out"]
    assert len(computed) == 1
    assert len(blind) == 2
    assert blind[0] == blind[1]


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


@pytest.fixture
def rows_of(tokenizer, tmp_path):
    """Return a function that audits models on a set with held-out records."""

    def scorer(name: str) -> MadeUpScorer:
        if name == "broken":
            raise MemoryError("no room")
        if name == "clean":
            return MadeUpScorer(tokenizer, revision="weights-2")
        return RemembersText(tokenizer, READ, revision=name)

    def run(*models: str, held_out=lambda: HELD_OUT, **more):
        sets = {"words": lambda: PUBLISHED}
        request = replace(REQUEST, directory=tmp_path / "stores")
        parts = {"words": held_out}
        fixed = {"held_out": parts, "sides": SIDES}
        return judged_rows(
            [*audit_pairs(models, sets, request, scorer, **fixed, **more)], alpha=0.05
        )

    return run


def test_rows_of_held_out_records_stand_beside_those_of_the_order(rows_of):
    rows = rows_of("reader", "clean")
    verdicts = [(row["model"], row["axis"], row["verdict"]) for row in rows]
    assert verdicts == [
        ("reader", "order", "no evidence"),
        ("reader", "held out", "proven"),
        ("clean", "order", "no evidence"),
        ("clean", "held out", "no evidence"),
    ]
    expected = adjust(log10_p=[row["log10 p"] for row in rows], method="holm").p
    assert [row["p (Holm)"] for row in rows] == pytest.approx(expected, rel=1e-9, abs=0)
    assert {row["held-out set"] for row in rows} == {None, "kept back"}
    assert rows[1]["blind"] > 0.05
    assert {row["other tests"] for row in rows} == {""}


def test_the_database_gets_what_is_proven_and_a_card_says_what_it_rests_on(rows_of):
    rows = rows_of("reader", "clean")
    entries = list(csv.DictReader(io.StringIO(conda(rows)), delimiter=";"))
    assert [row["Contaminated Source"] for row in entries] == ["reader"]
    assert [row["Evaluation Dataset"] for row in entries] == ["words"]
    cards = model_cards(rows).split("Details: ")
    assert len(cards) == 5
    assert "`reader` has read published records of `words`" in cards[1]
    assert ASSUMPTION in cards[2]
    assert STATED in cards[2]
    assert "`kept back` was held out" in cards[2]
    assert f"p = {rows[1]['p (Holm)']:.3g} after Holm's correction" in cards[1]
    assert ASSUMPTION not in cards[1]
    failed = [{"model": "m", "set": "s", "verdict": "failed", "p": None}]
    assert len(conda(failed).splitlines()) == 1
    assert "Details" not in model_cards(failed)


def test_a_comparison_outside_the_audit_is_told_and_its_own_is_not(rows_of):
    rows_of("clean")
    fewer = replace(HELD_OUT, examples=HELD_OUT.examples[:30], revision="30 records")
    rows = rows_of("clean", held_out=lambda: fewer)
    for row in rows:
        assert row["other tests"].count("held_out (") == 1
    assert "other held-out records" not in rows[0]["other tests"]


def test_a_control_is_said_to_rest_on_the_same_draw(tokenizer, tmp_path):
    def scorer(name: str) -> MadeUpScorer:
        return MadeUpScorer(tokenizer, revision=name)

    request = replace(REQUEST, directory=tmp_path)
    sides = {"held_out": {"words": lambda: HELD_OUT}, "sides": SIDES}
    pairs = [
        *audit_pairs(["a"], {"words": lambda: PUBLISHED}, request, scorer, control="b", **sides)
    ]
    found = pairs[1].found
    assert found.draw == found.control.draw == STATED
    assert found.blind is not None
    assert found.control.blind is None


def test_a_control_objects_to_its_own_axis_alone(rows_of):
    (order, sides) = rows_of("reader", control="other reader")
    assert order["verdict"] == "no evidence"
    assert sides["verdict"] == "sides are no evidence here"
    assert sides["control"] < 0.001
    assert "the control other reader" in sides["reason"]
    (order, sides) = rows_of("reader", control="clean")
    assert sides["verdict"] == "proven"
    assert order["control"] > 0.05 < sides["control"]


@pytest.mark.parametrize(
    ("more", "verdicts", "named"),
    [
        ({"control": "broken"}, ["failed", "failed"], "the control: "),
        ({"held_out": missing}, ["no evidence", "failed"], "nothere.jsonl"),
        ({"held_out": lambda: PUBLISHED}, ["no evidence", "failed"], "record 1 of words"),
    ],
)
def test_what_fails_beside_a_pair_is_told_in_its_row(rows_of, more, verdicts, named):
    rows = rows_of("reader", **more)
    assert [row["verdict"] for row in rows] == verdicts
    assert named in rows[1]["reason"]
    assert rows[1]["axis"] == "held out"


def test_a_set_has_one_name_in_all_rows_and_its_key_where_another_has_that_name(
    tokenizer, tmp_path
):
    request = replace(REQUEST, directory=tmp_path)
    sets = {"a/words.jsonl": lambda: PUBLISHED}
    parts = {"a/words.jsonl": missing}
    more = {"held_out": parts, "sides": SIDES}

    def names_of(sets) -> list[str]:
        pairs = audit_pairs(["m"], sets, request, lambda _: MadeUpScorer(tokenizer), **more)
        return [row["set"] for row in judged_rows([*pairs], alpha=0.05)]

    assert names_of(sets) == ["words", "words"]
    assert names_of({**sets, "words": missing}) == ["a/words.jsonl", "a/words.jsonl", "words"]


def test_other_tests_are_told_beside_a_comparison_that_failed(rows_of, capsys):
    rows_of("reader")
    rows = rows_of("reader", held_out=missing)
    _print_rows(rows, one_model=True)
    printed = " ".join(capsys.readouterr().out.split())
    assert "reader on words: p (Holm) leaves out other tests in --store: held_out" in printed


def test_a_copy_of_the_model_and_held_out_records_of_no_set_are_refused(tokenizer, tmp_path):
    def scorer(_name: str) -> MadeUpScorer:
        return MadeUpScorer(tokenizer)

    request = replace(REQUEST, directory=tmp_path)
    sets = {"words": lambda: PUBLISHED}
    parts = {"words": lambda: HELD_OUT}
    pairs = audit_pairs(["a"], sets, request, scorer, control="copy", held_out=parts, sides=SIDES)
    assert ["weights of the model" in pair.found for pair in pairs] == [True, True]
    with pytest.raises(InputError, match="control"):
        next(audit_pairs(["a"], sets, request, scorer, control="a"))
    with pytest.raises(InputError, match="lamps"):
        next(audit_pairs(["a"], sets, request, scorer, held_out={"lamps": missing}))


@pytest.fixture
def published_in(prose, tmp_path, monkeypatch):
    """Write both sides of a set into a folder of its own."""
    monkeypatch.chdir(tmp_path)
    texts = [text[:60] for text in prose[:40]]
    for name, side in (("set=1.jsonl", texts[::2]), ("kept.jsonl", texts[1::2])):
        Path(name).write_bytes(jsonl([{"text": text} for text in side]))


def test_the_command_audits_and_verifies_held_out_records(call, make_model, published_in):
    asked = ("set=1.jsonl={text}\\n", "--model", make_model(16), "--control", make_model(120))
    asked += ("--held-out", "set=1.jsonl=kept.jsonl", "--test", "sharded_exact")
    asked += ("--permutations", "5", "--precision", "float32", "--store", "stores")
    told = ("--csv", "table.csv", "--html", "page.html", "--output", "a.md")
    status, out, err = call("audit", *asked, *told)
    assert status in (0, 1, 3), err
    assert "was drawn at random" in " ".join(out.split())
    assert "was held out" in Path("a.md").read_text(encoding="utf-8")
    table = pd.read_csv("table.csv", dtype=str)
    assert list(table["axis"]) == ["order", "held out"]
    assert table["p"].notna().all()
    assert table["control"].notna().all()
    verify = ("verify", "stores", "--against")
    status, out, _ = call(*verify, "table.csv")
    assert status == 0
    assert "not compared: the columns order, " in out  # and not the control
    assert "not in table.csv" not in out
    own_header = table.loc[1, "header"]
    for column, value in (
        ("p", "0.5"),
        ("seed", "7"),
        ("held-out set", "another"),
        ("control", "0.5"),
        ("control", ""),
        ("control header", own_header),
    ):
        changed = table.copy()
        changed.loc[1, column] = value
        changed.to_csv("changed.csv", index=False)
        status, _, err = call(*verify, "changed.csv")
        assert status == 2
        assert "line 5, " in err  # a template has ended a line
        assert column.removesuffix(" header") in err
    table.drop(columns="control header").to_csv("earlier.csv", index=False)
    status, out, _ = call(*verify, "earlier.csv")
    assert status == 0
    assert "not compared: the columns control, order, " in out


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--held-out", "kept.jsonl"), "SET=FILE"),
        (("--held-out", "other.jsonl=kept.jsonl"), "other.jsonl"),
        (("--held-out", "set=1.jsonl=a", "--held-out", "set=1.jsonl=b"), "already"),
        (("--held-out", "set=1.jsonl=kept.jsonl", "--csv", "kept.jsonl"), "kept.jsonl"),
        (("--within", "source", "--paired", "--held-out", "set=1.jsonl=kept.jsonl"), "--within"),
        (("--control", "m"), "control"),
        (("--output", "x.json"), ".conda.csv"),
    ],
)
def test_bad_input_is_one_line(refused, published_in, arguments, named):
    assert named in refused("audit", "set=1.jsonl", "--model", "m", *arguments)


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
    assert all("p (Holm) = " in row["reason"] and row["precision"] for row in found)
    told = ("--csv", "table.csv", "--html", "page.html", "--store", "stores")
    assert call("audit", "nothere.jsonl", *asked, *told)[0] == 3
    assert "words" in (tmp_path / "page.html").read_text()
    assert call("verify", "stores", "--against", "table.csv")[0] == 0


@pytest.mark.parametrize(
    ("typed", "named"),
    [
        (("--csv", "words.jsonl"), "words.jsonl is what is read"),
        (("--html", "./words.jsonl"), "words.jsonl is what is read"),
        (("--csv", "one", "--html", "./one"), "one would be written twice"),
    ],
)
def test_no_file_is_lost_to_another(refused, tmp_path, monkeypatch, typed, named):
    """A set is a file that is read also where its template is typed with it."""
    monkeypatch.chdir(tmp_path)
    rows = '{"text": "a b"}\n{"text": "b c"}\n'
    (tmp_path / "words.jsonl").write_text(rows)
    assert named in refused("audit", "words.jsonl={text}", "--model", "nothing", *typed)
    assert [path.name for path in tmp_path.iterdir()] == ["words.jsonl"]
    assert (tmp_path / "words.jsonl").read_text() == rows
