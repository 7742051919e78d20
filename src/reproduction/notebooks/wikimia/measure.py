"""The passes of notebook 06: every model scores every part of WikiMIA, and of sets like it."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from contamination.errors import InputError
from contamination.randomness import random_stream
from contamination.scoring.models import ModelEntry, find_model
from contamination.scoring.plan import stores_of
from contamination.scoring.status import FAILURES, OK, status_of
from reproduction.notebooks.wikimia.benchmark import (
    READ_HERE,
    SCORES,
    Part,
    as_controls,
    load_directory,
    load_known,
    load_wikimia,
)
from reproduction.run.experiment import Experiment
from reproduction.run.grid import ACCESS, Access, Row, grid
from reproduction.run.measured import parts_of

if TYPE_CHECKING:
    from contamination.scoring.contract import Scorer

COLUMNS = ("loss", "zlib", "lowercase", "min_k_20")
CELL = "cell"  # number of a model and part
CELLS = (
    *(CELL, "model", "parameters", "source", "variant", "split", "length", "reference"),
    *("model_revision", "text_revision", "status"),
)
SCORED = (CELL, "text", "member", "score", "value")
NO_MODEL = "not run here: no model is named"

Score = Callable[[Part], pd.DataFrame]  # texts -> a table with a column for each score


def measure(
    experiment: Experiment,
    *,
    models: Sequence[str],
    references: Mapping[str, str],
    directory: str,
    lengths: Sequence[int],
    texts: int,
    neighbours: int,
    access: Access = ACCESS,
) -> dict[str, pd.DataFrame]:
    """Score texts of known membership under the models trained here, and WikiMIA under `models`.

    Tables: `known` (the parts of known membership: source, words, members, texts, status), `cells`
    and `scored` as of `score_models`, and `blind`, what needs no model, as of `Access.score_blind`;
    whose texts were drawn alike, as those of known membership, is a control for these baselines.
    The models trained here score WikiMIA, too, where it is at hand: they have read neither side of
    it. Without a corpus there is WikiMIA alone.

    Parameters
    ----------
    models : names for `find_model`. references : of them, name -> the smaller model.
    directory : a set of one's own, made by `contamination wikimia build`; "" for none.
    lengths : words of the texts. texts : most members of a length of known membership.
    neighbours : see `score_models`. access : to sets and models.
    """
    names = [*experiment.sizes, "clean"] if experiment.shapes else []
    trained = [ModelEntry(name, str(experiment.model(name))) for name in names]
    here = load_known(experiment, lengths, texts=texts) if trained else []
    yardsticks = {entry.name: trained[0] for entry in trained[1:]}
    public = load_wikimia(lengths, network=bool(models), access=access)
    public += load_directory(directory, lengths) if directory else []
    named = {name: find_model(name) for name in models}
    smaller = {named[n].name: find_model(o) for n, o in references.items() if n in named}
    at_hand = as_controls([part for part in public if part.texts]) if trained else []
    folder, seed = parts_of(experiment, "wikimia"), experiment.profile.seed
    cells: list[pd.DataFrame] = []
    scored: list[pd.DataFrame] = []
    for some, parts, smaller_ones, where in (
        (trained, here, yardsticks, "known"),
        (list(named.values()), public, smaller, "public"),
        (trained, at_hand, yardsticks, "controls"),
    ):
        found = score_models(
            some,
            parts,
            folder / where,
            references=smaller_ones,
            neighbours=neighbours,
            seed=seed,
            access=access,
        )
        first = sum(map(len, cells))  # cells are numbered through
        for table, tables in zip(found, (cells, scored), strict=True):
            tables.append(table.assign(cell=table[CELL] + first))
    splits = [
        {
            "texts": part.texts,
            "members": part.members,
            "benchmark": part.source,
            "split": part.split,
            "rng": random_stream(seed, "blind baselines of WikiMIA", part.source, part.split),
            "status": part.status,
        }
        for part in [*(p for p in here if p.source == READ_HERE), *public]
    ]
    shown = [(p.source, p.length, sum(p.members), len(p.texts), p.status) for p in here]
    return {
        "known": pd.DataFrame(shown, columns=["source", "words", "members", "texts", "status"]),
        "cells": pd.concat(cells, ignore_index=True),
        "scored": pd.concat(scored, ignore_index=True),
        "blind": access.score_blind(splits),
    }


def score_models(
    models: Sequence[ModelEntry],
    parts: Sequence[Part],
    folder: Path,
    *,
    references: Mapping[str, ModelEntry] | None = None,
    neighbours: int = 0,
    seed: int = 0,
    access: Access = ACCESS,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Score every part under every model, by the scores of Table 1.

    Returns two tables. The first has a row per model and part, `CELLS`: `cell` is its number,
    `status` says why there are no scores. A part that cannot be had is one row without a model. The
    second has a row per cell, text and score, `SCORED`. Raises InputError for fewer than 0
    neighbours.

    Parameters
    ----------
    models : one after the other is loaded and let go.
    parts : of `reproduction.notebooks.wikimia.benchmark`.
    folder : of what is scored.
    references : name of a model -> the smaller one that "Smaller Ref" compares it with; without
        one it is left out. Two models with one tokenizer are compared by means over tokens, as in
        the paper, others by bytes.
    neighbours : of each text for "Neighbor", with words moved or left out at random where the
        paper asks a masked language model; 0 leaves it out.
    seed : of the neighbours. access : to models and scores.
    """
    if neighbours < 0:
        raise InputError(f"neighbours {neighbours}: give 0 or more")
    at_hand = [part for part in parts if part.status == OK and models]
    absent = [part for part in parts if part.status != OK or not models]
    rows: list[Row] = [
        {**_describe(part), "model": "", "status": part.status if part.status != OK else NO_MODEL}
        for part in absent
    ]

    def asked(entry: ModelEntry) -> list[tuple[Row, Part | str]]:
        reference = (references or {}).get(entry.name)
        known = {"parameters": entry.parameters, "reference": reference.name if reference else ""}
        return [(_describe(part) | known, part) for part in at_hand]

    def open_model(entry: ModelEntry) -> tuple[Score, Row]:
        scorer, other = access.open_model(entry), None
        known = {"model_revision": scorer.revision} | access.parameters(scorer)
        if reference := (references or {}).get(entry.name):
            try:
                other = access.open_model(reference)
            except FAILURES as error:  # the other scores need no reference
                known["reference"] = f"{reference.name} ({status_of(error)})"
        settings = {"columns": COLUMNS, "neighbours": neighbours, "seed": seed}
        return _scores_of(entry, scorer, other, folder, access, settings), known

    def cell(entry: ModelEntry, score: Score, part: Part) -> Row:
        table = score(part)
        return {"scored": table.assign(text=range(len(table)), member=part.members)}

    rows += grid(models, asked, cell, open_model=open_model)
    cells = pd.DataFrame([row | {CELL: i} for i, row in enumerate(rows)], columns=list(CELLS))
    values = [
        row["scored"].assign(cell=i).melt([CELL, "text", "member"], var_name="score")
        for i, row in enumerate(rows)
        if row["status"] == OK
    ]
    scored = pd.concat(values) if values else pd.DataFrame(columns=list(SCORED))
    return cells.astype({"parameters": "Int64"}), scored


def _describe(part: Part) -> Row:
    known = {key: getattr(part, key) for key in ("source", "variant", "split", "length")}
    return known | {"text_revision": part.revision}


def _scores_of(
    entry: ModelEntry,
    scorer: "Scorer",
    other: "Scorer | None",
    folder: Path,
    access: Access,
    settings: Row,
) -> Score:
    """Return a function that scores a part under a model and its reference."""
    alike = other and scorer.tokenizer.get_vocab() == other.tokenizer.get_vocab()
    known: dict[str, Row] = {}  # a text of several parts is read once

    def score(part: Part) -> pd.DataFrame:
        missing = [text for text in dict.fromkeys(part.texts) if text not in known]
        if missing:
            found = access.score_texts(
                stores_of(folder, entry.name, f"{part.source}-{part.split}"),
                scorer,
                missing,
                reference=other,
                reference_per="token" if alike else "byte",
                **settings,
            )
            found = found[[name for name in SCORES if name in found]]
            known.update(zip(missing, found.to_dict("records"), strict=True))
        return pd.DataFrame([known[text] for text in part.texts])

    return score
