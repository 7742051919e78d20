"""A stranger computes an audit again from its stores, and names what does not fit."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from contamination.audit.many import audit_pairs, judged_rows
from contamination.audit.recompute import recompute
from contamination.audit.request import Request
from contamination.scoring.store import Store, open_store, sum_store
from fakes.data_fixtures import ROOT
from fakes.made_up_registry import refusal
from fakes.made_up_scorer import MadeUpScorer
from fakes.made_up_store import HEADER, SUCCESSORS, units
from fakes.remembering_scorer import Remembers, made_up_set

SET = made_up_set(40)
OTHER = replace(made_up_set(44), name="lamps", revision="made up, too")
TESTS = ("successor", "sharded_exact", "permutation")
SUMS = ["sharded_t", "sharded_exact"]


@pytest.fixture(scope="module")
def written(tokenizer, tmp_path_factory) -> Path:
    """Return a folder with the stores of an audit, and its table."""
    folder = tmp_path_factory.mktemp("audited")

    def scorer(name: str) -> MadeUpScorer:
        made = Remembers(tokenizer, SET, 12.0) if name == "reader" else MadeUpScorer(tokenizer)
        made.revision = name
        return made

    request = Request(TESTS, permutations=4, directory=folder / "stores")
    sets = {"words": lambda: SET, "lamps": lambda: OTHER}
    rows = judged_rows([*audit_pairs(["reader", "clean"], sets, request, scorer)], alpha=0.05)
    pd.DataFrame(rows).to_csv(folder / "audit.csv", index=False)
    return folder


@pytest.fixture
def audited(written, tmp_path, monkeypatch) -> Path:
    """Enter a copy of it."""
    shutil.copytree(written, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    return tmp_path / "copy"


VERIFY = ("verify", "stores", "--against", "audit.csv")
STORE = Path("stores/reader/words/orderings-010")


def test_it_gives_every_number_again_without_torch(audited):
    code = "from contamination.cli.main import main; main()"
    path = os.pathsep.join(map(str, (ROOT / "tests" / "fakes" / "no_torch", ROOT / "src")))
    done = subprocess.run(
        [sys.executable, "-c", code, *VERIFY],
        env=os.environ | {"PYTHONPATH": path, "COLUMNS": "120"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "verified: the stores give every p of audit.csv" in done.stdout
    table = pd.read_csv("audit.csv")
    assert all(checksum[:8] in done.stdout for checksum in table["store"])


def flip_a_byte() -> None:
    part = next(STORE.glob("part-*"))
    content = bytearray(part.read_bytes())
    content[len(content) // 3] ^= 1
    part.write_bytes(content)


def forge_a_store() -> None:
    """Whole parts and a whole header, but other log-probabilities."""
    store = open_store(STORE)
    items = [
        (u.unit, u.examples, u.nats + (u.unit[1] == 0)) for u in store.units("orderings", None, 4)
    ]
    for part in store.parts():
        part.unlink()
    store.append(items)


def exchange_a_store() -> None:
    shutil.rmtree(STORE)
    shutil.copytree("stores/reader/lamps/orderings-011", STORE)


def put_parts_of_another_store() -> None:
    for name in ("reader", "clean"):
        assert len([*Path(f"stores/{name}/words/orderings-010").glob("part-*")]) == 1
    (ours,), (theirs,) = (
        STORE.glob("part-*"),
        Path("stores/clean/words/orderings-010").glob("part-*"),
    )
    shutil.copy(theirs, ours)


def edit_header() -> None:
    path = STORE / "store.json"
    path.write_text(path.read_text().replace('"words"', '"other"'))


def edit_table(change: Callable[[pd.DataFrame], pd.DataFrame]) -> None:
    change(pd.read_csv("audit.csv", dtype=str)).to_csv("audit.csv", index=False)


def set_cell(column: str, value: str) -> Callable[[], None]:
    def change(table: pd.DataFrame) -> pd.DataFrame:
        table.loc[1, column] = value
        return table

    return lambda: edit_table(change)


LINE = "audit.csv, line 3, reader on words: "


@pytest.mark.parametrize(
    ("tamper", "named"),
    [
        (flip_a_byte, [f"{STORE}/part-", f"{LINE}no whole store"]),
        (forge_a_store, [f"{LINE}statistic is ", f"{LINE}p is ", f"{LINE}store is "]),
        (exchange_a_store, [f"{LINE}no whole store of it"]),
        (put_parts_of_another_store, ["the part belongs to another store", f"{LINE}no whole"]),
        (edit_header, ["the part belongs to another store", f"{LINE}no whole store"]),
        (set_cell("p", "1e-9"), [f"{LINE}p is 1e-09, and its store gives "]),
        (set_cell("model revision", "v2"), [f"{LINE}model revision is v2, and its store gives"]),
        (lambda: edit_table(lambda table: table.iloc[[1]]), ["line 2, reader on words: p (Holm)"]),
        (set_cell("permutations", "9"), [f"{STORE}: 4 permutations of 9 are whole"]),
    ],
)
def test_what_was_changed_is_named_in_a_line_each(audited, call, tamper, named):
    tamper()
    status, _, err = call(*VERIFY)
    assert status == 2
    lines = err.splitlines()
    assert all(line.startswith("error: ") for line in lines)
    assert all(any(text in line for line in lines) for text in named), err


@pytest.mark.parametrize(
    ("arguments", "table", "named"),
    [
        (("verify", "."), "", ".: no store in it"),
        (("verify", "stores", "--key", "key.json"), "", "give these alone"),
        (VERIFY, "model,p\nm,0.5\n", "audit.csv: line 2 is no row of"),
        (
            VERIFY,
            "test,permutations,p,log10 p\nsuccessor,x,1,0\n",
            "audit.csv: line 2 is no row of",
        ),
    ],
)
def test_bad_input_is_one_line(refused, written, tmp_path, monkeypatch, arguments, table, named):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "audit.csv").write_text(table)
    if table:
        shutil.copytree(written / "stores", "stores")
    assert named in refused(*arguments)


@pytest.mark.parametrize(
    ("header", "tests", "by_sums"),
    [
        (HEADER, [*SUMS, "token_standardised", "clipped", "boundary", "min_p_orderings"], SUMS),
        (replace(HEADER, shards=1), ["permutation"], ["permutation"]),
        (replace(SUCCESSORS, shards=1, tokens_per_example=32), ["successor"], ["successor"]),
        (replace(SUCCESSORS, shards=1, tokens_per_example=None), ["min_p"], []),
        (replace(HEADER, shards=1, kind="alternatives"), [], []),
    ],
)
def test_without_a_table_the_tests_are_those_that_read_such_a_store(
    tmp_path, header, tests, by_sums
):
    store = Store(tmp_path / "tokens", header)
    store.append(units(3, header))
    stores = {store.directory: tests}
    if by_sums:
        sum_store(store, tmp_path / "sums", permutations=3)
        stores[tmp_path / "sums"] = by_sums
    p = {}
    for directory, names in stores.items():
        if not names:
            assert "it names no test" in refusal(recompute, directory)
            continue
        found = {row["test"]: row["p"] for row in recompute(directory)}
        assert [*found] == names
        assert p.setdefault(names[0], found[names[0]]) == found[names[0]]


def test_the_checksum_is_of_what_is_read_not_of_how_it_lies_on_disk(tmp_path):
    one, many = (Store(tmp_path / name, HEADER) for name in ("one", "many"))
    one.append(units(3))
    for each in units(3):
        many.append([each])
    sums = {store.checksum(m) for store in (one, many) for m in (2, 3)}
    assert len(sums) == 2 and one.checksum(2) == many.checksum(2)
    (one.directory / "run-x.json").write_text('{"precision": "bfloat16"}')
    assert open_store(one.directory).checksum(2) not in sums  # it decides what counts as a tie
