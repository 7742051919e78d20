"""A result in the formats of others, from `Audit.as_dict` and its versioned schema.

`result-1.schema.json` beside this module describes version 1. Names may be added to it,
and readers leave out what they do not know; none is renamed, removed or given another
meaning or unit without a version 2. All other formats are made from such a dictionary,
so a stored one will do.
"""

import csv
import io
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from contamination.audit.objections import ZLIB_BASELINE
from contamination.audit.other_tests import OtherTest, other_tests_in_words
from contamination.audit.registry import ITEM_TESTS
from contamination.errors import InputError, csv_text, printable

Result = Mapping[str, Any]
# The columns of contamination_report.csv, the database of the CONDA shared task.
CONDA = (
    "Evaluation Dataset",
    "Subset",
    "Contaminated Source",
    "Version",
    "Model or corpus",
    "Train Split",
    "Development Split",
    "Test Split",
    "Approach",
    "Reference",
    "PR",
)
# What a test finds a preference for, of the tests that are not of the order of records.
PREFERRED = dict.fromkeys(ITEM_TESTS, "order of the options") | {
    "wordings": "choice of wordings",
}
# What a model card must not say of a verdict; "" is for all other verdicts.
NOT_SAID = {
    "proven": (
        "“It has memorised the answers”, “it has read every record”, how often it has read "
        "the set, or by how much its score is too high: the test measures none of this."
    ),
    "evidence": (
        "“Proven”, “it has memorised the answers”, “it has read every record”, how often it "
        "has read the set, or by how much its score is too high."
    ),
    "no evidence": (
        "“The model was not trained on this set”: read a few times, shuffled, reworded "
        "or record by record, it could look the same."
    ),
    "": "“Contaminated”, or “clean”: the p-value is evidence of neither.",
}


def plain_json(result: Result) -> str:
    """Return the result as JSON, as it is."""
    return json.dumps(result, indent=2) + "\n"


def every_eval_ever(result: Result) -> str:
    """Return a record of Every Eval Ever (schema 0.3.0): each test is an evaluation.

    Who evaluated, and how related to the model, is not known here: `source_metadata` is
    to be changed before the record is sent. Added details are text, as the schema asks.
    """
    return eee_record(result, [_evaluation(result, test) for test in result["results"]])


def eee_record(result: Result, evaluations: Sequence[Mapping[str, Any]]) -> str:
    """Return a record of Every Eval Ever with evaluations of the model of a result."""
    now = f"{time.time():.0f}"
    model = result["model"]
    precision = result["precision"]
    deployment = "unknown" if precision == "unknown" else "self_deployed"
    record = {
        "schema_version": "0.3.0",
        "evaluation_id": f"contamination/{model}/{now}",
        "retrieved_timestamp": now,
        "source_metadata": {
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
        },
        "eval_library": {"name": "contamination", "version": result["version"]},
        "model_info": {
            "name": model,
            "id": model,
            "additional_details": {
                "deployment_type": deployment,
                "model_availability": "unknown",
                "revision": result["model_revision"],
                "precision": precision,
            },
        },
        "evaluation_results": list(evaluations),
    }
    return json.dumps(record, indent=2) + "\n"


def _evaluation(result: Result, test: Result) -> dict[str, Any]:
    """Return one test of a result as an evaluation of Every Eval Ever."""
    verdict = result["verdict"]
    details = {
        "log10_p": str(test["log10_p"]),
        "holm_p": str(test["holm_p"]),
        "conclusion": verdict["conclusion"],
        "reason": verdict["reason"],
    }
    others = result.get("other_tests")
    if others:
        details["other_tests"] = "; ".join(other["what"] for other in others)
    source = eee_source(
        result["dataset"],
        revision=result["dataset_revision"],
        records=str(result["plan"]["examples"]),
        template=result["template"],
    )
    if "seal" in result:
        details["guarantee"] = result["guarantee"]
        details["not_claimed"] = "; ".join(result["not_claimed"])
    parameters = {
        "shards": test["shards"],
        "permutations": test["permutations"],
        "seed": result["seed"],
    }
    return {
        "evaluation_name": f"contamination/{test['test']}",
        "source_data": source,
        "metric_config": eee_metric(_described(result, test["test"]), parameters),
        "score_details": {"score": test["p"], "details": details},
    }


