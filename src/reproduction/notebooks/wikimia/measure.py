"""The passes of notebook 06: every model scores every part of WikiMIA, and of sets like it.

A model or a part that cannot be had is a cell that says why, and the others go on.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm import tqdm

from contamination.device import free_memory
from contamination.errors import InputError
from contamination.membership.blind import blind_rows
from contamination.membership.stored import stored_scores
from contamination.randomness import random_stream
from contamination.scoring.loading import count_parameters
from contamination.scoring.local import TransformersScorer, open_scorer
from contamination.scoring.models import ModelEntry, find_model
from contamination.scoring.plan import stores_of
from contamination.scoring.processes import together
from contamination.scoring.status import FAILURES, OK, status_of
from reproduction.notebooks.wikimia.benchmark import (
    READ_HERE,
    Part,
    as_controls,
    load_directory,
    load_known,
    load_wikimia,
)
from reproduction.notebooks.wikimia.evaluation import CELL, SCORES
from reproduction.run.experiment import Experiment
from reproduction.run.measured import parts_of

COLUMNS = ("loss", "zlib", "lowercase", "min_k_20")
CELLS = (
    *(CELL, "model", "parameters", "source", "variant", "split", "length", "reference"),
    *("model_revision", "text_revision", "status"),
)
SCORED = (CELL, "text", "member", "score", "value")
NO_MODEL = "not run here: no model is named"

Row = dict[str, Any]
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
) -> dict[str, pd.DataFrame]:
    """Score texts of known membership under the models trained here, and WikiMIA under `models`.

    Tables: `known` (the parts of known membership: source, words, members, texts, status), `cells`
    and `scored` as of `score_models`, and `blind`, what needs no model, as of `score_baselines`.
    The models trained here score WikiMIA, too, where it is at hand: they have read neither side of
    it. Without a corpus there is WikiMIA alone.

    Parameters
    ----------
    models : names for `find_model`. references : of them, name -> the smaller model.
    directory : a set of one's own, made by `contamination wikimia build`; "" for none.
    lengths : words of the texts. texts : most members of a length of known membership.
    neighbours : see `score_models`.
    """
    names = [*experiment.sizes, "clean"] if experiment.shapes else []
    trained = [ModelEntry(name, str(experiment.model(name))) for name in names]
    here = load_known(experiment, lengths, texts=texts) if trained else []
    yardsticks = {entry.name: trained[0] for entry in trained[1:]}
    public = together(lambda: load_wikimia(lengths, network=bool(models)))
    public += load_directory(directory, lengths) if directory else []
    named = {name: find_model(name) for name in models}
    smaller = {named[n].name: find_model(o) for n, o in references.items() if n in named}
    at_hand = as_controls([part for part in public if part.texts]) if trained else []
    folder, seed = parts_of(experiment, "wikimia"), experiment.profile.seed
    settings = {"neighbours": neighbours, "seed": seed}
    found = [
        score_models(trained, here, folder / "known", references=yardsticks, **settings),
        score_models(
            list(named.values()), public, folder / "public", references=smaller, **settings
        ),
        score_models(trained, at_hand, folder / "controls", references=yardsticks, **settings),
    ]
    cells, scored, first = [], [], 0
    for some, values in found:  # numbered through
        cells.append(some.assign(cell=some[CELL] + first))
        scored.append(values.assign(cell=values[CELL] + first))
        first += len(some)
    shown = [(p.source, p.length, sum(p.members), len(p.texts), p.status) for p in here]
    return {
        "known": pd.DataFrame(shown, columns=["source", "words", "members", "texts", "status"]),
        "cells": pd.concat(cells, ignore_index=True),
        "scored": pd.concat(scored, ignore_index=True),
        "blind": score_baselines([p for p in here if p.source == READ_HERE] + public, seed=seed),
    }


def score_baselines(parts: Sequence[Part], *, seed: int) -> pd.DataFrame:
    """Score every part without a model: the rows of `contamination.membership.blind.blind_rows`.

    Whose texts were drawn alike, as those of known membership, is a control for the baselines.
    """
    found = [
        blind_rows(
            part.texts,
            part.members,
            benchmark=part.source,
            split=part.split,
            rng=random_stream(seed, "blind baselines of WikiMIA", part.source, part.split),
            status=part.status,
        )
        for part in parts
    ]
    return pd.concat(found, ignore_index=True)


def score_models(
    models: Sequence[ModelEntry],
    parts: Sequence[Part],
    folder: Path,
    *,
    references: Mapping[str, ModelEntry] | None = None,
    neighbours: int = 0,
    seed: int = 0,
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
    seed : of the neighbours.
    """
    if neighbours < 0:
        raise InputError(f"neighbours {neighbours}: give 0 or more")
    rows: list[Row] = []
    values: list[pd.DataFrame] = []
    at_hand = [part for part in parts if part.status == OK and models]
    for part in parts:
        if part.status != OK or not models:
            rows.append(_describe(part, NO_MODEL if part.status == OK else part.status))
    wanted = models if at_hand else []  # no model is loaded, or downloaded, for nothing
    for entry in tqdm(wanted, desc="models", unit="model", leave=False, disable=None):
        reference = (references or {}).get(entry.name)
        known: Row = {"model": entry.name, "parameters": entry.parameters}
        known["reference"] = reference.name if reference else ""
        try:
            opened, score = _open(entry, reference, folder, neighbours, seed)
        except FAILURES as error:
            rows += [_describe(part, status_of(error)) | known for part in at_hand]
            continue
        for part in at_hand:
            row = _describe(part, OK) | known | opened
            try:
                table = score(part)
            except FAILURES as error:
                rows.append(row | {"status": status_of(error)})
                continue
            table = table.assign(cell=len(rows), text=range(len(table)), member=part.members)
            values.append(table.melt([CELL, "text", "member"], var_name="score"))
            rows.append(row)
        del score
        free_memory()  # the model goes before the next one comes
    cells = pd.DataFrame([row | {CELL: i} for i, row in enumerate(rows)], columns=list(CELLS))
    scored = pd.concat(values) if values else pd.DataFrame(columns=list(SCORED))
    return cells.astype({"parameters": "Int64"}), scored


