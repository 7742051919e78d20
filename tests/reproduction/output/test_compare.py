"""Comparison of two runs: what must not move, what may, and faults that have to be seen."""

import platform
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer
from scipy import stats

from contamination.errors import InputError
from contamination.files import read_json, write_json
from fakes.data_fixtures import ROOT
from reproduction.output.compare import (
    DIFFERENT,
    IDENTICAL,
    SCALES,
    WITHIN,
    Comparison,
    compare,
    compare_tables,
    read_tables,
    read_tolerances,
)
from reproduction.stages import stage

TOLERANCES = ROOT / "docs" / "measurements" / "tolerances.csv"
REFERENCE = ROOT / "results" / "reference"
SETS = {"signature-1": 1, "question-8": 8, "signature-64": 64}
MODELS = ("contaminated", "clean")
RULES = {
    "canaries": {
        "model": "name",
        "dataset": "name",
        "test": "name",
        "dup_count": "exact",
        "statistic": 0.5,
        "p": 1.0,
        "log10_p": 1.0,
        "tokens_scored": "exact",
        "verdict": "exact",
        "published_p": "exact",
        "model_revision": "not compared",
    },
    "calibration": {"test": "name", "rejections": 1.5, "rate": 0.02},
    "manifest run": {"fact": "name", "value": "exact"},
}
SCALE_OF = {
    "statistic": "statistic",
    "p": "p",
    "log10_p": "log10 p",
    "rejections": "count",
    "rate": "rate",
}
Tables = dict[str, pd.DataFrame]


def _rules() -> pd.DataFrame:
    rows = [
        (table, column, SCALE_OF[column] if isinstance(rule, float) else rule, rule)
        for table, columns in RULES.items()
        for column, rule in columns.items()
    ]
    rules = pd.DataFrame(rows, columns=["table", "column", "scale", "tolerance"])
    return rules.assign(tolerance=pd.to_numeric(rules["tolerance"], errors="coerce"))


def _tables() -> dict[str, pd.DataFrame]:
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
    tables = [pd.DataFrame(rows), pd.DataFrame(calibration), pd.DataFrame(run)]
    return {name: t.astype(str) for name, t in zip(RULES, tables, strict=True)}


def _compared(run: Tables, reference: Tables | None = None) -> Comparison:
    return compare_tables(run, reference or _tables(), _rules())


def _moved(rng: np.random.Generator, share: float) -> Tables:
    """Return the run with every measured value moved by `share` of its tolerance, up or down."""
    tables = _tables()
    for table, columns in RULES.items():
        for column, rule in columns.items():
            if not isinstance(rule, float):
                continue
            values = tables[table][column].astype(float).to_numpy()
            by = share * rule * rng.choice([-1, 1], len(values))
            tables[table][column] = [
                repr(float(_back(SCALE_OF[column], at, step)))
                for at, step in zip(values, by, strict=True)
            ]
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


# --- what agrees ----------------------------------------------------------------------------------


def test_a_run_is_identical_to_itself() -> None:
    found = _compared(_tables())
    assert set(found.values["outcome"]) == {IDENTICAL}
    # 12 rows of 7 columns, 2 of 2 and 2 of 1; names and revisions of weights are not counted.
    assert len(found.values) == 12 * 7 + 2 * 2 + 2
    assert found.summary() == "90 identical, 0 within tolerance, 0 different"
    assert found.largest(10).empty


def test_order_weights_and_rounding_say_nothing() -> None:
    tables = {name: t.iloc[::-1, ::-1] for name, t in reversed(_tables().items())}
    tables["canaries"]["model_revision"] = "of other weights"
    tables["canaries"]["published_p"] = "0.01400000000000001"
    tables["canaries"]["tokens_scored"] = "37080.0"
    found = _compared(tables)
    assert (found.count(IDENTICAL), len(found.values)) == (90, 90)


@pytest.mark.parametrize("seed", range(2))
def test_moves_below_the_tolerance_are_within_and_above_it_different(seed: int) -> None:
    rng = np.random.default_rng(seed)
    below, above = _compared(_moved(rng, 0.99)), _compared(_moved(rng, 1.01))
    measured = 12 * 3 + 2 * 2
    # Above p = 0.9 all p-values are one.
    assert below.count(WITHIN) == measured
    assert below.values.loc[below.values["outcome"] == WITHIN, "share"].to_numpy() == pytest.approx(
        0.99, abs=1e-6
    )
    assert above.count(DIFFERENT) == measured
    assert below.count(IDENTICAL) == above.count(IDENTICAL) == 90 - measured


# --- faults ---------------------------------------------------------------------------------------

Fault = Callable[[Tables], object]


def _set(table: str, place: int, column: str, text: str) -> Fault:
    return lambda tables: tables[table].__setitem__(
        column, tables[table][column].where(np.arange(len(tables[table])) != place, text)
    )


def _swap_columns(tables: Tables) -> None:
    tables["canaries"] = tables["canaries"].rename(columns={"p": "log10_p", "log10_p": "p"})


