"""Results for others: its schema, which old files keep, and the other formats."""

import copy
import csv
import io
import json
import os
import zipfile
from pathlib import Path

import pytest
from jsonschema import Draft7Validator

from contamination.audit.export import CONDA, NOT_SAID, format_of
from contamination.audit.wordings import WORDINGS_TEST
from contamination.errors import InputError
from fakes.results import SCHEMA, VALIDATOR, errors_of

HERE = Path(__file__).parent
OLD = json.loads((HERE / "result-1.json").read_text(encoding="utf-8"))  # never changed
ADDED = {
    "guarantee",
    "held_out",
    "nats_per_character",
    "not_claimed",
    "order_drawn",
    "other_tests",
    "seal",
}  # to version 1, since that file was written
CONCLUSIONS = SCHEMA["properties"]["verdict"]["properties"]["conclusion"]["enum"]


def concluded(conclusion, **changed):
    return OLD | changed | {"verdict": OLD["verdict"] | {"conclusion": conclusion}}


def required(schema, value, path=()):
    """Paths of what the schema requires of a value, wherever it stands."""
    while "$ref" in schema:
        target = SCHEMA
        for name in schema["$ref"].split("/")[1:]:
            target = target[name]
        schema = target
    for part in schema.get("allOf", ()):
        yield from required(part, value, path)
    for name in schema.get("required", ()):
        yield (*path, name)
    for name, inner in schema.get("properties", {}).items():
        if name in value:
            yield from required(inner, value[name], (*path, name))
    if "items" in schema:
        yield from required(schema["items"], value[0], (*path, 0))


def test_a_file_of_version_1_fits_and_misses_nothing_that_the_schema_names():
    assert errors_of(OLD) == []
    assert set(SCHEMA["properties"]) - ADDED == set(OLD)
    assert set(SCHEMA["$defs"]["tested"]["properties"]) <= set().union(*OLD["results"])


def test_a_field_that_is_renamed_or_of_another_type_does_not_fit():
    paths = list(required(SCHEMA, OLD))
    assert len(paths) > 60
    for *above, name in paths:
        for change in (dict.pop, lambda where, name: where.update({name: {"another": "type"}})):
            broken = copy.deepcopy(OLD)
            where = broken
            for step in above:
                where = where[step]
            change(where, name)
            free = change is not dict.pop and name == "work"  # an object, of counts
            assert VALIDATOR.is_valid(broken) == free, (*above, name)


@pytest.fixture(scope="module")
def record_schema():
    """The schema of the package itself, which `scripts/harnesses.sh` fetches."""
    if "HARNESSES" not in os.environ:
        pytest.skip("scripts/harnesses.sh fetches the package that holds the schema")
    (wheel,) = Path(os.environ["HARNESSES"]).glob("every_eval_ever-*.whl")
    with zipfile.ZipFile(wheel) as files:
        return json.loads(files.read("every_eval_ever/schemas/eval.schema.json"))


@pytest.mark.parametrize("conclusion", CONCLUSIONS)
def test_records_of_every_eval_ever_fit_its_schema(conclusion, record_schema):
    for precision in ("float32", "unknown"):
        result = concluded(conclusion, precision=precision)
        record = json.loads(format_of(Path("x.eee.json"))(result))
        Draft7Validator(record_schema).validate(record)
        scores = [each["score_details"]["score"] for each in record["evaluation_results"]]
        assert scores == [each["p"] for each in OLD["results"]]
        details = record["evaluation_results"][0]["score_details"]["details"]
        assert details["conclusion"] == conclusion
        assert float(details["holm_p"]) == OLD["results"][0]["holm_p"]


@pytest.mark.parametrize("conclusion", CONCLUSIONS)
def test_the_database_gets_what_is_proven_and_no_share_of_a_split(conclusion):
    result = concluded(conclusion, dataset="org/name:config;\n=1", model="=org/model")
    text = format_of(Path("x.conda.csv"))(result)
    rows = list(csv.DictReader(io.StringIO(text), delimiter=";"))
    assert text.splitlines()[0].split(";") == list(CONDA)
    assert len(rows) == (conclusion == "proven")
    for row in rows:
        assert row["Evaluation Dataset"] == "org/name"
        assert row["Subset"] == "config;\\n=1"
        assert row["Contaminated Source"] == "'=org/model"
        assert row["Model or corpus"] == "model"
        assert row["Approach"] == "model-based"
        assert not any(row[name] for name in CONDA if "Split" in name)


