"""Comparison of two runs: what must not move, what may, and faults that have to be seen."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from contamination.cli.ending import ExitStatus
from contamination.errors import InputError
from contamination.files import read_json, write_json
from fakes.data_fixtures import ROOT
from reproduction.output.compare import (
    DIFFERENT,
    EXACT,
    IDENTICAL,
    NAME,
    SCALES,
    SKIPPED,
    WITHIN,
    compare,
    compare_tables,
    counts,
    read_tables,
)
from reproduction.stages import stage

TOLERANCES = ROOT / "docs" / "measurements" / "tolerances.csv"
REFERENCE = ROOT / "results" / "reference"
MANIFEST = read_json(REFERENCE / "manifest.json")
SETS = {"signature-1": 1, "question-8": 8, "signature-64": 64}
MODELS = ("contaminated", "clean")
ROWS = [  # table, its columns of one kind, the kind, and the tolerance
    ("canaries", "model dataset test", NAME, np.nan),
    ("canaries", "dup_count tokens_scored verdict published_p", EXACT, np.nan),
    ("canaries", "model_revision", SKIPPED, np.nan),
    ("canaries", "statistic", "statistic", 0.5),
    ("canaries", "p", "p", 1.0),
    ("canaries", "log10_p", "log10 p", 1.0),
    ("calibration", "test", NAME, np.nan),
    ("calibration", "rejections", "count", 1.5),
    ("calibration", "rate", "rate", 0.02),
    ("manifest run", "fact", NAME, np.nan),
]
RULES = pd.DataFrame(ROWS, columns=["table", "column", "scale", "tolerance"])
RULES["column"] = RULES["column"].str.split()
RULES = RULES.explode("column", ignore_index=True)
Tables = dict[str, pd.DataFrame]


def _tables() -> Tables:
    """Return a small run: strong evidence where a set was read often, none of the clean model."""
    rows = []
    for model in MODELS:
        for dataset, count in SETS.items():
            for test in ("sharded_t", "successor"):
                z = 0.3 * len(dataset) - 3 + (1.2 * np.log2(count) if model == MODELS[0] else 0)
                p = stats.norm.sf(z)
                facts = {"model": model, "dataset": dataset, "dup_count": count, "test": test}
                facts |= {"statistic": z, "p": p, "log10_p": np.log10(p), "tokens_scored": 37080}
                facts |= {"verdict": "quiet", "published_p": 0.014, "model_revision": model * 3}
                rows.append(facts)
    calibration = {"test": ["sharded_t", "successor"], "rejections": [50, 9], "rate": [0.05, 0.009]}
    run = {"fact": ["seed", "tokens_scored"], "value": [20261121, 12_345_678_900]}
    tables = {"canaries": rows, "calibration": calibration, "manifest run": run}
    return {name: pd.DataFrame(table).astype(str) for name, table in tables.items()}


def _compared(run: Tables) -> pd.DataFrame:
    return compare_tables(run, _tables(), RULES)


def count(found: pd.DataFrame, outcome: str) -> int:
    return int((found["outcome"] == outcome).sum())


def _moved(rng: np.random.Generator, share: float) -> Tables:
    """Return the run with every measured value moved by `share` of its tolerance, up or down."""
    tables = _tables()
    for table, column, scale, tolerance in RULES.dropna().itertuples(index=False):
        values = tables[table][column].astype(float)
        pairs = zip(values, share * tolerance * rng.choice([-1, 1], len(values)), strict=True)
        tables[table][column] = [repr(float(_back(scale, *pair))) for pair in pairs]
    return tables


def _back(scale: str, value: float, by: float) -> float:
    """Move a value by `by` on its scale, which must not depend on the code under test."""
    if scale == "p":
        return stats.norm.sf(stats.norm.isf(value) + by)
    if scale == "log10 p":
        return stats.norm.logsf(stats.norm.isf(10**value) + by) / np.log(10)
    if scale == "statistic":
        return np.sinh(np.arcsinh(value) + by)
    if scale == "count":
        return (np.sqrt(value) + by) ** 2
    return value + by


def test_a_run_is_identical_to_itself() -> None:
    found = _compared(_tables())
    # 12 rows of 7 columns, 2 of 2 and 2 of 1; names and revisions of weights are not counted.
    assert len(found) == 12 * 7 + 2 * 2 + 2 == count(found, IDENTICAL)
    assert counts(found) == "90 identical, 0 within tolerance, 0 different"


def test_order_weights_and_rounding_say_nothing() -> None:
    tables = {name: t.iloc[::-1, ::-1] for name, t in reversed(_tables().items())}
    tables["canaries"]["model_revision"] = "of other weights"
    tables["canaries"]["published_p"] = "0.01400000000000001"
    tables["canaries"]["tokens_scored"] = "37080.0"
    found = _compared(tables)
    assert count(found, IDENTICAL) == 90
    assert len(found) == 90


def test_moves_below_the_tolerance_are_within_and_above_it_different() -> None:
    rng = np.random.default_rng(0)
    below = _compared(_moved(rng, 0.99))
    above = _compared(_moved(rng, 1.01))
    measured = 12 * 3 + 2 * 2
    assert count(below, WITHIN) == measured
    shares = below.loc[below["outcome"] == WITHIN, "share"]
    assert shares.to_numpy() == pytest.approx(0.99, abs=1e-6)
    assert count(above, DIFFERENT) == measured
    assert count(below, IDENTICAL) == count(above, IDENTICAL) == 90 - measured


Fault = Callable[[Tables], object]


def _set(table: str, place: int, column: str, text: str) -> Fault:
    return lambda tables: tables[table].__setitem__(
        column, tables[table][column].where(np.arange(len(tables[table])) != place, text)
    )


def _change(table: str, change: Callable[[pd.DataFrame], pd.DataFrame]) -> Fault:
    return lambda tables: tables.update({table: change(tables[table])})


SWAPPED = {"p": "log10_p", "log10_p": "p"} | dict(zip(MODELS, reversed(MODELS), strict=True))
STRONG = "contaminated, signature-64, successor"
CELL, FACT, SHAPE = ("canaries", STRONG), ("manifest run",), ("", "(the columns)")
FAULTS: dict[str, tuple[Fault, tuple[str, ...]]] = {  # and where each has to be seen
    "another seed": (_set("manifest run", 0, "value", "5"), (*FACT, "seed", "value")),
    "a token more": (
        _set("manifest run", 1, "value", "12345678901"),
        (*FACT, "tokens_scored", "value"),
    ),
    "a number that is gone": (_set("canaries", 5, "p", ""), (*CELL, "p")),
    "models swapped": (_change("canaries", lambda t: t.replace(SWAPPED)), (*CELL, "p")),
    "no row": (_change("canaries", lambda t: t.drop(index=5)), (*CELL, "p")),
    "a row twice": (
        _change("canaries", lambda t: pd.concat([t, t.iloc[[5]]])),
        ("canaries", f"{STRONG} #2", "p"),
    ),
    "a column more": (_change("canaries", lambda t: t.assign(seconds="1")), ("canaries", *SHAPE)),
    "a table more": (lambda t: t.update(old=pd.DataFrame({"a": ["1"]})), ("old", *SHAPE)),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_called_different(fault: str) -> None:
    inject, place = FAULTS[fault]
    run = _moved(np.random.default_rng(0), 0.5)
    assert count(_compared(run), DIFFERENT) == 0
    inject(run)
    found = _compared(run)
    values = found.set_index(["table", "row", "column"])
    assert values.loc[place, "outcome"] == DIFFERENT


def test_p_values_smaller_than_any_float_and_those_where_nothing_was_found() -> None:
    far = float(SCALES["log10 p"](np.array([-2000.0]))[0])
    assert stats.norm.logsf(far) / np.log(10) == pytest.approx(-2000)
    assert len(set(SCALES["p"](np.array([0.9, 0.95, 1.0])))) == 1


RULES_OF_GIT = pd.read_csv(TOLERANCES)


@pytest.fixture
def copy(tmp_path: Path) -> Callable[..., Path]:
    def copied(name: str, **facts: object) -> Path:
        shutil.copytree(REFERENCE, tmp_path / name)
        write_json(tmp_path / name / "manifest.json", MANIFEST | facts)
        return tmp_path / name

    return copied


def _manifest_tables(results: Path) -> Tables:
    tables = read_tables(results)
    return {name: table for name, table in tables.items() if name.startswith("manifest")}


def test_a_run_of_released_models_has_no_corpus() -> None:
    found = compare(REFERENCE / "pocket", REFERENCE / "pocket", RULES_OF_GIT)
    assert count(found, IDENTICAL) == len(found)
    assert "manifest released" in set(found["table"])


def test_facts_of_the_manifest_are_compared_and_times_are_not(copy) -> None:
    steps = {name: step | {"seconds": 99} for name, step in MANIFEST["steps"].items()}
    models = {name: facts | {"sha256": "other"} for name, facts in MANIFEST["models"].items()}
    slow = copy("slow", steps=steps, models=models, commit="other", hardware="other")
    found = compare(slow, REFERENCE, RULES_OF_GIT)
    assert count(found, IDENTICAL) == len(found) > 1000
    steps["train clean"] |= {"tokens": 51}
    other = copy("other", seed=6, steps=steps)
    found = compare_tables(_manifest_tables(other), _manifest_tables(REFERENCE), RULES_OF_GIT)
    assert set(found.loc[found["outcome"] != IDENTICAL, "table"]) == {
        "manifest run",
        "manifest steps",
    }


def test_the_stage_says_what_is_different(copy, capsys, monkeypatch) -> None:
    monkeypatch.setattr(stage, "REFERENCE", REFERENCE)
    monkeypatch.setattr(stage, "TOLERANCES", TOLERANCES)
    run = copy("run")
    table = pd.read_csv(run / "tables" / "canaries.csv", dtype=str, keep_default_na=False)
    table.loc[5, "dup_count"] = "63"
    table.to_csv(run / "tables" / "canaries.csv", index=False)
    (run / "tables" / "canaries.md").rename(run / "tables" / "canary.md")
    assert stage.compare(results=run) is ExitStatus.DIFFERENT
    out = capsys.readouterr().out
    assert MANIFEST["hardware"] in out
    assert "not allowed" in out
    assert "63" in out
    assert " identical, 0 within tolerance, 3 different" in out
    values = pd.read_csv(run / "comparison.csv").query("outcome == @DIFFERENT")
    assert {*values["column"]} == {"dup_count", "(the row)"}
    assert {"canaries.md", "canary.md"} < {*values["row"]}


def test_of_another_profile_names_alone_are_compared(copy, capsys, monkeypatch) -> None:
    monkeypatch.setattr(stage, "TOLERANCES", TOLERANCES)
    run = copy("quick", profile="quick", seed=6)
    assert stage.compare(results=run, other=REFERENCE) is ExitStatus.DONE
    (run / "tables" / "canaries.md").unlink()
    assert stage.compare(results=run, other=REFERENCE) is ExitStatus.DIFFERENT
    assert f"{run} lacks tables/canaries.md" in capsys.readouterr().out


def test_what_cannot_be_compared_is_reported(copy, tmp_path: Path) -> None:
    run = copy("run")
    for other, message in (
        (copy("quick", profile="quick"), "is of quick, and this run is of laptop"),
        (tmp_path / "none", "none: no finished run; run `make reproduce` first"),
    ):
        with pytest.raises(InputError, match=message):
            compare(run, other, RULES_OF_GIT)
    shutil.rmtree(run / "tables")
    with pytest.raises(InputError, match="tables: no tables; run `make reproduce` first"):
        compare(run, run, RULES_OF_GIT)


def test_every_column_has_a_rule_and_every_measured_one_a_tolerance() -> None:
    rules = RULES_OF_GIT
    assert not rules.duplicated(["table", "column"]).any()
    measured = rules["scale"].isin(list(SCALES))
    assert set(rules.loc[~measured, "scale"]) == {NAME, EXACT, SKIPPED}
    assert (rules.loc[measured, "tolerance"] > 0).all()
    assert rules.loc[~measured, "tolerance"].isna().all()
    listed = set(rules[["table", "column"]].itertuples(index=False, name=None))
    for name, table in read_tables(REFERENCE).items():
        assert {(name, column) for column in table} <= listed


@pytest.mark.parametrize(
    ("column", "run", "reference"),
    [
        ("p", "0.5", "0.001"),  # a detection that is gone
        ("log10_p", "-20", "-40"),
        ("dup_count", "63", "64"),
        ("tokens_scored", "37081", "37080"),
    ],
)
def test_tolerances_of_git_are_tight_enough_for_a_canary(column, run, reference) -> None:
    row = {"model": "contaminated", "dataset": "signature-64", "test": "successor"}
    one, other = ({"canaries": pd.DataFrame([row | {column: text}])} for text in (run, reference))
    assert count(compare_tables(one, other, RULES_OF_GIT), DIFFERENT) == 1
