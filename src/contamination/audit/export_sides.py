"""The comparison of two sides in the formats of others, from `Comparison.as_dict`.

`comparison-1.schema.json` beside this module describes version 1; `export` says what
may change in it. Each text carries the word of the verdict, the assumption, and how the
draw of the sides was declared.
"""

import json
from collections.abc import Callable
from typing import Any

from contamination.audit.export import (
    Result,
    code_span,
    conda_entry,
    description_of_sides,
    eee_metric,
    eee_record,
    eee_source,
    others_in_code,
    plain_json,
    sentence_of,
    uncorrected,
)

# What a model card must not say of a verdict; "" is for all other verdicts.
NOT_SAID = {
    "proven": (
        "“It has memorised the answers”, “it has read every record”, how often it has read "
        "them, or by how much its score is too high: the test measures none of this."
    ),
    "evidence": (
        "“Proven”, “it has memorised the answers”, “it has read every record”, how often it "
        "has read them, or by how much its score is too high."
    ),
    "no evidence": (
        "“The model was not trained on these records”: read once, or reworded, they could "
        "look the same."
    ),
    "": "“Contaminated”, or “clean”: the p-value is evidence of neither.",
}


def every_eval_ever(result: Result) -> str:
    """Return a record of Every Eval Ever (schema 0.3.0) with one evaluation."""
    return eee_record(result, [_evaluation(result)])


def _evaluation(result: Result) -> dict[str, Any]:
    """Return the comparison as an evaluation of Every Eval Ever."""
    verdict = result["verdict"]
    source = eee_source(
        result["suspect"],
        revision=result["suspect_revision"],
        records=str(result["published"]),
        template=result["template"],
        held_out=result["held_out"],
        held_out_revision=result["held_out_revision"],
        held_out_records=str(result["held_out_records"]),
    )
    details = {
        "log10_p": str(result["log10_p"]),
        "conclusion": verdict["conclusion"],
        "reason": verdict["reason"],
        "assumption": result["assumption"],
        "draw": result["draw"],
    }
    others = result["other_tests"]
    if others:
        details["other_tests"] = "; ".join(other["what"] for other in others)
    description = description_of_sides(result["assumption"])
    parameters = {
        "scores": ", ".join(row["score"] for row in result["scores"]),
        "resamples": result["resamples"],
        "seed": result["seed"],
    }
    return {
        "evaluation_name": "contamination/held_out",
        "source_data": source,
        "metric_config": eee_metric(description, parameters),
        "score_details": {"score": result["p"], "details": details},
    }


def conda(result: Result) -> str:
    """Return an entry for the CONDA database; see `export.conda`."""
    return conda_entry(result, dataset=result["suspect"])


def model_card(result: Result) -> str:
    """Return Markdown for a model card: a sentence to quote, its details, its limits."""
    conclusion = result["verdict"]["conclusion"]
    not_said = NOT_SAID.get(conclusion, NOT_SAID[""])
    return f"{_sentence(result)}\n\n{_details(result)}\n\nMay not be said: {not_said}\n"


def _sentence(result: Result) -> str:
    """Return the verdict as one sentence that may be quoted, with names as code."""
    verdict = result["verdict"]
    return sentence_of(
        verdict["conclusion"],
        model=code_span(result["model"]),
        read=f"published records of {code_span(result['suspect'])}",
        measured=(
            f"p = {verdict['p']:.3g} in the comparison with records that were held back"
            f"{uncorrected(result)}"
        ),
    )


def _details(result: Result) -> str:
    """Return the details of the sentence: sides, scores, assumption, controls, reason."""
    scores = []
    for row in result["scores"]:
        scores.append(f"{row['score']}: AUC {row['auc']:.3f}, p = {row['p']:.3g}")
    controls = []
    blind = result["blind"]
    if blind is not None:
        controls.append(f"the sides without a model: p = {blind['p']:.3g}")
    control = result.get("control_model")
    if control:
        controls.append(f"the control {code_span(control['model'])}: p = {control['p']:.3g}")
    verdict = result["verdict"]
    concluded = code_span(f"{verdict['conclusion']}: {verdict['reason']}")
    parts = [
        f"assumption: {result['assumption']}; {result['draw']}",
        f"model revision {code_span(result['model_revision'])}, {result['precision']}",
        f"{result['published']:,} published records, "
        f"set revision {code_span(result['suspect_revision'])}",
        f"{result['held_out_records']:,} records of {code_span(result['held_out'])} held "
        f"out, set revision {code_span(result['held_out_revision'])}",
        f"template {code_span(json.dumps(result['template']))}",
        f"contamination {result['version']}",
        f"{result['resamples']:,} draws, seed {result['seed']}",
        *scores,
        *controls,
        f"verdict at {verdict['alpha']:g}: {concluded}",
    ]
    return f"Details: {'; '.join(parts + others_in_code(result))}."


# By the end of a file's name, as `export.FORMATS`.
FORMATS: dict[str, Callable[[Result], str]] = {
    ".eee.json": every_eval_ever,
    ".json": plain_json,
    ".conda.csv": conda,
    ".md": model_card,
}