@pytest.mark.parametrize("conclusion", CONCLUSIONS)
def test_a_model_card_has_a_sentence_to_quote_and_its_details(conclusion):
    text = format_of(Path("card.md"))(concluded(conclusion, template="{a}\n\n# Proven\x1b[1m"))
    quoted, details, not_said = text.split("\n\n")
    assert OLD["model"] in quoted and OLD["dataset"] in quoted
    assert not_said.strip().endswith(NOT_SAID.get(conclusion, NOT_SAID[""]))
    assert "\x1b" not in text and "\n" not in details
    for name in ("model_revision", "dataset_revision"):
        assert OLD[name] in details and OLD[name] not in quoted
    for result in OLD["results"]:
        assert f"{result['p']:.3g}" in details and f"{result['holm_p']:.3g}" in details


@pytest.mark.parametrize(("others", "told"), [(0, ""), (1, "1 other test "), (4, "4 other tests ")])
def test_a_sentence_says_which_tests_its_p_has_not_paid_for(others, told):
    other_tests = [
        {"store": f"s-{seed}", "what": f"successor (seed {seed})"} for seed in range(others)
    ]
    quoted, _ = format_of(Path("card.md"))(concluded("evidence", other_tests=other_tests)).split(
        "\n\n", 1
    )
    assert told in quoted
    assert ("not corrected" in quoted) == (others > 0)


SEALED = {
    "seal": {"commitment": "c0ffee"},
    "guarantee": "one key",
    "not_claimed": ["a date", "all else"],
    "held_out": {"assumption": "a coin fell"},
}


def result_of_tests(*names: str, **more):
    """Return a result of these tests."""
    results = [OLD["results"][0] | {"test": name} for name in names]
    return concluded("proven", results=results, **more)


@pytest.mark.parametrize(
    ("result", "read"),
    [
        (result_of_tests("successor"), "the test set `quiz` in its published order"),
        (result_of_tests("successor", "options"), "with its records or options in their published"),
        (result_of_tests("options"), "with its options in their published order"),
        (
            result_of_tests("successor", "held_out", **SEALED),
            "`model0` has read the sealed test set `quiz` (",
        ),
    ],
)
def test_a_model_card_says_no_more_than_its_tests_show(result, read):
    card = format_of(Path("card.md"))(result)
    assert read in card
    for of_seal in ("one key; ", "commitment `c0ffee`; not claimed: a date; all else"):
        assert (of_seal in card) == ("seal" in result)


def test_each_evaluation_says_what_its_p_is_the_probability_of():
    names = ("successor", "options", "arrangement_quiz", WORDINGS_TEST, "held_out")
    result = result_of_tests(*names, **SEALED)
    record = json.loads(format_of(Path("x.eee.json"))(result))
    described = [
        each["metric_config"]["evaluation_description"] for each in record["evaluation_results"]
    ]
    parts = ("records", "the options", "the options", "wordings", "given that a coin fell")
    assert all(part in text for part, text in zip(parts, described, strict=True))
    assert "order" not in described[3] + described[4]
    details = record["evaluation_results"][0]["score_details"]["details"]
    assert (details["guarantee"], details["not_claimed"]) == ("one key", "a date; all else")


def test_names_are_no_markup_in_a_model_card():
    audit = concluded(
        "proven",
        model="<script>`a`",
        dataset="[click](http://x)",
        dataset_revision="=1",
    )
    card = format_of(Path("card.md"))(audit)
    assert "`` <script>`a` ``" in card and "`[click](http://x)`" in card


@pytest.mark.parametrize("name", ["=1+1", "+1+A1", "-A1", "@SUM(A1)"])
def test_names_are_no_formulas_in_a_database(name):
    text = format_of(Path("x.conda.csv"))(concluded("proven", model=name))
    (row,) = csv.DictReader(io.StringIO(text), delimiter=";")
    assert row["Contaminated Source"] == f"'{name}"


@pytest.mark.parametrize("name", ["x", "x.csv", "x.jsonl", "json"])
def test_other_names_are_refused(name):
    with pytest.raises(InputError, match=r"\.eee\.json, \.json, \.conda\.csv, \.md"):
        format_of(Path(name))
