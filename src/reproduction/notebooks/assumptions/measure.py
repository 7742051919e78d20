"""The passes of notebook 08: models score texts of known membership, by domain.

The models trained here, of every size, are fine-tuned in between. Released models are
not: they score the public set (`public`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from contamination.errors import InputError
from contamination.files import read_json
from contamination.randomness import random_stream
from contamination.scoring.contract import Scorer
from contamination.scoring.models import ModelEntry, find_model
from contamination.scoring.plan import stores_of
from contamination.scoring.status import OK
from contamination.testsets.tokens import tokenize
from reproduction.notebooks.assumptions.asked import score_asked
from reproduction.notebooks.assumptions.labels import FIRST, KEYS, LABELS, PHASES, ROWS
from reproduction.notebooks.assumptions.public import (
    PIECE,
    PUBLIC,
    PublicDomain,
    load_public,
)
from reproduction.notebooks.assumptions.settings import Settings
from reproduction.run.experiment import Experiment, parts_of
from reproduction.run.grid import ACCESS, Access, Row, grid
from reproduction.run.texts import Domain, Texts, domain_texts, to_train_on

READ_HERE = "read here"  # benchmark of the domains of the corpus
CELLS = (
    "model",
    "parameters",
    "domain",
    "members",
    "non_members",
    "spare",
    "commit",
    "status",
)


def _nothing_asked() -> pd.DataFrame:
    return pd.DataFrame(columns=[*KEYS, *ROWS])


@dataclass
class ScoredTexts:
    """Texts that were scored.

    Attributes
    ----------
    cells
        A row for each model and domain.
    scores
        Tables of scores, one for each model or cell.
    splits
        The texts of each domain with their membership, for `Access.score_blind`.
    asked_scores
        The table of `score_asked`, of models trained here.
    """

    cells: list[Row] = field(default_factory=list)
    scores: list[pd.DataFrame] = field(default_factory=list)
    splits: list[Row] = field(default_factory=list)
    asked_scores: pd.DataFrame = field(default_factory=_nothing_asked)


def measure(
    experiment: Experiment,
    settings: Settings,
    access: Access = ACCESS,
) -> dict[str, pd.DataFrame]:
    """Score texts of every domain under the models trained here, or released ones.

    Returns
    -------
    cells : `CELLS` of every model and domain: how many texts it has, or why none is scored.
    scored : model, and the columns of `score_phases`.
    blind : scores without a model, as of `Access.score_blind`.
    asked : the table of `score_asked`; released models are not asked.
    """
    seed = experiment.profile.seed
    scored = ScoredTexts()
    if settings.models:
        benchmark = PUBLIC
        scored = score_released(
            [find_model(name) for name in settings.models],
            load_public(
                length=min(settings.length, PIECE),
                texts=settings.texts,
                access=access,
            ),
            parts_of(experiment, "assumptions"),
            settings,
            access,
        )
    else:
        benchmark = READ_HERE
        if experiment.shapes:
            scored = _score_trained(experiment, settings)
    splits = []
    for split in scored.splits:
        rng = random_stream(seed, "blind baselines of domains", split["split"])
        splits.append(split | {"benchmark": benchmark, "rng": rng})
    empty = pd.DataFrame(columns=["model", *KEYS])
    cells = pd.DataFrame(scored.cells, columns=list(CELLS))
    return {
        "cells": cells.astype({"parameters": "Int64"}),
        "scored": pd.concat(scored.scores or [empty], ignore_index=True),
        "blind": access.score_blind(splits),
        "asked": scored.asked_scores,
    }


def score_released(
    entries: Sequence[ModelEntry],
    domains: Sequence[PublicDomain],
    folder: Path,
    settings: Settings,
    access: Access = ACCESS,
) -> ScoredTexts:
    """Score public texts under released models.

    A text is the beginning of a document, of `settings.length` tokens of the model's
    own tokenizer at most, and `settings.shortest` at least. A cell without any text has
    failed.

    Parameters
    ----------
    entries
        The released models.
    domains
        The public set.
    folder
        Folder of the scores.
    settings
        Lengths and numbers of texts.
    access
        Access to the models.

    Returns
    -------
    scored
        Its splits are as the first model that scored them has read them; those of a
        domain that no model scored are its first documents as they are.
    """
    scored = ScoredTexts()
    splits: dict[str, Row] = {}

    def domains_of(entry: ModelEntry) -> Iterator[tuple[Row, PublicDomain | str]]:
        for domain in domains:
            row = {
                "parameters": entry.parameters,
                "domain": domain.name,
                "commit": domain.commit,
            }
            if domain.status == OK:
                yield row, domain
            else:
                yield row, domain.status

    def open_model(entry: ModelEntry) -> tuple[Scorer, Row]:
        scorer = access.open_model(entry)
        return scorer, access.parameters(scorer)

    def score_domain(entry: ModelEntry, scorer: Scorer, public: PublicDomain) -> Row:
        domain = _cut_domain(public, scorer, settings)
        parts = stores_of(folder, entry.name, public.name)
        table = score_phases({public.name: domain}, {}, scorer, None, parts, access)
        scored.scores.append(table.assign(model=entry.name))
        splits.setdefault(public.name, _decoded(public.name, domain, scorer.tokenizer))
        return {"members": len(domain.members), "non_members": len(domain.non_members)}

    scored.cells = grid(entries, domains_of, score_domain, open_model=open_model)
    for public in domains:
        if public.name not in splits:
            members = public.members[: settings.texts]
            non_members = public.non_members[: settings.texts]
            splits[public.name] = _split(public.name, members, non_members)
            splits[public.name]["status"] = public.status
        scored.splits.append(splits[public.name])
    return scored


def _cut_domain(public: PublicDomain, scorer: Scorer, settings: Settings) -> Domain:
    """Cut documents of both sides; InputError for one without a text long enough."""
    fewest = settings.shortest or settings.length
    cut: dict[str, Texts] = {}
    sides = {"member": public.members, "non-member": public.non_members}
    for kind, documents in sides.items():
        texts = _beginnings(documents, scorer, fewest=fewest, most=settings.length)
        cut[kind] = tuple(islice(texts, settings.texts))
        if not cut[kind]:
            raise InputError(
                f"{public.name}: no {kind} of {len(documents):,} has {fewest} tokens; "
                "lower `length`",
            )
    return Domain(cut["member"], cut["non-member"])


def _beginnings(
    documents: Sequence[str],
    scorer: Scorer,
    *,
    fewest: int,
    most: int,
) -> Iterator[np.ndarray]:
    """Yield the first tokens of each document that has enough."""
    for document in documents:
        (ids,) = tokenize(scorer.tokenizer, [document])
        ids = ids[:most]
        if len(ids) >= fewest:
            yield ids


def _split(name: str, members: Sequence[str], non_members: Sequence[str]) -> Row:
    """Return the texts of a domain with their membership."""
    is_member = [True] * len(members) + [False] * len(non_members)
    return {"split": name, "texts": (*members, *non_members), "members": is_member}


def _decoded(name: str, domain: Domain, tokenizer: Any) -> Row:
    """Return the texts of a domain as a model has read them, with their membership."""
    members = [tokenizer.decode(ids) for ids in domain.members]
    non_members = [tokenizer.decode(ids) for ids in domain.non_members]
    return _split(name, members, non_members)


def _score_trained(experiment: Experiment, settings: Settings) -> ScoredTexts:
    """Score the texts of a run before and after fine-tuning, as `score_released`.

    Each model is fine-tuned in one process. Domains without members, or without others,
    are not among the splits.
    """
    from contamination.scoring.local import TransformersScorer

    names = [*experiment.sizes, "clean"]
    tokenizer = TransformersScorer(experiment.model("clean")).tokenizer
    domains = domain_texts(
        experiment,
        tokenizer,
        length=settings.length,
        texts=settings.texts,
        spare=settings.spare,
    )
    tuned = to_train_on(domains)
    folder = experiment.build / "finetuned"
    if tuned:
        _fine_tune(experiment, names, tuned, folder, settings)
    scored = ScoredTexts()
    for name in names:
        before = TransformersScorer(experiment.model(name))
        after = TransformersScorer(folder / name) if tuned else None
        parts = parts_of(experiment, "assumptions") / name
        table = score_phases(domains, tuned, before, after, parts)
        scored.scores.append(table.assign(model=name))
        parameters = read_json(experiment.model(name) / "training.json")["parameters"]
        for domain_name, domain in domains.items():
            scored.cells.append(
                {
                    "model": name,
                    "parameters": parameters,
                    "domain": domain_name,
                    "commit": "",
                    "members": len(domain.members),
                    "non_members": len(domain.non_members),
                    "spare": len(domain.spare),
                    "status": OK,
                },
            )
    scored.asked_scores = score_asked(
        domains,
        tuned,
        TransformersScorer(experiment.model("clean")),
        TransformersScorer(folder / "clean") if tuned else None,
        texts=settings.asked,
        seed=experiment.profile.seed,
    )
    for domain_name, domain in domains.items():
        if domain.members and domain.non_members:
            scored.splits.append(_decoded(domain_name, domain, tokenizer))
    return scored


def _fine_tune(
    experiment: Experiment,
    names: Sequence[str],
    tuned: Mapping[str, Texts],
    folder: Path,
    settings: Settings,
) -> None:
    """Let every model read all texts some more times; write it to the folder."""
    from contamination.scoring.processes import distribute
    from reproduction.run.fine_tuning import fine_tune

    texts = list(chain.from_iterable(tuned.values()))
    tasks = []
    for name in names:
        task = partial(
            fine_tune,
            experiment.model(name),
            texts,
            folder / name,
            learning_rate=settings.learning_rate,
            seed=experiment.profile.seed,
            epochs=settings.epochs,
        )
        tasks.append(task)
    distribute("fine-tune", tasks)


def score_phases(
    domains: Mapping[str, Domain],
    tuned: Mapping[str, Texts],
    before: Scorer,
    after: Scorer | None,
    parts: Path,
    access: Access = ACCESS,
) -> pd.DataFrame:
    """Score the texts of every phase: a row per text and phase.

    Parameters
    ----------
    domains
        The texts, by domain.
    tuned
        Domain -> texts that were read in fine-tuning.
    before, after
        The model before and after fine-tuning; None, with none `tuned`, where there is
        pre-training alone.
    parts
        Folder that keeps what is scored.
    access
        To the scores.

    Returns
    -------
    scores
        Columns phase, domain, member (in the control: will be one), and each metric of
        `LABELS` that the longest text has, larger for members; NaN for a text that is
        too short for it.
    """
    members = {name: domain.members for name, domain in domains.items()}
    control, pre_training, fine_tuning = PHASES
    phases: list[tuple[str, Scorer, Mapping[str, Texts]]] = [(pre_training, before, members)]
    if after is not None:
        phases.append((control, before, tuned))
        phases.append((fine_tuning, after, tuned))
    tables: list[pd.DataFrame] = []
    for phase, scorer, members_of_phase in phases:
        keys = []
        texts: list[np.ndarray] = []
        for name, domain in domains.items():
            own_members = members_of_phase.get(name, ())
            keys += [(phase, name, True)] * len(own_members)
            texts += own_members
            if phase != control:
                keys += [(phase, name, False)] * len(domain.non_members)
                texts += domain.non_members
        columns = _metrics_of(texts)
        scores = access.score_texts(parts / phase, scorer, texts, columns=columns)
        tables.append(pd.concat([pd.DataFrame(keys, columns=KEYS), scores], axis=1))
        if phase == control:  # its non-members have been scored by this model
            first = tables[0]
            untouched = first[~first["member"] & first["domain"].isin(set(tuned))]
            tables.append(untouched.assign(phase=phase))
    return pd.concat(tables, ignore_index=True)


def _metrics_of(texts: Sequence[np.ndarray]) -> list[str]:
    """Return the metrics that the longest text has; its first token has no score."""
    longest = max(map(len, texts))
    too_long = {f"ppl_{k}" for k in FIRST if k >= longest}
    return [name for name in LABELS if name not in too_long]
