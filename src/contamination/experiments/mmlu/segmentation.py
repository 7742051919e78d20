"""The same records read by physical line, as a script that takes every line for an example does.

Oren (section 4.3) exclude the subsets of MMLU whose order is preferred by a model that cannot know
them. Their public script takes a JSON list of examples, or else the lines of a file; a CSV record
whose question holds line breaks then falls apart, and shuffled lines make less sense than the text
that they come from. Here both readings of a subset are put beside each other: what the order of the
examples gives away without a model, and what a model says that has not seen them.
"""

import csv
import io
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from contamination.audit.battery import TESTS
from contamination.audit.compressor import compressor_log_probs
from contamination.audit.diagnostics import diagnose
from contamination.audit.record_features import Record
from contamination.files import sha256_of
from contamination.results.published import CONTROLS
from contamination.results.tables import format_p
from contamination.scoring.plan import plan_store
from contamination.statistics import sharded_exact_test
from contamination.testsets.example_set import ExampleSet

READINGS = ("record", "line")
TEMPLATE = "csv-line/1"
COMPRESSOR = "compressor"
DIAGNOSTICS = "diagnostics"
COMPRESSOR_PERMUTATIONS = 25
MODEL_FREE = (
    *("subset", "reading", "examples", "lines_per_record", "spanning", "shared_passages"),
    *("verdict", "compressor_log10_p"),
)
OF_MODEL = ("model", "test", "shards", "permutations", "statistic", "p", "log10_p", "tokens_scored")
PUBLISHED = {f"published_{column}": column for column in CONTROLS}
OUTCOMES = {
    (False, True): "by line only",
    (True, False): "by record only",
    (True, True): "by both",
    (False, False): "by neither",
}

Readings = Mapping[str, Mapping[str, ExampleSet]]  # reading -> subset -> its examples


def physical_lines(record: Record) -> list[str]:
    """Lines that a record takes in a CSV file, without blank ones and without their ends.

    Fields are quoted where they must be, as in the files in which MMLU is published.
    """
    row = io.StringIO()
    csv.writer(row, lineterminator="\n").writerow(_leaves(record))
    return [line for line in row.getvalue().split("\n") if line.strip()]


