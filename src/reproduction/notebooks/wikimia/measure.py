"""The passes of notebook 06: every model scores every part of sets like WikiMIA."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import pandas as pd

from contamination.randomness import random_stream
from contamination.scoring.contract import Scorer
from contamination.scoring.models import ModelEntry, find_model
from contamination.scoring.plan import stores_of
from contamination.scoring.status import FAILURES, OK, status_of
from reproduction.notebooks.wikimia.settings import Settings
from reproduction.notebooks.wikimia.texts import (
    CONTROL,
    READ_HERE,
    Part,
    load_known,
    load_renamed,
    load_wikimia,
)
from reproduction.run.experiment import Experiment, parts_of
from reproduction.run.grid import ACCESS, Access, Row, grid

# The rows of Table 1, in its order: column of `membership_scores` -> what the paper
# calls it.
SCORES = {
    "neighbour": "Neighbor",
    "loss": "PPL",
    "zlib": "Zlib",
    "lowercase": "Lowercase",
    "reference_difference": "Smaller Ref",
    "min_k_20": "Min-20%",
}
COLUMNS = ("loss", "zlib", "lowercase", "min_k_20")
CELL = "cell"  # number of a model and part
CELLS = (
    CELL,
    "model",
    "parameters",
    "source",
    "variant",
    "split",
    "length",
    "reference",
    "model_revision",
    "text_revision",
    "status",
)
NO_MODEL = "not run here: no model is named"


def measure(
    experiment: Experiment,
    settings: Settings,
    access: Access = ACCESS,
) -> dict[str, pd.DataFrame]:
    """Score texts of known membership under our models, and WikiMIA under others.

    The models trained here score WikiMIA, too, where it is at hand, as a control: they
    have read neither side. Without a corpus there is WikiMIA alone, and, where some are
    named, the sets of `load_renamed`.

    Parameters
    ----------
    experiment
        The run.
    settings
        Models and sets.
    access
        Opens models and sets; another one counts what they cost.

    Returns
    -------
    known : the parts of known membership: source, words, members, texts, status.
    cells, scored : as of `tables_of`.
    blind : scores without a model, as of `Access.score_blind`.
    """
    seed = experiment.profile.seed
    names = [*experiment.sizes, "clean"] if experiment.shapes else []
    trained = [ModelEntry(name, str(experiment.model(name))) for name in names]
    known: list[Part] = []
    if trained:
        known = load_known(experiment, settings.lengths, texts=settings.texts)
    public = load_wikimia(settings.lengths, network=bool(settings.models), access=access)
    public += load_renamed(
        settings.renamed,
        settings.lengths,
        texts=settings.texts,
        rng=random_stream(seed, "renamed questions"),
        access=access,
    )
    unread: list[Part] = []
    if trained:
        unread = [replace(p, source=f"{CONTROL} ({p.source})") for p in public if p.texts]
    smallest_trained = {entry.name: trained[0] for entry in trained[1:]}
    audited = {name: find_model(name) for name in settings.models}
    smaller = {}
    for name, reference in settings.references.items():
        if name in audited:
            smaller[audited[name].name] = find_model(reference)
    scoring = Scoring(neighbours=settings.neighbours, seed=seed, access=access)
    folder = parts_of(experiment, "wikimia")
    rows = score_models(trained, known, folder / "known", smallest_trained, scoring)
    rows += score_models(
        list(audited.values()),
        public,
        folder / "public",
        smaller,
        scoring,
    )
    rows += score_models(trained, unread, folder / "controls", smallest_trained, scoring)
    cells, scored = tables_of(rows)
    judged_blind = [part for part in known if part.source == READ_HERE] + public
    return {
        "known": _known_table(known),
        "cells": cells,
        "scored": scored,
        "blind": access.score_blind([_blind_split(part, seed) for part in judged_blind]),
    }


def _known_table(parts: Sequence[Part]) -> pd.DataFrame:
    """Return how many texts each part of known membership has."""
    rows = [
        (part.source, part.length, sum(part.members), len(part.texts), part.status)
        for part in parts
    ]
    return pd.DataFrame(rows, columns=["source", "words", "members", "texts", "status"])


def _blind_split(part: Part, seed: int) -> Row:
    """Return the arguments of `blind_rows` for a part."""
    return {
        "texts": part.texts,
        "members": part.members,
        "split": part.split,
        "status": part.status,
        "rng": random_stream(
            seed,
            "blind baselines of WikiMIA",
            part.source,
            part.split,
        ),
        "benchmark": part.source,
    }


@dataclass(frozen=True)
class Scoring:
    """Settings with which texts are scored.

    Attributes
    ----------
    neighbours
        Number of neighbours of each text for "Neighbor", with words moved or left out
        at random where the paper asks a masked language model; 0 leaves the score out.
    seed
        Draws the neighbours.
    access
        Access to models and scores.
    """

    neighbours: int = 0
    seed: int = 0
    access: Access = ACCESS


@dataclass(frozen=True)
class OpenModel:
    """A model with its reference, and the scores of texts so far.

    A text of several parts is read once.
    """

    scorer: Scorer
    reference: Scorer | None
    scores: dict[str, Row] = field(default_factory=dict)

    @property
    def reference_per(self) -> Literal["token", "byte"]:
        """Return the unit of comparison: the token, as in the paper, if both share a tokenizer."""
        if self.reference is None:
            return "byte"
        own = self.scorer.tokenizer.get_vocab()
        return "token" if own == self.reference.tokenizer.get_vocab() else "byte"


def score_models(
    models: Sequence[ModelEntry],
    parts: Sequence[Part],
    folder: Path,
    references: Mapping[str, ModelEntry],
    scoring: Scoring = Scoring(),
) -> list[Row]:
    """Score every part under every model, by the scores of Table 1: a row of `CELLS` for each.

    `scored` of a row has a column for each score, its `status` says why there are none.
    A part that is unavailable is one row without a model.

    Parameters
    ----------
    models
        The models that score.
    parts
        The texts, in parts.
    folder
        Keeps what is scored.
    references
        Name of a model -> the smaller one that "Smaller Ref" compares it with; without
        one that score is left out.
    scoring
        Settings with which texts are scored.
    """
    access = scoring.access
    if not models:
        parts = [replace(part, status=NO_MODEL) if part.status == OK else part for part in parts]
    lost = []
    for part in parts:
        if part.status != OK:
            lost.append(_describe(part) | {"model": "", "status": part.status})

    def parts_of_model(entry: ModelEntry) -> list[tuple[Row, Part | str]]:
        reference = references[entry.name].name if entry.name in references else ""
        about_model = {"parameters": entry.parameters, "reference": reference}
        return [(_describe(part) | about_model, part) for part in parts if part.status == OK]

    def open_model(entry: ModelEntry) -> tuple[OpenModel, Row]:
        scorer = access.open_model(entry)
        about_model = {"model_revision": scorer.revision} | access.parameters(scorer)
        reference = None
        if entry.name in references:
            reference_entry = references[entry.name]
            try:
                reference = access.open_model(reference_entry)
            except FAILURES as error:  # the other scores need no reference
                about_model["reference"] = f"{reference_entry.name} ({status_of(error)})"
        return OpenModel(scorer, reference), about_model

    def score_part(entry: ModelEntry, opened: OpenModel, part: Part) -> Row:
        missing = [text for text in dict.fromkeys(part.texts) if text not in opened.scores]
        if missing:
            table = access.score_texts(
                stores_of(folder, entry.name, f"{part.source}-{part.split}"),
                opened.scorer,
                missing,
                columns=COLUMNS,
                neighbours=scoring.neighbours,
                seed=scoring.seed,
                reference=opened.reference,
                reference_per=opened.reference_per,
            )
            table = table[[name for name in SCORES if name in table]]
            opened.scores.update(zip(missing, table.to_dict("records"), strict=True))
        scored = pd.DataFrame([opened.scores[text] for text in part.texts])
        return {"scored": scored.assign(member=part.members)}

    return lost + grid(models, parts_of_model, score_part, open_model=open_model)


def tables_of(rows: Sequence[Row]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return tables of rows of `score_models`: cells, numbered through, and their texts.

    The second has the columns cell, member and a column for each score that some cell
    has.
    """
    numbered = [row | {CELL: number} for number, row in enumerate(rows)]
    cells = pd.DataFrame(numbered, columns=list(CELLS)).astype({"parameters": "Int64"})
    texts = [row["scored"].assign(cell=row[CELL]) for row in numbered if "scored" in row]
    if not texts:
        return cells, pd.DataFrame(columns=[CELL, "member"])
    return cells, pd.concat(texts, ignore_index=True)


def _describe(part: Part) -> Row:
    """Return the columns that describe a part."""
    return {
        "source": part.source,
        "variant": part.variant,
        "split": part.split,
        "length": part.length,
        "text_revision": part.revision,
    }
