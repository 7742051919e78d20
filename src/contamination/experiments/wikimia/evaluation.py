"""Membership scores judged on texts before and after a date (Shi et al., Table 1 and Figure 2).

Every model scores every part of a benchmark, and every score is judged by itself. Directions are
fixed: the larger, the more likely a member. A model or a part that cannot be had is told in a row.
"""

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from tqdm import tqdm

from contamination.errors import InputError
from contamination.experiments.wikimia.benchmark import Part
from contamination.membership.api import membership_scores
from contamination.membership.evaluate import evaluate
from contamination.scoring.contract import Scorer
from contamination.scoring.local import TransformersScorer
from contamination.scoring.local import open_scorer as open_model
from contamination.scoring.models import ModelEntry
from contamination.scoring.status import FAILURES, OK, status_of

# The rows of Table 1, in its order: column of `membership_scores` -> what the paper calls it.
SCORES = {
    "neighbour": "Neighbor",
    "loss": "PPL",
    "zlib": "Zlib",
    "lowercase": "Lowercase",
    "reference_difference": "Smaller Ref",
    "min_k_20": "Min-20%",
}
COLUMNS = ("loss", "zlib", "lowercase", "min_k_20")
MEASURES = tuple(
    f"{measure}{end}" for measure in ("auc", "tpr_at_5_fpr") for end in ("", "_low", "_high")
)
FIELDS = (
    *("model", "parameters", "source", "variant", "split", "length", "score"),
    *(*MEASURES, "members", "non_members", "reference", "model_revision", "text_revision"),
    "status",
)
NO_MODEL = "not run here: no model is named"

Row = dict[str, Any]


def wikimia_table(
    models: Sequence[ModelEntry],
    parts: Sequence[Part],
    *,
    rng: np.random.Generator,
    references: Mapping[str, ModelEntry] | None = None,
    neighbours: int = 0,
    resamples: int = 1000,
    seed: int = 0,
    open_scorer: Callable[[ModelEntry], Scorer] = open_model,
) -> pd.DataFrame:
    """Judge the scores of Table 1 on every part, under every model.

    Parameters
    ----------
    models : one after the other is loaded and let go.
    parts : of `contamination.experiments.wikimia.benchmark` or
        `contamination.experiments.wikimia.made_here`.
    rng : draws the bootstrap.
    references : name of a model -> the smaller one that "Smaller Ref" compares it with; without
        one it is left out. Two models with one tokenizer are compared by means over tokens, as in
        the paper, others by bytes.
    neighbours : of each text for "Neighbor", with words moved or left out at random where the
        paper asks a masked language model; 0 leaves it out.
    resamples : of the bootstrap. seed : of the neighbours.
    open_scorer : how a model is opened.

    Returns
    -------
    DataFrame
        A row per model, part and score, with `FIELDS`: auc and tpr_at_5_fpr with 95% intervals,
        members and non_members as judged, parameters of the model as counted. A part that cannot be
        had is one row without a model or score, a model that cannot be had one row per part;
        `status` says why.

    Raises
    ------
    InputError
        Fewer than 0 neighbours or 1 resample.
    """
    if neighbours < 0 or resamples < 1:
        raise InputError(f"neighbours {neighbours}, resamples {resamples}: give 0 and 1 or more")
    there = [part for part in parts if part.status == OK and models]
    rows = [
        _about(part) | {"status": part.status if part.status != OK else NO_MODEL}
        for part in parts
        if part not in there
    ]
    for entry in tqdm(models, desc="models", unit="model", leave=False, disable=None):
        reference = (references or {}).get(entry.name)
        rows += _rows(entry, reference, there, rng, neighbours, resamples, seed, open_scorer)
        gc.collect()  # the model goes before the next one comes
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
    table = pd.DataFrame(rows, columns=list(FIELDS))
    counts = ["parameters", "members", "non_members"]
    table[counts] = table[counts].astype("Int64")
    return table


def _about(part: Part) -> Row:
    return {
        "model": "",
        "source": part.source,
        "variant": part.variant,
        "split": part.split,
        "length": part.length,
        "score": "",
        "text_revision": part.revision,
    }


def _rows(
    entry: ModelEntry,
    reference: ModelEntry | None,
    parts: Sequence[Part],
    rng: np.random.Generator,
    neighbours: int,
    resamples: int,
    seed: int,
    open_scorer: Callable[[ModelEntry], Scorer],
) -> Iterator[Row]:
    """Yield the rows of a model, whatever happens."""
    known: Row = {"model": entry.name, "parameters": entry.parameters, "reference": ""}
    problem, other = "", None
    try:
        scorer = open_scorer(entry)
        known |= {"parameters": _parameters(scorer, entry), "model_revision": scorer.revision}
    except FAILURES as error:
        problem = status_of(error)
    if reference:
        try:
            other, told = open_scorer(reference), ""
        except FAILURES as error:  # the other scores need no reference
            told = f" ({status_of(error)})"
        known["reference"] = f"{reference.name}{told}"
    scored: dict[str, Row] = {}  # a text of several parts is read once
    for part in parts:
        row = _about(part) | known
        if problem:
            yield row | {"status": problem}
            continue
        try:
            missing = [text for text in dict.fromkeys(part.texts) if text not in scored]
            if missing:
                found = _scores(scorer, other, missing, neighbours, seed)
                scored |= dict(zip(missing, found.to_dict("records"), strict=True))
            table = pd.DataFrame([scored[text] for text in part.texts])
            judged = evaluate(table, part.members, rng=rng, resamples=resamples)
        except FAILURES as error:
            yield row | {"status": status_of(error)}
            continue
        for measured in judged[["score", *MEASURES, "members", "non_members"]].to_dict("records"):
            yield row | measured | {"status": OK}


def _scores(
    scorer: Scorer,
    reference: Scorer | None,
    texts: Sequence[str],
    neighbours: int,
    seed: int,
) -> pd.DataFrame:
    """Scores of `SCORES` that can be had, (texts, scores)."""
    alike = reference and scorer.tokenizer.get_vocab() == reference.tokenizer.get_vocab()
    scores = membership_scores(
        scorer,
        texts,
        reference=reference,
        reference_per="token" if alike else "byte",
        neighbours=neighbours,
        columns=COLUMNS,
        seed=seed,
    )
    return scores[[name for name in SCORES if name in scores]]


def _parameters(scorer: Scorer, entry: ModelEntry) -> int | None:
    if isinstance(scorer, TransformersScorer):
        return int(scorer.model.num_parameters())
    return entry.parameters