def _leaves(value: object) -> Iterator[object]:
    """Fields of a record in order; the choices may be four fields or a list."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for inner in value:
            yield from _leaves(inner)
    else:
        yield value


def by_line(test_set: ExampleSet) -> ExampleSet:
    """Return the test set whose examples are the physical lines of the records, header left out.

    It has a name and a revision of its own, and with them its own stores and orderings.
    """
    lines = (line for record in test_set.records for line in physical_lines(record))
    return replace(
        test_set,
        name=f"{test_set.name}-by-line",
        examples=tuple(f"{line}\n" for line in lines),
        template=TEMPLATE,
        revision=sha256_of(test_set.revision, TEMPLATE),
        records=(),
    )


def both_readings(sets: Mapping[str, ExampleSet]) -> dict[str, dict[str, ExampleSet]]:
    """Return the subsets by record, as they are, and by line."""
    return {
        "record": dict(sets),
        "line": {subset: by_line(test_set) for subset, test_set in sets.items()},
    }


def model_free(readings: Readings, *, seed: int) -> pd.DataFrame:
    """What the order of the examples gives away without a model, in both readings.

    Returns
    -------
    DataFrame
        subset, reading, examples; of the records lines_per_record (mean), spanning (share on more
        than one line) and shared_passages (share whose longest line stands in another record, too);
        verdict of `contamination.audit.diagnostics.diagnose` within the shards of the sharded
        t-test; and compressor_log10_p, of the exact test on a compressor's scores in the same
        shards.
    """
    rows = []
    for subset, records in readings.get("record", {}).items():
        facts = _line_facts(records)
        for reading in READINGS:
            examples = readings[reading][subset]
            shards = plan_store(TESTS["sharded_t"], len(examples.examples), None).shards
            diagnosis = diagnose(
                examples.examples,
                examples.records or None,
                shards=shards,
                rng=np.random.default_rng(seed),
            )
            scores = compressor_log_probs(
                examples, shards=shards, permutations=COMPRESSOR_PERMUTATIONS, seed=seed
            )
            rows.append(
                {
                    "subset": subset,
                    "reading": reading,
                    "examples": len(examples.examples),
                    **facts,
                    "verdict": diagnosis.verdict,
                    "compressor_log10_p": sharded_exact_test(scores).log10_p,
                }
            )
    return pd.DataFrame(rows, columns=list(MODEL_FREE))


def _line_facts(records: ExampleSet) -> dict[str, float]:
    lines = [physical_lines(record) for record in records.records]
    holders = Counter(line for single in lines for line in set(single))
    longest = [max(single, key=len) for single in lines]
    return {
        "lines_per_record": float(np.mean([len(single) for single in lines])),
        "spanning": float(np.mean([len(single) > 1 for single in lines])),
        "shared_passages": float(np.mean([holders[line] > 1 for line in longest])),
    }


def line_table(
    free: pd.DataFrame, measured: pd.DataFrame, table4: pd.DataFrame, exclude_below: float
) -> pd.DataFrame:
    """Put beside each other the readings, what models say of them, and what the paper excluded.

    Parameters
    ----------
    free : from `model_free`.
    measured : rows of `contamination.experiments.mmlu.audit.MmluAudit.rows` in both readings.
    table4 : the paper's table, as `contamination.results.published.load_published` reads it.
    exclude_below : p-value of a negative control below which the paper excludes a subset.

    Returns
    -------
    DataFrame
        A row for each subset, reading, model and test: the columns of `free`; model, test, shards,
        permutations, statistic, p, log10_p and tokens_scored; published_gpt2_xl and
        published_biomedlm; excluded_in_paper. What Table 4 does not list is empty there.
    """
    controls = table4.set_index("subset")[list(CONTROLS)]
    excluded = (controls < exclude_below).any(axis=1).astype("boolean")
    controls = controls.set_axis(list(PUBLISHED), axis=1).assign(excluded_in_paper=excluded)
    of_model = measured[["subset", "reading", *OF_MODEL]]
    table = free.merge(of_model, on=["subset", "reading"], how="left")
    return table.merge(controls, on="subset", how="left")


def outcomes(lines: pd.DataFrame, exclude_below: float) -> pd.DataFrame:
    """Which reading each piece of evidence rejects, subset by subset.

    Parameters
    ----------
    lines : from `line_table`.
    exclude_below : p-value of a model or of the compressor below which it rejects. The diagnostics
        reject where their verdict is that the order carries information.

    Returns
    -------
    DataFrame
        subset, excluded_in_paper, evidence ("diagnostics", "compressor", or model and test),
        record and line (whether it rejects that reading), and outcome in words.
    """
    level = math.log10(exclude_below)
    whose = ["subset", "excluded_in_paper", "reading"]
    free = lines.drop_duplicates(["subset", "reading"])
    pieces = [
        free[whose].assign(
            evidence=DIAGNOSTICS, rejects=free["verdict"] == "order carries information"
        ),
        free[whose].assign(evidence=COMPRESSOR, rejects=free["compressor_log10_p"] < level),
    ]
    told = lines[lines["log10_p"].notna()]
    pieces.append(
        told[whose].assign(
            evidence=told["model"] + ", " + told["test"], rejects=told["log10_p"] < level
        )
    )
    rejects = pd.concat(pieces).set_index(["subset", "evidence", "reading"])["rejects"]
    wide = rejects.unstack().reindex(columns=list(READINGS)).astype(bool).reset_index()
    outcome = [OUTCOMES[pair] for pair in zip(wide["record"], wide["line"], strict=True)]
    excluded = free.drop_duplicates("subset")[["subset", "excluded_in_paper"]]
    found = excluded.merge(wide.assign(outcome=outcome), on="subset")
    return found[["subset", "excluded_in_paper", "evidence", *READINGS, "outcome"]]


def exclusions_layout(lines: pd.DataFrame, found: pd.DataFrame) -> pd.DataFrame:
    """Lay out the subsets that the paper excludes: what its controls say, and each evidence here.

    Parameters
    ----------
    lines, found : of `line_table` and `outcomes`.

    Returns
    -------
    DataFrame
        Text: Subset, Lines per record, p under BioMedLM and GPT-2 XL as published, and for each
        evidence which reading it rejects, bold where that is the lines only.
    """
    excluded = found[found["excluded_in_paper"].fillna(False).astype(bool)]
    wide = excluded.pivot(index="subset", columns="evidence", values="outcome")
    told = lines[lines["reading"] == "record"].drop_duplicates("subset").set_index("subset")
    told = told.loc[wide.index]
    columns = {
        "Subset": [name.replace("_", " ") for name in wide.index],
        "Lines per record": told["lines_per_record"].map("{:.1f}".format).to_numpy(),
        "BioMedLM": [format_p(p) for p in told["published_biomedlm"]],
        "GPT-2 XL": [format_p(p) for p in told["published_gpt2_xl"]],
    }
    for evidence in wide:
        shown = wide[evidence].str.removeprefix("by ")
        columns[evidence.replace("_", " ").capitalize()] = [
            f"**{outcome}**" if outcome == "line only" else outcome for outcome in shown
        ]
    return pd.DataFrame(columns)