def _described(result: Result, test: str) -> str:
    """Return what the p-value of a test is the probability of."""
    if test == "held_out":
        return description_of_sides(result["held_out"]["assumption"])
    preferred = PREFERRED.get(test, "order of the records")
    return (
        f"Probability of a preference for the published {preferred} at least as strong, had it "
        "been drawn at random, without regard to the model; uncorrected."
    )


def description_of_sides(assumption: str) -> str:
    """Return what the p-value of a comparison with held-out records is the probability of."""
    return (
        f"Probability that the published records score at least as high, given that {assumption}."
    )


def eee_source(dataset: str, **details: str) -> dict[str, Any]:
    """Return a test set as Every Eval Ever has it, with details in text."""
    return {
        "dataset_name": dataset,
        "source_type": "other",
        "additional_details": details,
    }


def eee_metric(description: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return a p-value as Every Eval Ever describes a metric."""
    return {
        "metric_id": "contamination.p_value",
        "metric_name": "p-value",
        "evaluation_description": description,
        "lower_is_better": False,
        "score_type": "continuous",
        "min_score": 0,
        "max_score": 1,
        "metric_parameters": dict(parameters),
    }


def conda(result: Result) -> str:
    """Return an entry for the CONDA database of contamination.

    It is the header alone unless the verdict is "proven".

    The share of each split is not measured and left empty, as the database has it where
    it is not known; so are the reference and the pull request, which are the
    reporter's.
    """
    return conda_entry(result, dataset=result["dataset"])


def conda_entry(result: Result, *, dataset: str) -> str:
    """Return the entry of a result about a set; see `conda`."""
    named = []
    if result["verdict"]["conclusion"] == "proven":
        named.append((dataset, result["model"], result["model_revision"]))
    return conda_table(named)


def conda_table(named: Iterable[tuple[str, str, str]]) -> str:
    """Return entries for the CONDA database: set, model and its revision are named."""
    text = io.StringIO()
    table = csv.writer(text, delimiter=";", lineterminator="\n")
    table.writerow(CONDA)
    for name, model, revision in named:
        dataset, _, subset = name.partition(":")
        cells = [csv_text(printable(cell)) for cell in (dataset, subset, model, revision)]
        table.writerow([*cells, "model", "", "", "", "model-based", "", ""])
    return text.getvalue()


def model_card(result: Result) -> str:
    """Return Markdown for a model card: a sentence to quote, its details, its limits."""
    not_said = NOT_SAID.get(result["verdict"]["conclusion"], NOT_SAID[""])
    return f"{_sentence(result)}\n\n{_details(result)}\n\nMay not be said: {not_said}\n"


def _sentence(result: Result) -> str:
    """Return the verdict as one sentence that may be quoted, with names as code."""
    verdict = result["verdict"]
    return sentence_of(
        verdict["conclusion"],
        model=code_span(result["model"]),
        read=_read(result),
        measured=f"p = {verdict['p']:.3g} in the contamination test{uncorrected(result)}",
    )


def _read(result: Result) -> str:
    """Return what the model may have read: of a sealed set, anything that its key has drawn."""
    name = code_span(result["dataset"])
    if "seal" in result:
        return f"the sealed test set {name}"
    of_items = [test["test"] in ITEM_TESTS for test in result["results"]]
    if all(of_items):
        return f"the test set {name} with its options in their published order"
    if any(of_items):
        return f"the test set {name} with its records or options in their published order"
    return f"the test set {name} in its published order"


def uncorrected(result: Result) -> str:
    """Return that other tests were made, which the p-value has not paid for; "" if none."""
    others = len(result.get("other_tests") or ())
    if not others:
        return ""
    tests = "test" if others == 1 else "tests"
    return f", not corrected for {others} other {tests} of this model and set"


def sentence_of(conclusion: str, *, model: str, read: str, measured: str) -> str:
    """Return a verdict as one sentence that may be quoted.

    `read` names the set that the model may have read; `measured` is the p-value, in
    words.
    """
    if conclusion == "proven":
        return f"{model} has read {read} ({measured})."
    if conclusion == "evidence":
        return f"There is evidence that {model} has read {read} ({measured}, no proof)."
    if conclusion == "no evidence":
        return f"We found no evidence that {model} has read {read} ({measured})."
    return f"Nothing can be concluded on whether {model} has read {read} ({measured})."


def _details(result: Result) -> str:
    """Return the details of the sentence: revisions, tests, controls and the reason."""
    tests = []
    for test in result["results"]:
        tests.append(
            f"{test['test']} ({test['shards']:,} shards or items, "
            f"{test['permutations']:,} orderings each), p = {test['p']:.3g}, "
            f"{test['holm_p']:.3g} after Holm's correction"
        )
    controls = []
    for diagnosis in result["diagnosis"]:
        controls.append(f"order without a model: {diagnosis['verdict']}")
    for baseline in result["control"]:
        controls.append(f"{ZLIB_BASELINE}: p = {baseline['p']:.3g}")
    control = result.get("control_model")
    if control:
        p_values = ", ".join(f"{test['p']:.3g}" for test in control["results"])
        controls.append(f"the control {code_span(control['model'])}: p = {p_values}")
    verdict = result["verdict"]
    concluded = code_span(f"{verdict['conclusion']}: {verdict['reason']}")
    parts = [
        f"model revision {code_span(result['model_revision'])}, {result['precision']}",
        f"set revision {code_span(result['dataset_revision'])}",
        f"{result['plan']['examples']:,} records",
        f"template {code_span(json.dumps(result['template']))}",
        f"contamination {result['version']}",
        f"seed {result['seed']}",
        *tests,
        *dict.fromkeys(controls),
        f"verdict at {result['alpha']:g}: {concluded}",
    ]
    if "seal" in result:
        parts.insert(0, result["guarantee"])
        parts.append(f"commitment {code_span(result['seal']['commitment'])}")
        parts.append(f"not claimed: {'; '.join(result['not_claimed'])}")
    return f"Details: {'; '.join(parts + others_in_code(result))}."


def others_in_code(result: Result) -> list[str]:
    """Return a line on other tests of this model and set, as code; none without any."""
    others = [OtherTest(**other) for other in result.get("other_tests") or ()]
    if not others:
        return []
    return [code_span(other_tests_in_words(others))]


def code_span(text: str) -> str:
    """Return text as code in Markdown: names may hold markup or links of others.

    >>> code_span("a `b` c")
    '`` a `b` c ``'
    """
    shown = printable(text)
    fence = "`"
    while fence in shown:
        fence += "`"
    if "`" in shown:
        shown = f" {shown} "
    return f"{fence}{shown}{fence}"


# By the end of a file's name; the first that fits.
FORMATS: dict[str, Callable[[Result], str]] = {
    ".eee.json": every_eval_ever,
    ".json": plain_json,
    ".conda.csv": conda,
    ".md": model_card,
}


def format_of(
    path: Path, formats: Mapping[str, Callable[[Any], str]] = FORMATS
) -> Callable[[Any], str]:
    """Return the function that makes the text of such a file.

    Raises InputError if no format has such a name.

    >>> format_of(Path("result.md")).__name__
    'model_card'
    """
    for end, make_text in formats.items():
        if path.name.endswith(end):
            return make_text
    raise InputError(
        f"output={path}: give a name that ends in one of {', '.join(formats)}",
        parameter="output",
    )
