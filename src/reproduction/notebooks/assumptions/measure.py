"""The passes of notebook 08: models score texts of known membership, by domain.

The models trained here, of every size, are fine-tuned in between. Released models are not; they
score public texts of the Pile. A model or a domain that cannot be had is a cell that says why, and
the others go on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from contamination.device import free_memory
from contamination.errors import InputError
from contamination.files import read_json
from contamination.membership.blind import SCORED, blind_rows
from contamination.membership.stored import stored_token_scores
from contamination.randomness import random_stream
from contamination.scoring.contract import Scorer
from contamination.scoring.loading import count_parameters
from contamination.scoring.local import TransformersScorer, open_scorer
from contamination.scoring.models import ModelEntry, find_model
from contamination.scoring.plan import stores_of
from contamination.scoring.processes import deal, together
from contamination.scoring.status import FAILURES, OK, status_of
from contamination.testsets.tokens import tokenize
from reproduction.notebooks.assumptions.detection import FIRST, KEYS, LABELS
from reproduction.notebooks.assumptions.public import (
    NOT_OF_THE_PILE,
    OTHER_DOMAINS,
    PublicDomain,
    load_public,
)
from reproduction.run.domain_texts import Domain, Texts, domain_texts, to_train_on
from reproduction.run.experiment import Experiment
from reproduction.run.fine_tuning import fine_tune
from reproduction.run.measured import parts_of

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

READ_HERE = "read here"  # benchmark of the domains of the corpus
CELLS = ("model", "parameters", "domain", "members", "non_members", "spare", "commit", "status")

Row = dict[str, Any]


def measure(
    experiment: Experiment,
    *,
    models: Sequence[str],
    public: str,
    length: int,
    texts: int,
    spare: int,
    epochs: int,
    learning_rate: float,
) -> dict[str, pd.DataFrame]:
    """Score the texts of every domain under the models trained here, or under released ones.

    Tables: `cells` (a row per model and domain with `CELLS`: how many texts it has, or why none is
    scored), `scored` (model, and a row per text and phase as of `score_phases`) and `blind`, what
    needs no model, as of `score_baselines`.

    Parameters
    ----------
    models : names for `contamination.scoring.models.find_model`; none are the models trained here.
    public : a set of `reproduction.notebooks.assumptions.public`, which `models` score.
    length : tokens of a text; shorter documents are left out.
    texts : most texts of a domain, members and non-members each.
    spare : most texts of a domain that the models trained here read in fine-tuning, `epochs` times
        at `learning_rate`.
    """
    if models:
        domains = together(lambda: load_public(public))
        entries, folder = [find_model(name) for name in models], parts_of(experiment, "assumptions")
        cells, scored, read = score_released(entries, domains, folder, length=length, texts=texts)
        benchmark = public
    elif experiment.shapes:
        cells, scored, read = _score_trained(
            experiment,
            length=length,
            texts=texts,
            spare=spare,
            epochs=epochs,
            learning_rate=learning_rate,
        )
        benchmark = READ_HERE
    else:  # neither models nor a corpus
        cells, scored = (pd.DataFrame(columns=list(c)) for c in (CELLS, ("model", *KEYS)))
        benchmark, read = "", []
    blind = score_baselines(read, benchmark=benchmark, seed=experiment.profile.seed)
    return {"cells": cells.astype({"parameters": "Int64"}), "scored": scored, "blind": blind}


def score_released(
    entries: Sequence[ModelEntry],
    domains: Sequence[PublicDomain],
    folder: Path,
    *,
    length: int,
    texts: int,
) -> tuple[pd.DataFrame, pd.DataFrame, list[PublicDomain]]:
    """Score public texts under released models: the tables `cells` and `scored`, and what was read.

    A text is the first `length` tokens of a document, as the model's own tokenizer cuts it. The
    domains that are returned hold the texts as the first model that scored them has read them; one
    that no model scored holds its first `texts` documents as they are.

    Parameters
    ----------
    entries : one after the other is loaded and let go, if there is something for it to score.
    domains : of `reproduction.notebooks.assumptions.public.load_public`.
    folder : of what is scored.
    length, texts : see `measure`.
    """
    cells: list[Row] = []
    tables: list[pd.DataFrame] = []
    read: dict[str, PublicDomain] = {}
    for entry in tqdm(entries, desc="models", unit="model", leave=False, disable=None):
        others = OTHER_DOMAINS.get(entry.id, ())
        asked = [PublicDomain(name, status=NOT_OF_THE_PILE) for name in others] or domains
        scorer, problem, parameters = None, "", entry.parameters
        if any(domain.status == OK for domain in asked):
            try:
                scorer = together(partial(open_scorer, entry))
            except FAILURES as error:
                problem = status_of(error)
        if isinstance(scorer, TransformersScorer):
            parameters = count_parameters(scorer.config)
        for domain in asked:
            cell: Row = {"model": entry.name, "parameters": parameters, "domain": domain.name}
            cell |= {"commit": domain.commit, "status": domain.status}
            cells.append(cell)
            if domain.status != OK or scorer is None:
                cell["status"] = problem if domain.status == OK else domain.status
                continue
            try:
                cut = cut_domain(domain, scorer.tokenizer, length=length, texts=texts)
                parts = stores_of(folder, entry.name, domain.name)
                found = score_phases({domain.name: cut}, {}, scorer, None, parts)
            except FAILURES as error:
                cell["status"] = status_of(error)
                continue
            found.insert(0, "model", entry.name)
            tables.append(found)
            cell |= {"members": len(cut.members), "non_members": len(cut.non_members)}
            if domain.name not in read:
                texts_of = partial(_decoded, scorer.tokenizer)
                sides = (texts_of(cut.members), texts_of(cut.non_members))
                read[domain.name] = PublicDomain(domain.name, *sides)
        del scorer
        free_memory()  # the model goes before the next one comes
    whole = [
        replace(one, members=one.members[:texts], non_members=one.non_members[:texts])
        for one in domains
    ]
    empty = pd.DataFrame(columns=["model", *KEYS])
    scored = pd.concat(tables, ignore_index=True) if tables else empty
    shown = [read.get(one.name, one) for one in whole]
    return pd.DataFrame(cells, columns=list(CELLS)), scored, shown


def cut_domain(
    domain: PublicDomain, tokenizer: "PreTrainedTokenizerBase", *, length: int, texts: int
) -> Domain:
    """Cut texts to their first `length` tokens; at most `texts` of each side, none that is shorter.

    Raises InputError if a side has no such text, or for fewer than 2 tokens or 1 text.
    """
    if length < 2 or texts < 1:
        raise InputError(f"length {length}, texts {texts}: give at least 2 tokens and 1 text")
    sides: list[Texts] = []
    for name, side in (("member", domain.members), ("non-member", domain.non_members)):
        found: list[np.ndarray] = []
        for text in side:
            (ids,) = tokenize(tokenizer, [text])
            if len(ids) >= length:
                found.append(ids[:length])
            if len(found) == texts:
                break
        if not found:
            raise InputError(
                f"{domain.name}: no {name} of {len(side):,} has {length} tokens; lower `length`"
            )
        sides.append(tuple(found))
    return Domain(sides[0], sides[1])


def score_baselines(domains: Sequence[PublicDomain], *, benchmark: str, seed: int) -> pd.DataFrame:
    """Score the texts of each domain without a model: rows of `membership.blind.blind_rows`."""
    found = [
        blind_rows(
            (*domain.members, *domain.non_members),
            [True] * len(domain.members) + [False] * len(domain.non_members),
            benchmark=benchmark,
            split=domain.name,
            rng=random_stream(seed, "blind baselines of domains", domain.name),
            status=domain.status,
        )
        for domain in domains
    ]
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=list(SCORED))


def _score_trained(
    experiment: Experiment,
    *,
    length: int,
    texts: int,
    spare: int,
    epochs: int,
    learning_rate: float,
) -> tuple[pd.DataFrame, pd.DataFrame, list[PublicDomain]]:
    """Score the texts of a run before and after fine-tuning, as `score_released` returns it.

    Each model is fine-tuned in one process. Domains without members, or without others, are not
    among those that are returned.
    """
    names = [*experiment.sizes, "clean"]
    tokenizer = TransformersScorer(experiment.model("clean")).tokenizer
    domains = domain_texts(experiment, tokenizer, length=length, texts=texts, spare=spare)
    tuned = to_train_on(domains)
    spare_texts = [ids for found in tuned.values() for ids in found]
    tasks = [
        partial(
            fine_tune,
            experiment.model(name),
            spare_texts,
            experiment.build / "finetuned" / name,
            epochs=epochs,
            learning_rate=learning_rate,
            seed=experiment.profile.seed,
        )
        for name in (names if tuned else ())
    ]
    directories = dict(zip(names, deal("fine-tune", tasks), strict=False))
    parts = parts_of(experiment, "assumptions")
    tables, cells = [], []
    for name in names:
        before = TransformersScorer(experiment.model(name))
        after = TransformersScorer(directories[name]) if tuned else None
        scored = score_phases(domains, tuned, before, after, parts / name)
        scored.insert(0, "model", name)
        tables.append(scored)
        parameters = read_json(experiment.model(name) / "training.json")["parameters"]
        for domain, one in domains.items():
            counts = (len(one.members), len(one.non_members), len(one.spare))
            cells.append((name, parameters, domain, *counts, "", OK))
    read = [
        PublicDomain(name, _decoded(tokenizer, one.members), _decoded(tokenizer, one.non_members))
        for name, one in domains.items()
        if one.members and one.non_members
    ]
    found = pd.DataFrame(cells, columns=list(CELLS))
    return found, pd.concat(tables, ignore_index=True), read


def _decoded(tokenizer: "PreTrainedTokenizerBase", texts: Texts) -> tuple[str, ...]:
    return tuple(tokenizer.decode(ids) for ids in texts)


def score_phases(
    domains: Mapping[str, Domain],
    tuned: Mapping[str, Texts],
    before: Scorer,
    after: Scorer | None,
    parts: Path,
) -> pd.DataFrame:
    """Score the texts of every phase: a row per text and phase.

    Columns are phase, domain, member (in the control: will be one), and each metric of `LABELS`
    that texts of this length have, larger for members.

    Parameters
    ----------
    domains : of `reproduction.run.domain_texts.domain_texts`.
    tuned : domain -> texts that were read in fine-tuning; their domains alone are tuned ones.
    before, after : the model before and after fine-tuning; None leaves that phase out.
    parts : folder of what is scored.
    """

    def sides(members: Mapping[str, Texts]) -> list[tuple[str, bool, Texts]]:
        return [
            (name, member, texts)
            for name, domain in domains.items()
            for member, texts in ((True, members.get(name, ())), (False, domain.non_members))
        ]

    read = {name: domain.members for name, domain in domains.items()}
    tables = [_score(before, parts, "pre-training", sides(read))]
    if tuned:
        first = tables[0]
        untouched = first[~first["member"] & first["domain"].isin(set(tuned))]
        later = [(name, True, tuned[name]) for name in tuned]
        tables.append(_score(before, parts, "control", later))
        tables.append(untouched.assign(phase="control"))
    if after is not None:
        tables.append(_score(after, parts, "fine-tuning", sides(tuned)))
    return pd.concat(tables, ignore_index=True)


def _score(
    scorer: Scorer, parts: Path, phase: str, sides: Sequence[tuple[str, bool, Texts]]
) -> pd.DataFrame:
    """Score the texts of all sides (domain, member, texts) in one pass of the model."""
    keys = [(phase, domain, member) for domain, member, texts in sides for _ in texts]
    table = pd.DataFrame(keys, columns=KEYS).astype({"member": bool})
    every = [ids for _, _, texts in sides for ids in texts]
    if not every:
        return table
    length = min(map(len, every))
    short = {f"ppl_{k}" for k in FIRST if k >= length}  # the first token has no score
    columns = [name for name in LABELS if name not in short]
    scores = stored_token_scores(parts / phase, scorer, every, columns)
    return pd.concat([table, scores.reset_index(drop=True)], axis=1)
