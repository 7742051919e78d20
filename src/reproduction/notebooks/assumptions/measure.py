"""The passes of notebook 08: models score texts of known membership, by domain.

The models trained here, of every size, are fine-tuned in between. Released models are not. Fu et
al. ask them about 1,000 texts each of the training and the test split of nine domains of the Pile,
from a copy of hundreds of gigabytes. The public set here, `llm_dataset_inference` (Maini et al.,
2024), has 2,000 of the training and of the validation split; by the code that made it, texts are
pieces of 512 tokens (64 of Enron Emails), and members were cut from longer documents than
non-members. It was not at hand here: files, fields and numbers are those of its page on the hub, or
of public code that reads them. No licence is known.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd

from contamination.errors import InputError
from contamination.files import read_json
from contamination.randomness import random_stream
from contamination.scoring.contract import Scorer
from contamination.scoring.models import ModelEntry, find_model
from contamination.scoring.plan import stores_of
from contamination.scoring.status import OK
from contamination.testsets.registry import Entry, Hub
from contamination.testsets.sources import locate
from contamination.testsets.tokens import tokenize
from reproduction.run.experiment import Experiment, parts_of
from reproduction.run.grid import ACCESS, Access, Row, grid, load_each
from reproduction.run.texts import Domain, Texts, domain_texts, to_train_on

PHASES = ("control", "pre-training", "fine-tuning")

# k of Fu; its names in the tables.
FIRST, MIN_K, MEM, ENTROPY = (50, 100, 200), (5, 15, 25), (5, 15, 25), (5, 15, 25)
LABELS = {
    **{f"ppl_{k}": f"PPL_{k}" for k in FIRST},
    "loss": "PPL",
    **{f"min_prob_{k}": f"Min {k}% token" for k in MIN_K},  # as Fu define it
    **{f"min_k_{k}": f"Min-K% {k} (log)" for k in MIN_K},  # as Shi do
    **{f"mem_{k}": f"Mem {k}" for k in MEM},
    **{f"mem_off_by_one_{k}": f"Mem {k}, off by one" for k in MEM},
    **{f"entropy_{k}": f"Entropy {k}" for k in ENTROPY},
}
PIECE = 512  # tokens to which the code behind the public set cut its texts
KEYS = ["phase", "domain", "member"]  # of a scored text
READ_HERE = "read here"  # benchmark of the domains of the corpus
CELLS = ("model", "parameters", "domain", "members", "non_members", "spare", "commit", "status")

# As Tables 7 to 13 call them, in their order.
DOMAINS = (
    *("Github", "FreeLaw", "Enron Emails", "ArXiv", "OpenWebText2", "OpenSubtitles"),
    *("HackerNews", "YoutubeSubtitles", "Pile-CC"),
)
PUBLIC = "llm_dataset_inference"  # the public set
REPOSITORY = f"pratyushmaini/{PUBLIC}"  # of the hub; a domain is a configuration of it
CONFIGURATIONS = {name: name.lower() for name in DOMAINS}
CONFIGURATIONS |= {"Enron Emails": "enron", "Pile-CC": "cc"}
SPLITS = ("train", "val")  # of members, and of non-members


@dataclass(frozen=True)
class PublicDomain:
    """Texts of a domain, as they are published."""

    name: str
    members: tuple[str, ...] = ()  # of the training split of the Pile
    non_members: tuple[str, ...] = ()  # of another split
    commit: str = ""  # of the hub, where it is known
    status: str = OK  # or why there is no text


# Rows of cells, tables of scores, and the texts as they were read, for `Access.score_blind`.
Scored = tuple[list[Row], list[pd.DataFrame], list[Row]]


def load_public(*, length: int, texts: int, access: Access = ACCESS) -> list[PublicDomain]:
    """Load the nine domains of the public set in their order, or say why one cannot be had.

    Each split is looked for in the mirror (such as `llm_dataset_inference/github/train.jsonl`),
    then in the cache, then on the hub, which is not asked again after a domain that is out of
    reach. A plan reckons with `texts` of `length` tokens on each side.
    """

    def files(domain: str) -> list[Entry]:
        source = Hub(REPOSITORY, CONFIGURATIONS[domain])
        found = [(f"{PUBLIC}/{CONFIGURATIONS[domain]}/{split}", split) for split in SPLITS]
        return [Entry(at, at, source, split, f"{at}.jsonl") for at, split in found]

    def load(domain: str) -> PublicDomain:
        sides = []
        for entry in files(domain):
            records, where, commit = access.read(entry, texts, length)
            for place, record in records:
                if not isinstance(record.get("text"), str):
                    raise InputError(f'{where}, {place}: no text; write {{"text": "..."}}')
            sides.append(tuple(record["text"] for _, record in records))
        return PublicDomain(domain, sides[0], sides[1], commit)

    found = load_each(DOMAINS, load, at_hand=lambda domain: all(map(locate, files(domain))))
    return [PublicDomain(name, status=d) if isinstance(d, str) else d for name, d in found.items()]


def measure(
    experiment: Experiment,
    *,
    models: Sequence[str],
    length: int,
    shortest: int | None,
    texts: int,
    spare: int,
    epochs: int,
    learning_rate: float,
    access: Access = ACCESS,
) -> dict[str, pd.DataFrame]:
    """Score the texts of every domain under the models trained here, or under released ones.

    Tables: `cells` (`CELLS` of every model and domain: how many texts it has, or why none is
    scored), `scored` (model, and the columns of `score_phases`) and `blind` (what needs no model,
    as of `Access.score_blind`).

    `models` (names for `find_model`) score the public set; without any, the models trained here
    score texts of the run, at most `spare` of which they then read `epochs` times. Texts have
    `length` tokens, public ones with `shortest` that many or fewer, but at least `shortest`; of a
    domain there are at most so many `texts` on each side.
    """
    found: Scored = [], [], []
    if models:
        entries = [find_model(name) for name in models]
        domains = load_public(length=min(length, PIECE), texts=texts, access=access)
        folder, sizes = parts_of(experiment, "assumptions"), (shortest or length, length)
        found = score_released(entries, domains, folder, sizes, texts, access)
    elif experiment.shapes:
        tuning = {"epochs": epochs, "learning_rate": learning_rate}
        found = _score_trained(experiment, length, texts, spare, **tuning)
    cells, scored, read = found
    stream = partial(random_stream, experiment.profile.seed, "blind baselines of domains")
    about = {"benchmark": PUBLIC if models else READ_HERE}
    splits = [one | about | {"rng": stream(one["split"])} for one in read]
    empty = pd.DataFrame(columns=["model", *KEYS])
    return {
        "cells": pd.DataFrame(cells, columns=list(CELLS)).astype({"parameters": "Int64"}),
        "scored": pd.concat(scored or [empty], ignore_index=True),
        "blind": access.score_blind(splits),
    }


def score_released(
    entries: Sequence[ModelEntry],
    domains: Sequence[PublicDomain],
    folder: Path,
    sizes: tuple[int, int],
    texts: int,
    access: Access = ACCESS,
) -> Scored:
    """Score public texts under released models; `folder` keeps what is scored.

    A text is the beginning of a document, of so many tokens of the model's own tokenizer at least
    and at most (`sizes`); at most `texts` of a side count, and a cell without any has failed. The
    texts that are returned are as the first model that scored them has read them; those of a domain
    that no model scored are its first documents as they are.
    """
    scored: list[pd.DataFrame] = []
    read: dict[str, Row] = {}

    def asked(entry: ModelEntry) -> Iterable[tuple[Row, PublicDomain | str]]:
        for one in domains:
            row = {"parameters": entry.parameters, "domain": one.name, "commit": one.commit}
            yield row, one if one.status == OK else one.status

    def open_model(entry: ModelEntry) -> tuple[Scorer, Row]:
        scorer = access.open_model(entry)
        return scorer, access.parameters(scorer)

    def cell(entry: ModelEntry, scorer: Scorer, one: PublicDomain) -> Row:
        (fewest, most), sides = sizes, list[Texts]()
        for kind, side in (("member", one.members), ("non-member", one.non_members)):
            every = (ids[:most] for text in side for ids in tokenize(scorer.tokenizer, [text]))
            sides.append(tuple(islice((ids for ids in every if len(ids) >= fewest), texts)))
            if not sides[-1]:
                none = f"{one.name}: no {kind} of {len(side):,} has {fewest} tokens"
                raise InputError(f"{none}; lower `length`")
        domain, parts = Domain(*sides), stores_of(folder, entry.name, one.name)
        found = score_phases({one.name: domain}, {}, scorer, None, parts, access)
        scored.append(found.assign(model=entry.name))
        read.setdefault(one.name, _decoded(one.name, domain, scorer.tokenizer))
        return {"members": len(domain.members), "non_members": len(domain.non_members)}

    cells = grid(entries, asked, cell, open_model=open_model)
    for one in domains:
        sides = one.members[:texts], one.non_members[:texts]
        read.setdefault(one.name, _split(one.name, *sides) | {"status": one.status})
    return cells, scored, [read[one.name] for one in domains]


def _split(name: str, members: Sequence[str], others: Sequence[str]) -> Row:
    labels = [True] * len(members) + [False] * len(others)
    return {"split": name, "texts": (*members, *others), "members": labels}


def _decoded(name: str, domain: Domain, tokenizer: Any) -> Row:
    sides = (domain.members, domain.non_members)
    return _split(name, *([tokenizer.decode(ids) for ids in side] for side in sides))


def _score_trained(
    experiment: Experiment, length: int, texts: int, spare: int, **tuning: Any
) -> Scored:
    """Score the texts of a run before and after fine-tuning, as `score_released` returns it.

    Each model is fine-tuned in one process. Domains without members, or without others, are not
    among those that are returned.
    """
    from contamination.scoring.local import TransformersScorer
    from contamination.scoring.processes import deal
    from reproduction.run.fine_tuning import fine_tune

    names = [*experiment.sizes, "clean"]
    tokenizer = TransformersScorer(experiment.model("clean")).tokenizer
    domains = domain_texts(experiment, tokenizer, length=length, texts=texts, spare=spare)
    tuned, folder = to_train_on(domains), experiment.build / "finetuned"
    read = [ids for found in tuned.values() for ids in found]
    teach = partial(fine_tune, seed=experiment.profile.seed, **tuning)
    tasks = [partial(teach, experiment.model(name), read, folder / name) for name in names]
    deal("fine-tune", tasks if tuned else [])
    tables, cells = [], []
    for name in names:
        before = TransformersScorer(experiment.model(name))
        after = TransformersScorer(folder / name) if tuned else None
        parts = parts_of(experiment, "assumptions") / name
        tables.append(score_phases(domains, tuned, before, after, parts).assign(model=name))
        parameters = read_json(experiment.model(name) / "training.json")["parameters"]
        for domain, one in domains.items():
            row: Row = {"model": name, "parameters": parameters, "domain": domain, "commit": ""}
            row |= {side: len(getattr(one, side)) for side in ("members", "non_members", "spare")}
            cells.append(row | {"status": OK})
    both = {name: one for name, one in domains.items() if one.members and one.non_members}
    return cells, tables, [_decoded(name, one, tokenizer) for name, one in both.items()]


def score_phases(
    domains: Mapping[str, Domain],
    tuned: Mapping[str, Texts],
    before: Scorer,
    after: Scorer | None,
    parts: Path,
    access: Access = ACCESS,
) -> pd.DataFrame:
    """Score the texts of every phase: a row per text and phase; `parts` keeps what is scored.

    Columns are phase, domain, member (in the control: will be one), and each metric of `LABELS`
    that the longest text has, larger for members; NaN for a text that is too short for it.

    `tuned`, domain -> texts, were read in fine-tuning, which made of the model `before` the one
    `after`; None, with none `tuned`, where there is pre-training alone.
    """
    read = {name: domain.members for name, domain in domains.items()}
    phases: list[tuple[str, Scorer, Mapping[str, Texts]]] = [("pre-training", before, read)]
    if after is not None:
        phases += [("control", before, tuned), ("fine-tuning", after, tuned)]
    tables: list[pd.DataFrame] = []
    for phase, scorer, members in phases:
        sides = [
            (name, member, texts)
            for name, domain in domains.items()
            for member, texts in ((True, members.get(name, ())), (False, domain.non_members))
            if member or phase != "control"
        ]
        keys = [(phase, name, member) for name, member, texts in sides for _ in texts]
        every = [ids for _, _, texts in sides for ids in texts]
        length = max(map(len, every))
        short = {f"ppl_{k}" for k in FIRST if k >= length}  # the first token has no score
        columns = [name for name in LABELS if name not in short]
        scores = access.score_texts(parts / phase, scorer, every, columns=columns)
        tables.append(pd.concat([pd.DataFrame(keys, columns=KEYS), scores], axis=1))
        if phase == "control":  # the others have been scored by this model
            first = tables[0]
            untouched = first[~first["member"] & first["domain"].isin(set(tuned))]
            tables.append(untouched.assign(phase=phase))
    return pd.concat(tables, ignore_index=True)
