"""A result as others read it: files made from `Audit.as_dict`, which has a versioned schema.

`result-1.schema.json` beside this module describes version 1. Names may be added to it, and readers
leave out what they do not know; none is renamed, removed or given another meaning or unit without a
version 2. All other formats are made from such a dictionary, so a stored one will do.
"""

import csv
import io
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from contamination.audit.other_tests import OtherTest, told
from contamination.errors import InputError, csv_text, markdown_text, printable

Result = Mapping[str, Any]
# The columns of contamination_report.csv, the database of the CONDA shared task.
CONDA = (
    *("Evaluation Dataset", "Subset", "Contaminated Source", "Version", "Model or corpus"),
    *("Train Split", "Development Split", "Test Split", "Approach", "Reference", "PR"),
)
# What a model card may say of a verdict, and what it may not; "" is for all other verdicts.
SENTENCES = {
    "proven": (
        "The model prefers the published order of this set, and no control objects: it has read "
        "the set in that order, or chance has struck, as rarely as p says.",
        "“It has memorised the answers”, how often it has read the set, or by how much its score "
        "is too high: the test measures none of this.",
    ),
    "no evidence": (
        "This test found no evidence that the model has read the set in its published order.",
        "“The model was not trained on this set”: read a few times, shuffled, reworded or record "
        "by record, it could look the same.",
    ),
    "": (
        "Nothing can be concluded from this test of this model on this set.",
        "“Contaminated”, or “clean”: the p-value is evidence of neither.",
    ),
}


def every_eval_ever(result: Result) -> str:
    """Return a record of Every Eval Ever (its schema 0.3.0): each test is an evaluation.

    Who evaluated, and how related to the model, is not known here: `source_metadata` is to be
    changed before the record is sent. Added details are text, as the schema asks.
    """
    now, judged = f"{time.time():.0f}", result["verdict"]
    records, template = str(result["plan"]["examples"]), result["template"]
    data = {"revision": result["dataset_revision"], "records": records, "template": template}
    source = {"dataset_name": result["dataset"], "source_type": "other", "additional_details": data}
    metric = {
        "metric_id": "contamination.p_value",
        "metric_name": "p-value",
        "evaluation_description": "Probability of a preference for the published order at least as "
        "strong, had that order been drawn at random, without regard to the model; uncorrected.",
        "lower_is_better": False,
        "score_type": "continuous",
        "min_score": 0,
        "max_score": 1,
    }
    evaluations = []
    for test in result["results"]:
        asked = {name: test[name] for name in ("shards", "permutations")} | {"seed": result["seed"]}
        found = {name: str(test[name]) for name in ("log10_p", "holm_p")}
        found |= {name: judged[name] for name in ("conclusion", "reason")}
        if others := result.get("other_tests"):
            found["other_tests"] = "; ".join(other["what"] for other in others)
        each = {"evaluation_name": f"contamination/{test['test']}", "source_data": source}
        each |= {"metric_config": metric | {"metric_parameters": asked}}
        each |= {"score_details": {"score": test["p"], "details": found}}
        evaluations.append(each)
    about = {
        "deployment_type": "unknown" if result["precision"] == "unknown" else "self_deployed",
        "model_availability": "unknown",
        "revision": result["model_revision"],
        "precision": result["precision"],
    }
    record = {
        "schema_version": "0.3.0",
        "evaluation_id": f"contamination/{result['model']}/{now}",
        "retrieved_timestamp": now,
        "source_metadata": {
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
        },
        "eval_library": {"name": "contamination", "version": result["version"]},
        "model_info": dict.fromkeys(("name", "id"), result["model"])
        | {"additional_details": about},
        "evaluation_results": evaluations,
    }
    return json.dumps(record, indent=2) + "\n"


def conda(result: Result) -> str:
    """Return an entry for the CONDA database of contamination; without a proof its header alone.

    The share of each split is not measured and left empty, as the database has it where it is not
    known; so are the reference and the pull request, which are the reporter's.
    """
    text = io.StringIO()
    table = csv.writer(text, delimiter=";", lineterminator="\n")
    table.writerow(CONDA)
    if result["verdict"]["conclusion"] == "proven":
        dataset, _, subset = result["dataset"].partition(":")
        names = (dataset, subset, result["model"], result["model_revision"])
        table.writerow(
            [
                *(csv_text(printable(name)) for name in names),
                "model",
                "",
                "",
                "",
                "model-based",
                "",
                "",
            ]
        )
    return text.getvalue()


def model_card(result: Result) -> str:
    """Return Markdown for a model card: what was found, what may be said and what may not."""
    judged = result["verdict"]
    tests = [
        f"{test['test']} ({test['shards']:,} shards or items, {test['permutations']:,} orderings "
        f"each), p = {test['p']:.3g}, {test['holm_p']:.3g} after Holm's correction"
        for test in result["results"]
    ]
    beside = [f"order without a model: {each['verdict']}" for each in result["diagnosis"]]
    beside += [f"a compressor: p = {each['p']:.3g}" for each in result["control"]]
    if control := result.get("control_model"):
        p = ", ".join(f"{test['p']:.3g}" for test in control["results"])
        beside.append(f"the control {control['model']}: p = {p}")
    revision, template = result["dataset_revision"], json.dumps(result["template"])
    text = (
        f"{result['model']} (revision {result['model_revision']}, "
        f"{result['precision']}) on {result['dataset']} (revision {revision}, "
        f"{result['plan']['examples']:,} records, template {template}), contamination "
        f"{result['version']}, seed {result['seed']}: {'; '.join([*tests, *dict.fromkeys(beside)])}"
        f". Verdict at {result['alpha']:g}: {judged['conclusion']}: {judged['reason']}."
    )
    if others := result.get("other_tests"):
        text += f" {told([OtherTest(**other) for other in others])}."
    said, unsaid = SENTENCES.get(judged["conclusion"], SENTENCES[""])
    found = f"**Test-set contamination.** {markdown_text(text)}"
    return f"{found}\n\nMay be said: {said}\n\nMay not be said: {unsaid}\n"


# By the end of a file's name; the first that fits.
FORMATS: dict[str, Callable[[Result], str]] = {
    ".eee.json": every_eval_ever,
    ".json": lambda result: json.dumps(result, indent=2) + "\n",
    ".conda.csv": conda,
    ".md": model_card,
}


def format_of(path: Path) -> Callable[[Result], str]:
    """Return what makes the text of such a file; InputError if no format has such a name."""
    for end, made in FORMATS.items():
        if path.name.endswith(end):
            return made
    raise InputError(f"--output {path}: give a name that ends in one of {', '.join(FORMATS)}")