def _swap_models(tables: Tables) -> None:
    names = dict(zip(MODELS, reversed(MODELS), strict=True))
    tables["canaries"]["model"] = tables["canaries"]["model"].map(names)


def _turn_the_sign(tables: Tables) -> None:
    tables["canaries"]["statistic"] = [str(-float(v)) for v in tables["canaries"]["statistic"]]


def _other_direction(tables: Tables) -> None:
    tables["canaries"]["p"] = [str(1 - float(v)) for v in tables["canaries"]["p"]]


STRONG = "contaminated, signature-64, successor"
FAULTS: dict[str, tuple[Fault, tuple[str, str, str]]] = {
    "another seed": (
        _set("manifest run", 0, "value", "20240507"),
        ("manifest run", "seed", "value"),
    ),
    "one dup_count": (
        _set("canaries", 5, "dup_count", "63"),
        ("canaries", STRONG, "dup_count"),
    ),
    "a token more": (
        _set("manifest run", 1, "value", "12345678901"),
        ("manifest run", "tokens_scored", "value"),
    ),
    "a number that is gone": (_set("canaries", 5, "p", ""), ("canaries", STRONG, "p")),
    "columns swapped": (_swap_columns, ("canaries", STRONG, "p")),
    "models swapped": (_swap_models, ("canaries", STRONG, "p")),
    "a sign": (_turn_the_sign, ("canaries", STRONG, "statistic")),
    "the other direction": (_other_direction, ("canaries", STRONG, "p")),
    "no row": (
        lambda tables: tables.update(canaries=tables["canaries"].drop(index=5)),
        ("canaries", STRONG, "p"),
    ),
    "a row twice": (
        lambda tables: tables.update(
            canaries=pd.concat([tables["canaries"], tables["canaries"].iloc[[5]]])
        ),
        ("canaries", f"{STRONG} #2", "p"),
    ),
    "no column": (
        lambda tables: tables.update(canaries=tables["canaries"].drop(columns="p")),
        ("canaries", "", "(the columns)"),
    ),
    "a column more": (
        lambda tables: tables["canaries"].insert(0, "seconds", "1"),
        ("canaries", "", "(the columns)"),
    ),
    "no table": (lambda tables: tables.pop("calibration"), ("calibration", "", "(the columns)")),
    "a table more": (
        lambda tables: tables.update(old=pd.DataFrame({"a": ["1"]})),
        ("old", "", "(the columns)"),
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_called_different(fault: str) -> None:
    """In a run that differs from the reference as another machine would, too."""
    inject, place = FAULTS[fault]
    run = _moved(np.random.default_rng(0), 0.5)
    assert _compared(run).count(DIFFERENT) == 0
    inject(run)
    found = _compared(run)
    values = found.values.set_index(["table", "row", "column"])
    assert values.loc[place, "outcome"] == DIFFERENT
    assert place in found.largest(found.count(DIFFERENT)).set_index(values.index.names).index


# --- scales ---------------------------------------------------------------------------------------


def test_p_values_are_compared_as_normal_scores() -> None:
    p = np.array([1e-300, 1e-12, 0.001, 0.04, 0.5, 0.9])
    assert SCALES["p"](p) == pytest.approx(stats.norm.isf(p), abs=1e-9)
    assert SCALES["log10 p"](np.log10(p)) == pytest.approx(stats.norm.isf(p), abs=1e-9)
    # Smaller than any float, and above 0.9, where nothing was found.
    far = float(SCALES["log10 p"](np.array([-2000.0]))[0])
    assert stats.norm.logsf(far) / np.log(10) == pytest.approx(-2000)
    assert len(set(SCALES["p"](np.array([0.9, 0.95, 1.0])))) == 1


# --- directories ----------------------------------------------------------------------------------


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes results with one table and a manifest."""

    def results(name: str, tables: Tables | None = None, **facts: object) -> Path:
        folder = tmp_path / name
        (folder / "tables").mkdir(parents=True)
        table = (tables or _tables())["canaries"]
        table.to_csv(folder / "tables" / "canaries.csv", index=False)
        (folder / "tables" / "canaries.md").write_text("| Set |\n")
        step = {"seconds": 1.5, "tokens": 50}
        package = {"package": "numpy", "version": "2.4.6", "tokens": 9}
        model = {"sha256": "ab", "tokens": 50, "final_loss": 3.1}
        manifest = {
            "profile": "laptop",
            "seed": 5,
            "tokens_scored": 7,
            "commit": "0123456789ab",
            "hardware": "AMD EPYC, 1 threads",
            "machine": {"instructions": "AVX512", "precision": "bfloat16"},
            "packages": {"torch": "2.13.0"},
            "corpus": {"documents": 3, "characters": 4, "tokens": 9, "packages": [package]},
            "canaries": {"signature-64": {"dup_count": 64, "revision": "cd"}},
            "models": {"clean": model},
            "steps": {"train clean": step, "notebook 01": {"seconds": 2}},
        }
        write_json(folder / "manifest.json", manifest | facts)
        return folder

    return results


def test_facts_of_the_manifest_are_compared_and_times_are_not(write) -> None:
    reference = write("reference")
    steps = {"train clean": {"seconds": 99, "tokens": 50}, "notebook 01": {"seconds": 3}}
    models = {"clean": {"sha256": "other", "tokens": 50, "final_loss": 3.1}}
    slow = write("slow", steps=steps, models=models, commit="other", hardware="other")
    rules = read_tolerances(TOLERANCES)
    assert compare(slow, reference, rules).count(IDENTICAL) == 12 * 8 + 14
    other = write("other", seed=6, steps={"train clean": {"seconds": 1.5, "tokens": 51}})
    found = compare(other, reference, rules)
    different = found.values[found.values["outcome"] == DIFFERENT]
    assert set(different["table"]) == {"manifest run", "manifest steps"}


def test_a_printed_table_that_is_missing_is_a_difference(write) -> None:
    reference, run = write("reference"), write("run")
    (run / "tables" / "canaries.md").rename(run / "tables" / "canary.md")
    found = compare(run, reference, read_tolerances(TOLERANCES))
    assert sorted(found.largest(9)["row"]) == ["canaries.md", "canary.md"]


def test_the_stage_says_what_is_different(write, capsys, monkeypatch) -> None:
    reference, same, run = write("reference"), write("same"), write("run", _faulty())
    monkeypatch.setattr(stage, "REFERENCE", reference)
    monkeypatch.setattr(stage, "TOLERANCES", TOLERANCES)
    stage.compare(results=same)
    assert "110 identical, 0 within tolerance, 0 different" in capsys.readouterr().out
    with pytest.raises(typer.Exit) as caught:
        stage.compare(results=run)
    assert caught.value.exit_code == 1
    out = capsys.readouterr().out
    assert "AMD EPYC, 1 threads, AVX512, bfloat16, torch 2.13.0\n" in out
    assert "109 identical, 0 within tolerance, 1 different" in out
    assert "not allowed" in out and "64" in out and "63" in out
    values = pd.read_csv(run / "comparison.csv")
    assert list(values.loc[values["outcome"] == DIFFERENT, "column"]) == ["dup_count"]


def _faulty() -> Tables:
    tables = _tables()
    FAULTS["one dup_count"][0](tables)
    return tables


def test_what_cannot_be_compared_is_reported(write, tmp_path: Path) -> None:
    run, rules = write("run"), read_tolerances(TOLERANCES)
    for other, message in (
        (write("quick", profile="quick"), "is of quick, and this run is of laptop"),
        (tmp_path / "none", r"none/manifest\.json: cannot be read"),
    ):
        with pytest.raises(InputError, match=message):
            compare(run, other, rules)
    (run / "tables" / "canaries.csv").unlink()
    with pytest.raises(InputError, match="tables: no tables; run `make reproduce` first"):
        compare(run, run, rules)
    wrong = tmp_path / "wrong.csv"
    for text, message in (
        (None, "is missing: restore it from git"),
        ("canaries,p,auto,1\n", "canaries, p: unknown scale 'auto'; choose one of name, exact"),
    ):
        if text:
            wrong.write_text(f"table,column,scale,tolerance\n{text}")
        with pytest.raises(InputError, match=message):
            read_tolerances(wrong)


# --- what git holds -------------------------------------------------------------------------------

RULES_OF_GIT = read_tolerances(TOLERANCES)


def test_every_column_has_a_rule_and_every_measured_one_a_tolerance() -> None:
    rules = RULES_OF_GIT
    assert not rules.duplicated(["table", "column"]).any()
    measured = rules["scale"].isin(list(SCALES))
    assert (rules.loc[measured, "tolerance"] > 0).all()
    assert rules.loc[~measured, "tolerance"].isna().all()
    listed = set(rules[["table", "column"]].itertuples(index=False, name=None))
    found = {(name, column) for name, t in read_tables(REFERENCE).items() for column in t}
    assert found <= listed


def test_the_reference_agrees_with_itself_and_names_its_machine() -> None:
    found = compare(REFERENCE, REFERENCE, RULES_OF_GIT)
    assert found.count(IDENTICAL) == len(found.values) > 1000
    manifest = read_json(REFERENCE / "manifest.json")
    assert manifest["profile"] == "laptop"
    facts = {"processor", "cores", "threads", "instructions", "precision"}
    assert facts <= set(manifest["machine"])
    text = (REFERENCE / "manifest.json").read_text(encoding="utf-8")
    assert platform.node() not in text and str(ROOT) not in text


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
    """Whatever was measured last: evidence must not come and go."""
    row = {"model": "contaminated", "dataset": "signature-64", "test": "successor"}
    one, other = ({"canaries": pd.DataFrame([row | {column: text}])} for text in (run, reference))
    assert compare_tables(one, other, RULES_OF_GIT).count(DIFFERENT) == 1