def _describe(part: Part, status: str) -> Row:
    known = {key: getattr(part, key) for key in ("source", "variant", "split", "length")}
    return known | {"model": "", "text_revision": part.revision, "status": status}


def _open(
    entry: ModelEntry, reference: ModelEntry | None, folder: Path, neighbours: int, seed: int
) -> tuple[Row, Score]:
    """Open a model and its reference: what their rows say of them, and how texts are scored."""
    opened: Row = {}
    scorer, other = together(lambda: open_scorer(entry)), None
    if reference:
        try:
            other = together(lambda: open_scorer(reference))
        except FAILURES as error:  # the other scores need no reference
            opened["reference"] = f"{reference.name} ({status_of(error)})"
    opened["model_revision"] = scorer.revision
    if isinstance(scorer, TransformersScorer):
        opened["parameters"] = count_parameters(scorer.config)
    alike = other and scorer.tokenizer.get_vocab() == other.tokenizer.get_vocab()
    known: dict[str, Row] = {}  # a text of several parts is read once

    def score(part: Part) -> pd.DataFrame:
        missing = [text for text in dict.fromkeys(part.texts) if text not in known]
        if missing:
            found = stored_scores(
                stores_of(folder, entry.name, f"{part.source}-{part.split}"),
                scorer,
                missing,
                reference=other,
                reference_per="token" if alike else "byte",
                neighbours=neighbours,
                columns=COLUMNS,
                seed=seed,
            )
            found = found[[name for name in SCORES if name in found]]
            known.update(zip(missing, found.to_dict("records"), strict=True))
        return pd.DataFrame([known[text] for text in part.texts])

    return opened, score
