"""A comparison of two sides in the formats of others: the word, the assumption, the draw."""

import copy
import csv
import io
import json
from pathlib import Path

import pytest

from contamination.audit.comparison import ASSUMPTION, STATED
from contamination.audit.export import format_of
from contamination.audit.export_sides import FORMATS, NOT_SAID
from fakes.results import COMPARISONS, comparison_of

RESULT = {
    "schema": "contamination-comparison/1",
    "version": "1",
    "model": "=org/model",
    "model_revision": "weights",
    "precision": "float32",
    "suspect": "org/name:config",
    "suspect_revision": "records",
    "held_out": "<b>kept</b>",
    "held_out_revision": "others",
    "template": "{a}\n\n# Proven",
    "assumption": ASSUMPTION,
    "draw": STATED,
    "p": 0.0004,
    "log10_p": -3.4,
    "statistic": 3.3,
    "best": "loss",
    "published": 40,
    "held_out_records": 30,
    "strata": 1,
    "within": "",
    "paired": False,
    "summed_by": "rank",
    "resamples": 9_999,
    "seed": 0,
    "scores": [{"score": "loss", "auc": 0.8, "p": 0.0004}],
    "left_out": ["ppl_200"],
    "read_at_least": 3,
    "read_records": [1, 2],
    "blind": {"p": 0.4, "length": 0.4},
    "store": "stores",
    "other_tests": [{"store": "stores/b", "what": "held_out (seed 1)"}],
    "verdict": {
        "alpha": 0.05,
        "conclusion": "proven",
        "reason": "p = 0.0004 (held_out)",
        "p": 0.0004,
        "status": 1,
        "objections": [],
    },
}
CONCLUSIONS = COMPARISONS.schema["properties"]["verdict"]["properties"]["conclusion"]["enum"]


def exported(conclusion: str, end: str) -> str:
    """Return a file of the comparison with that verdict."""
    result = copy.deepcopy(RESULT)
    result["verdict"]["conclusion"] = conclusion
    comparison_of(json.dumps(result))
    return format_of(Path(f"x{end}"), FORMATS)(result)


@pytest.mark.parametrize("conclusion", CONCLUSIONS)
def test_the_database_gets_what_is_proven(conclusion):
    rows = list(csv.DictReader(io.StringIO(exported(conclusion, ".conda.csv")), delimiter=";"))
    assert len(rows) == (conclusion == "proven")
    for row in rows:
        assert row["Evaluation Dataset"] == "org/name"
        assert row["Subset"] == "config"
        assert row["Contaminated Source"] == "'=org/model"


@pytest.mark.parametrize("conclusion", CONCLUSIONS)
def test_a_model_card_says_what_the_verdict_rests_on(conclusion):
    quoted, details, not_said = exported(conclusion, ".md").split("\n\n")
    assert "`=org/model`" in quoted
    assert "`org/name:config`" in quoted
    assert f"`{conclusion}: p = 0.0004 (held_out)`" in details
    assert ASSUMPTION in details
    assert STATED in details
    assert "held_out (seed 1)" in details
    assert "`<b>kept</b>`" in details
    assert "\n" not in details
    assert not_said.strip().endswith(NOT_SAID.get(conclusion, NOT_SAID[""]))


@pytest.mark.parametrize("conclusion", CONCLUSIONS)
def test_a_record_of_every_eval_ever_says_what_the_verdict_rests_on(conclusion):
    record = json.loads(exported(conclusion, ".eee.json"))
    (evaluation,) = record["evaluation_results"]
    assert evaluation["score_details"]["score"] == RESULT["p"]
    details = evaluation["score_details"]["details"]
    assert details["conclusion"] == conclusion
    assert details["assumption"] == ASSUMPTION
    assert details["draw"] == STATED
    assert details["other_tests"] == "held_out (seed 1)"
    assert evaluation["source_data"]["additional_details"]["held_out_revision"] == "others"
