"""Membership scores judged on texts before and after a date (Shi et al., Table 1 and Figure 2).

Every model scores every part of a benchmark, and every score is judged by itself. Directions are
fixed: the larger, the more likely a member. A model or a part that cannot be had is a row that says
why.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from contamination.device import free_memory
from contamination.errors import InputError
from contamination.experiments.wikimia.benchmark import Part
from contamination.membership.api import membership_scores
from contamination.membership.evaluate import evaluate
from contamination.scoring.local import TransformersScorer, open_scorer
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
Score = Callable[[Sequence[str]], pd.DataFrame]  # texts -> a table with a column for each score


def wikimia_table(
    models: Sequence[ModelEntry],
    parts: Sequence[Part],
    *,
    rng: np.random.Generator,
    references: Mapping[str, ModelEntry] | None = None,
    neighbours: int = 0,
    resamples: int = 1000,
    seed: int = 0,
) -> pd.DataFrame:
    """Judge the scores of Table 1 on every part, under every model.

    Returns a row per model, part and score, with `FIELDS`: auc and tpr_at_5_fpr with 95% intervals,
    members and non_members as judged, parameters of the model as counted. A part that cannot be had
    is one row without a model or score, a model that cannot be had one row per part; `status` says
    why. Raises InputError for fewer than 0 neighbours or 1 resample.

    Parameters
    ----------
    models : one after the other is loaded and let go.
    parts : of `contamination.experiments.wikimia.benchmark`.
    rng : draws the bootstrap.
    references : name of a model -> the smaller one that "Smaller Ref" compares it with; without
        one it is left out. Two models with one tokenizer are compared by means over tokens, as in
        the paper, others by bytes.
    neighbours : of each text for "Neighbor", with words moved or left out at random where the
        paper asks a masked language model; 0 leaves it out.
    resamples : of the bootstrap. seed : of the neighbours.
    """
    if neighbours < 0 or resamples < 1:
        raise InputError(f"neighbours {neighbours}, resamples {resamples}: give 0 and 1 or more")
    rows: list[Row] = []
    at_hand = [part for part in parts if part.status == OK and models]
    for part in parts:
        if part.status != OK or not models:
            rows.append(_describe(part, NO_MODEL if part.status == OK else part.status))
    for entry in tqdm(models, desc="models", unit="model", leave=False, disable=None):
        reference = (references or {}).get(entry.name)
        known: Row = {"model": entry.name, "parameters": entry.parameters}
        known["reference"] = reference.name if reference else ""
        try:
            opened, score = _open(entry, reference, neighbours, seed)
        except FAILURES as error:
            rows += [_describe(part, status_of(error)) | known for part in at_hand]
            continue
        for part in at_hand:
            row = _describe(part, OK) | known | opened
            try:
                judged = evaluate(score(part.texts), part.members, rng=rng, resamples=resamples)
            except FAILURES as error:
                rows.append(row | {"status": status_of(error)})
                continue
            measured = judged[["score", *MEASURES, "members", "non_members"]].to_dict("records")
            rows += [row | one for one in measured]
        del score
        free_memory()  # the model goes before the next one comes
    table = pd.DataFrame(rows, columns=list(FIELDS))
    counts = ["parameters", "members", "non_members"]
    table[counts] = table[counts].astype("Int64")
    return table


def _describe(part: Part, status: str) -> Row:
    known = {key: getattr(part, key) for key in ("source", "variant", "split", "length")}
    return known | {"model": "", "score": "", "text_revision": part.revision, "status": status}


def _open(
    entry: ModelEntry, reference: ModelEntry | None, neighbours: int, seed: int
) -> tuple[Row, Score]:
    """Open a model and its reference: what their rows say of them, and how texts are scored."""
    opened: Row = {}
    scorer, other = open_scorer(entry), None
    if reference:
        try:
            other = open_scorer(reference)
        except FAILURES as error:  # the other scores need no reference
            opened["reference"] = f"{reference.name} ({status_of(error)})"
    opened["model_revision"] = scorer.revision
    if isinstance(scorer, TransformersScorer):
        opened["parameters"] = int(scorer.model.num_parameters())
    alike = other and scorer.tokenizer.get_vocab() == other.tokenizer.get_vocab()
    scored: dict[str, Row] = {}  # a text of several parts is read once

    def score(texts: Sequence[str]) -> pd.DataFrame:
        missing = [text for text in dict.fromkeys(texts) if text not in scored]
        if missing:
            found = membership_scores(
                scorer,
                missing,
                reference=other,
                reference_per="token" if alike else "byte",
                neighbours=neighbours,
                columns=COLUMNS,
                seed=seed,
            )
            found = found[[name for name in SCORES if name in found]]
            scored.update(zip(missing, found.to_dict("records"), strict=True))
        return pd.DataFrame([scored[text] for text in texts])

    return opened, score
