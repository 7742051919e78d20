"""A stranger computes an audit again from its stores, and names what does not fit."""

import csv
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from contamination.audit.many import audit_pairs
from contamination.audit.recompute import NUMBERS, recompute
from contamination.audit.recompute_verdict import DECLARED, verdict_differences
from contamination.audit.request import Request
from contamination.audit.rows import judged_rows
from contamination.scoring.store import create_store, open_store, sum_store
from fakes.data_fixtures import ROOT
from fakes.made_up_registry import refusal
from fakes.made_up_scorer import MadeUpScorer
from fakes.made_up_store import HEADER, SUCCESSORS, units
from fakes.remembering_scorer import Remembers, made_up_set

SETS = {"words": made_up_set(40), "lamps": replace(made_up_set(44), name="lamps")}
VERIFY = ("verify", "stores", "--against", "audit.csv")
STORE = Path("stores/reader/words/orderings-010")
LINE = "audit.csv, line 3, reader on words: "


@pytest.fixture(scope="module")
def written(tokenizer, tmp_path_factory) -> Path:
    """Return a folder with the stores of an audit, and its table."""
    folder = tmp_path_factory.mktemp("audited")

    def scorer(name: str) -> MadeUpScorer:
        made = Remembers(tokenizer, SETS["words"], 12.0) if name == "reader" else None
        return made or MadeUpScorer(tokenizer, revision="weights-2")

    tests = ("successor", "sharded_exact", "permutation")
    request = Request(tests, permutations=4, directory=folder / "stores")
    opened = {name: lambda each=each: each for name, each in SETS.items()}
    rows = judged_rows([*audit_pairs(["reader", "clean"], opened, request, scorer)], alpha=0.05)
    pd.DataFrame(rows).to_csv(folder / "audit.csv", index=False)
    return folder


@pytest.fixture(autouse=True)
def _in_a_copy(request, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(request.getfixturevalue("written"), tmp_path, dirs_exist_ok=True)


def test_it_gives_every_number_again_without_torch():
    path = os.pathsep.join(map(str, (ROOT / "tests" / "fakes" / "no_torch", ROOT / "src")))
    done = subprocess.run(
        [sys.executable, "-c", "from contamination.cli.main import main; main()", *VERIFY],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0
    assert done.stderr == ""
    assert "verified: the stores give every p of audit.csv" in done.stdout
    assert all(checksum[:8] in done.stdout for checksum in pd.read_csv("audit.csv")["store"])


def flip_a_byte() -> None:
    part = next(STORE.glob("part-*"))
    content = bytearray(part.read_bytes())
    content[len(content) // 3] ^= 1
    part.write_bytes(content)


def forge_a_store() -> None:
    """Whole parts and a whole header, but other log-probabilities."""
    store = open_store(STORE)
    held = store.sequences(permutations=4)
    made = [(row.place, row.examples, row.nats + (row.place[1] == 0)) for row in held]
    for part in store.parts():
        part.unlink()
    store.append(made)


def exchange_stores(other: str, pattern: str) -> None:
    for path in Path(f"stores/{other}").glob(pattern):
        shutil.copy(path, STORE)


def drop_the_other_rows() -> None:
    pd.read_csv("audit.csv", dtype=str).iloc[[1]].to_csv("audit.csv", index=False)


def publish_the_smallest() -> None:
    """One row alone, as if it had been the only test."""
    table = pd.read_csv("audit.csv", dtype=str).iloc[[1]]
    table["p (Holm)"] = table["p"]
    table["reason"] = f"p = {float(table['p'].iloc[0]):.3g} (sharded_exact), but it was published"
    table.to_csv("audit.csv", index=False)


def empty_the_table(text: str) -> None:
    Path("audit.csv").write_text(text)


def keep_the_columns() -> None:
    pd.read_csv("audit.csv", dtype=str).iloc[:0].to_csv("audit.csv", index=False)


def edit_table(column: str, value: str) -> None:
    table = pd.read_csv("audit.csv", dtype=str)
    table.loc[1, column] = value
    table.to_csv("audit.csv", index=False)


def drop_a_column(name: str) -> None:
    pd.read_csv("audit.csv", dtype=str).drop(columns=name).to_csv("audit.csv", index=False)


def change_cells(line: int, cells: slice, *others: str) -> None:
    with Path("audit.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    rows[line - 1][cells] = others
    with Path("audit.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)


@pytest.mark.parametrize(
    ("tamper", "arguments", "named"),
    [
        (
            drop_a_column,
            ("axis",),
            ["audit.csv: line 1 is no row of an audit's table (no column 'axis')"],
        ),
        (change_cells, (3, slice(11, None)), ["audit.csv: line 3 is no row of"]),
        (change_cells, (3, slice(5, None)), ["audit.csv: line 3 is no row of"]),
        (change_cells, (3, slice(99, None), "more"), ["audit.csv: line 3 is no row of"]),
        (flip_a_byte, (), [f"{STORE}/part-", f"{LINE}no whole store"]),
        (forge_a_store, (), [f"{LINE}statistic is ", f"{LINE}p is ", f"{LINE}store is "]),
        (exchange_stores, ("clean/words/orderings-010", "*"), [f"{LINE}no whole store of it"]),
        (exchange_stores, ("clean/words/orderings-010", "part-*"), ["belongs to another store"]),
        (edit_table, ("p", "1e-9"), [f"{LINE}p is 1e-09, and its store gives "]),
        (edit_table, ("verdict", "no evidence"), [f"{LINE}verdict is no evidence, and "]),
        (edit_table, ("alpha", "1e-300"), [f"{LINE}verdict is ", "at alpha 1e-300 give "]),
        (edit_table, ("alpha", "x"), ["audit.csv: line 3 is no row of"]),
        (edit_table, ("reason", "p = 1e-20"), [f"{LINE}reason is 'p = 1e-20', and its p"]),
        (edit_table, ("verdict", "proven"), [f"{LINE}verdict is proven, and ", "give order is no"]),
        (edit_table, ("p", ""), ["audit.csv: line 3 has a verdict"]),
        (edit_table, ("seed", "9"), [f"{LINE}seed is 9, and its store gives 0"]),
        (edit_table, ("permutations", "9"), [f"{STORE}: 4 permutations of 9 are whole"]),
        (edit_table, ("test", "oracle"), ["audit.csv: line 3 is no row of"]),
        (empty_the_table, ("model,p\n",), ["(no column 'set')"]),
        (empty_the_table, ("x",), ["(no column 'model')"]),
        (keep_the_columns, (), ["audit.csv", "no p-value"]),
        (drop_the_other_rows, (), ["audit.csv, line 2, reader on words: p (Holm) is "]),
    ],
)
def test_what_was_changed_is_named_in_a_line_each(call, tamper, arguments, named):
    tamper(*arguments)
    status, _, err = call(*VERIFY)
    assert status == 2
    assert {line[:7] for line in err.splitlines()} == {"error: "}
    assert all(text in err for text in named), err


def test_a_table_that_a_spreadsheet_wrote_is_read_and_a_store_that_is_named_twice_once(call):
    _, once, _ = call(*VERIFY)
    table = Path("audit.csv")
    table.write_text(table.read_text("utf-8"), encoding="utf-8-sig")
    status, out, _ = call(*VERIFY, "stores/reader")
    assert status == 0
    assert out == once


def test_tests_that_a_table_leaves_out_are_counted(call):
    _, whole, _ = call(*VERIFY)
    publish_the_smallest()
    status, out, _ = call(*VERIFY)
    assert status == 0
    assert "not in audit.csv: 11 tests of these stores" in out
    assert "not in audit.csv" not in whole


def test_a_verdict_may_rest_on_an_order_that_was_stated_to_be_drawn():
    row = {
        "line": 2,
        "model": "m",
        "model revision": "1",
        "set": "s",
        "set revision": "2",
        "axis": "order",
        "test": "successor",
        "order": "order carries information",
        "compressor": 0.001,
        "blind": None,
        "control": None,
        "alpha": 0.05,
        "verdict": "evidence",
        "reason": f"p = 0.01 (successor); {DECLARED}",
    }
    stored = {"log10 least": -4.0, "answers problem": ""}
    assert verdict_differences([row], [stored], [0.01]) == []
    silent = row | {"reason": "p = 0.01 (successor); no control model was given"}
    assert verdict_differences([silent], [stored], [0.01])


def test_what_is_neither_stores_nor_a_seal_is_refused(refused):
    assert ".csv: no store in it" in refused("verify", "audit.csv")
    assert "nowhere: no such folder" in refused("verify", "nowhere")
    assert "--seal is missing" in refused("verify", "stores", "--key", "key.json")


def test_without_a_table_all_tests_that_read_a_store_are_computed():
    every = ["token_standardised", "boundary"]
    for header, by_sums, by_tokens in (
        (HEADER, ["sharded_t", "sharded_exact"], every),
        (replace(HEADER, shards=1), ["permutation"], []),
        (replace(SUCCESSORS, shards=1, tokens_per_example=32), ["successor"], []),
    ):
        store = create_store(Path("tokens"), header, replace=True)
        store.append(units(3, header))
        sum_store(store, Path("sums"), permutations=3)
        whole = {row["test"]: row["p"] for row in recompute(Path("tokens"))}
        sums = {row["test"]: row["p"] for row in recompute(Path("sums"))}
        assert [*whole] == [*by_sums, *by_tokens]
        assert sums == {name: whole[name] for name in by_sums}


def test_the_checksum_is_of_what_is_read_not_of_how_it_lies_on_disk():
    one, many = (create_store(Path(name), HEADER) for name in ("one", "many"))
    one.append(units(3))
    for each in units(3):
        many.append([each])
    sums = {one.checksum(2), one.checksum(3)}
    assert len(sums) == 2
    assert sums == {many.checksum(2), many.checksum(3)}
    assert one.checksum(2) == many.checksum(2)
    (one.directory / "run-x.json").write_text('{"precision": "float32"}')
    assert open_store(one.directory).checksum(2) not in sums  # it decides what counts as a tie


def test_answers_of_two_models_of_a_server_are_refused():
    store = create_store(Path("served"), HEADER)
    store.append(units(1)[:2], served="one")
    store.append(units(1)[2:], served="two")
    told = refusal(recompute, store.directory)
    assert "'one'" in told
    assert "'two'" in told


@pytest.mark.parametrize(("share", "named"), [(1e-8, NUMBERS), (1e-11, ())])
def test_a_number_is_verified_to_nine_digits(call, share, named):
    table = pd.read_csv("audit.csv")
    for column in NUMBERS:
        table.loc[1, column] *= 1 + share
    table.to_csv("audit.csv", index=False, float_format="%.17g")
    status, _, err = call(*VERIFY)
    assert status == (2 if named else 0)
    assert all(f"{LINE}{column} is " in err for column in named)


@pytest.mark.parametrize(("models", "verdict"), [("m", "no evidence"), ("mn", "cannot say")])
def test_the_least_p_of_a_table_is_corrected_over_all_its_rows(tokenizer, call, models, verdict):
    """1/25 may be evidence of one test, and not of two."""
    request = Request(["permutation"], permutations=24, directory=Path("more"))

    def scorer(name: str) -> MadeUpScorer:
        return MadeUpScorer(tokenizer, revision=name)

    # Without its end, what follows depends on a record's last digit.
    cut = replace(made_up_set(40), examples=tuple(text[:-2] for text in made_up_set(40).examples))
    pairs = audit_pairs([*models], {"words": lambda: cut}, request, scorer)
    rows = judged_rows([*pairs], alpha=0.05)
    assert {row["verdict"] for row in rows} == {verdict}
    pd.DataFrame(rows).to_csv("more.csv", index=False)
    assert call("verify", "more", "--against", "more.csv")[0] == 0
