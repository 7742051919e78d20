"""The passes of notebook 08: models score texts of known membership, by domain.

The models trained here, of every size, are fine-tuned in between. Released models are not; they
score public texts of the Pile, on which Fu et al. sample 1,000 texts of the training split and as
many of the test split of nine domains, from a copy of hundreds of gigabytes
(`ArmelR/the-pile-splitted`). Two sets that one can fetch whole hold texts of both sides by domain:

- `llm_dataset_inference` (Maini et al., 2024): 2,000 texts of the training split and as many of the
  validation split, of all nine domains. By the code that made it, texts are pieces of 512 tokens
  (64 of Enron Emails), and members were cut from longer documents than non-members.
- `mimir` (Duan et al., 2024): up to 1,000 texts of 100 to 200 words of either split, of four of the
  nine domains and of three others; non-members of which at least 80% of the 13-grams are in the
  training split were left out. The hub gives it to accounts that have asked for access.

Neither was at hand here: files, fields and numbers are those of the pages of the hub, or of public
code that reads them. No licence of either is known.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from contamination.errors import InputError
from contamination.files import read_json
from contamination.randomness import random_stream
from contamination.scoring.models import ModelEntry, find_model
from contamination.scoring.plan import stores_of
from contamination.scoring.status import OK
from contamination.testsets.records import Record
from contamination.testsets.registry import Entry, Hub
from contamination.testsets.sources import locate
from contamination.testsets.tokens import tokenize
from reproduction.run.domain_texts import Domain, Texts, domain_texts, to_train_on
from reproduction.run.experiment import Experiment
from reproduction.run.grid import ACCESS, Access, Row, grid, load_each, placeholders
from reproduction.run.measured import parts_of

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from contamination.scoring.contract import Scorer

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
KEYS = ["phase", "domain", "member"]  # of a scored text
READ_HERE = "read here"  # benchmark of the domains of the corpus
CELLS = ("model", "parameters", "domain", "members", "non_members", "spare", "commit", "status")

# As Tables 7 to 13 call them, in their order.
DOMAINS = (
    *("Github", "FreeLaw", "Enron Emails", "ArXiv", "OpenWebText2", "OpenSubtitles"),
    *("HackerNews", "YoutubeSubtitles", "Pile-CC"),
)


@dataclass(frozen=True)
class PublicSet:
    """Where the hub has the texts of a set.

    Attributes
    ----------
    id : of the repository.
    domains : domain of the Pile -> what the repository calls it.
    members, non_members : names of the two splits.
    file : path of the file of a split of a domain, with {split} and {domain}; None where domains
        are configurations, and splits those of the hub.
    """

    id: str
    domains: Mapping[str, str]
    members: str
    non_members: str
    file: str | None = None

    def hub(self, domain: str, split: str) -> Hub:
        """Return the source of a split of a domain, which the set has."""
        theirs = self.domains[domain]
        if self.file is None:
            return Hub(self.id, theirs)
        return Hub(self.id, file=self.file.format(split=split, domain=theirs))


SETS = {
    "llm_dataset_inference": PublicSet(
        "pratyushmaini/llm_dataset_inference",
        {name: name.lower() for name in DOMAINS} | {"Enron Emails": "enron", "Pile-CC": "cc"},
        members="train",
        non_members="val",
    ),
    "mimir": PublicSet(
        "iamgroot42/mimir",
        {
            "Github": "github",
            "ArXiv": "arxiv",
            "HackerNews": "hackernews",
            "Pile-CC": "pile_cc",
            "DM Mathematics": "dm_mathematics",
            "PubMed Central": "pubmed_central",
            "Wikipedia (en)": "wikipedia_(en)",
        },
        members="train",
        non_members="test",
        file="cache_100_200_1000_512/{split}/{domain}_ngram_13_0.8.jsonl",
    ),
}
# Models of Fu that have read something else: id -> domains of Table 14, of the Algebraic Stack.
OTHER_DOMAINS: Mapping[str, tuple[str, ...]] = {
    "allenai/OLMo-2-1124-7B": (
        *("cpp", "python", "Github-Lean", "julia", "tex", "Github-Isabelle", "fortran"),
        *("Github-Coq", "r"),
    )
}
NOT_OF_THE_PILE = (
    "not asked: a domain of the Algebraic Stack (EleutherAI/proof-pile-2), of which no set of "
    "members and non-members is registered"
)


@dataclass(frozen=True)
class PublicDomain:
    """Texts of a domain, as they are published.

    Attributes
    ----------
    name : of the domain, as Fu et al. call it.
    members, non_members : texts of the training split of the Pile, and of another split.
    status : "ok", or why there is no text: "failed: ...", "not run here: ..." or "not asked: ...".
    commit : of the hub, where it is known.
    """

    name: str
    members: tuple[str, ...] = ()
    non_members: tuple[str, ...] = ()
    status: str = OK
    commit: str = ""


def load_public(
    name: str, *, length: int = 512, texts: int = 1000, access: Access = ACCESS
) -> list[PublicDomain]:
    """Load the domains of one of `SETS`: the nine of Fu et al. in their order, then any others.

    Each split is looked for in the mirror (such as `mimir/github/train.jsonl`), then in the cache,
    then on the hub; what is fetched is recorded with its commit and checksum
    (`contamination.testsets.sources`). No code of a repository is run. `PublicDomain.status` says
    why a domain cannot be had; after one that is out of reach, the hub is not asked again. Raises
    InputError for an unknown set. A plan reckons with `texts` of `length` tokens on each side.
    """
    if name not in SETS:
        raise InputError(f"public is {name!r}: give one of {', '.join(SETS)}")
    public = SETS[name]

    def files(domain: str) -> list[Entry]:
        """Describe the splits of a domain as the registry describes test sets."""
        folder = f"{name}/{public.domains[domain]}"
        return [
            Entry(at, at, public.hub(domain, side), side, f"{at}.jsonl")
            for side in (public.members, public.non_members)
            for at in [f"{folder}/{side}"]
        ]

    def load(domain: str) -> PublicDomain | str:
        if domain not in public.domains:
            return f"not asked: {name} has no texts of this domain"
        expected = partial(placeholders, texts, length, "text")
        read = [access.read(entry, expected) for entry in files(domain)]
        members, others = (_texts(records, where) for records, where, _ in read)
        return PublicDomain(domain, members, others, commit=read[-1][2])

    def at_hand(domain: str) -> bool:
        return domain not in public.domains or all(map(locate, files(domain)))

    found = load_each([*DOMAINS, *public.domains], load, at_hand=at_hand)
    return [
        PublicDomain(domain, status=one) if isinstance(one, str) else one
        for domain, one in found.items()
    ]


def _texts(records: Sequence[Record], where: str) -> tuple[str, ...]:
    for place, record in records:
        if not isinstance(record.get("text"), str):
            raise InputError(f'{where}, {place}: no text; write {{"text": "..."}}')
    return tuple(record["text"] for _, record in records)


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
    access: Access = ACCESS,
) -> dict[str, pd.DataFrame]:
    """Score the texts of every domain under the models trained here, or under released ones.

    Tables: `cells` (a row per model and domain with `CELLS`: how many texts it has, or why none is
    scored), `scored` (model, and a row per text and phase as of `score_phases`) and `blind`, what
    needs no model, as of `Access.score_blind`.

    Parameters
    ----------
    models : names for `contamination.scoring.models.find_model`; none are the models trained here.
    public : name of one of `SETS`, which `models` score.
    length : tokens of a text; shorter documents are left out.
    texts : most texts of a domain, members and non-members each.
    spare : most texts of a domain that the models trained here read in fine-tuning, `epochs` times
        at `learning_rate`.
    access : to sets and models.
    """
    cells: list[Row] = []
    scored: list[pd.DataFrame] = []
    read: list[PublicDomain] = []
    benchmark, folder = READ_HERE, parts_of(experiment, "assumptions")
    if models:
        benchmark, entries = public, [find_model(name) for name in models]
        domains = load_public(public, length=length, texts=texts, access=access)
        cells, scored, read = score_released(
            entries, domains, folder, length=length, texts=texts, access=access
        )
    elif experiment.shapes:
        cells, scored, read = _score_trained(
            experiment,
            folder,
            length=length,
            texts=texts,
            spare=spare,
            epochs=epochs,
            learning_rate=learning_rate,
        )
    splits = [
        {
            "texts": (*one.members, *one.non_members),
            "members": [True] * len(one.members) + [False] * len(one.non_members),
            "benchmark": benchmark,
            "split": one.name,
            "rng": random_stream(experiment.profile.seed, "blind baselines of domains", one.name),
            "status": one.status,
        }
        for one in read
    ]
    empty = pd.DataFrame(columns=["model", *KEYS])
    return {
        "cells": pd.DataFrame(cells, columns=list(CELLS)).astype({"parameters": "Int64"}),
        "scored": pd.concat(scored, ignore_index=True) if scored else empty,
        "blind": access.score_blind(splits),
    }


def score_released(
    entries: Sequence[ModelEntry],
    domains: Sequence[PublicDomain],
    folder: Path,
    *,
    length: int,
    texts: int,
    access: Access = ACCESS,
) -> tuple[list[Row], list[pd.DataFrame], list[PublicDomain]]:
    """Score public texts under released models: rows of `cells`, tables of `scored`, texts read.

    A text is the first `length` tokens of a document, as the model's own tokenizer cuts it. The
    domains that are returned hold the texts as the first model that scored them has read them; one
    that no model scored holds its first `texts` documents as they are. `domains` come from
    `load_public`, `folder` keeps what is scored, `length`, `texts` and `access` are as in
    `measure`.
    """
    scored: list[pd.DataFrame] = []
    read: dict[str, PublicDomain] = {}

    def asked(entry: ModelEntry) -> Iterable[tuple[Row, PublicDomain | str]]:
        others = OTHER_DOMAINS.get(entry.id, ())
        for one in [PublicDomain(name, status=NOT_OF_THE_PILE) for name in others] or domains:
            row = {"parameters": entry.parameters, "domain": one.name, "commit": one.commit}
            yield row, one if one.status == OK else one.status

    def open_model(entry: ModelEntry) -> tuple["Scorer", Row]:
        scorer = access.open_model(entry)
        return scorer, access.parameters(scorer)

    def cell(entry: ModelEntry, scorer: "Scorer", domain: PublicDomain) -> Row:
        cut = cut_domain(domain, scorer.tokenizer, length=length, texts=texts)
        parts = stores_of(folder, entry.name, domain.name)
        found = score_phases({domain.name: cut}, {}, scorer, None, parts, access)
        scored.append(found.assign(model=entry.name))
        sides = [_decoded(scorer.tokenizer, side) for side in (cut.members, cut.non_members)]
        read.setdefault(domain.name, PublicDomain(domain.name, sides[0], sides[1]))
        return {"members": len(cut.members), "non_members": len(cut.non_members)}

    cells = grid(entries, asked, cell, open_model=open_model)
    for one in domains:
        first = replace(one, members=one.members[:texts], non_members=one.non_members[:texts])
        read.setdefault(one.name, first)
    return cells, scored, [read[one.name] for one in domains]


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
        for start in range(0, len(side), texts):
            every = tokenize(tokenizer, side[start : start + texts])
            found += [ids[:length] for ids in every if len(ids) >= length]
            if len(found) >= texts:
                break
        if not found:
            raise InputError(
                f"{domain.name}: no {name} of {len(side):,} has {length} tokens; lower `length`"
            )
        sides.append(tuple(found[:texts]))
    return Domain(sides[0], sides[1])


def _score_trained(
    experiment: Experiment,
    folder: Path,
    *,
    length: int,
    texts: int,
    spare: int,
    epochs: int,
    learning_rate: float,
) -> tuple[list[Row], list[pd.DataFrame], list[PublicDomain]]:
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
    tables, cells = [], []
    for name in names:
        before = TransformersScorer(experiment.model(name))
        after = TransformersScorer(directories[name]) if tuned else None
        tables.append(score_phases(domains, tuned, before, after, folder / name).assign(model=name))
        parameters = read_json(experiment.model(name) / "training.json")["parameters"]
        for domain, one in domains.items():
            row: Row = {"model": name, "parameters": parameters, "domain": domain, "commit": ""}
            sides = {"members": one.members, "non_members": one.non_members, "spare": one.spare}
            cells.append(row | {side: len(ids) for side, ids in sides.items()} | {"status": OK})
    read = [
        PublicDomain(name, _decoded(tokenizer, one.members), _decoded(tokenizer, one.non_members))
        for name, one in domains.items()
        if one.members and one.non_members
    ]
    return cells, tables, read


def _decoded(tokenizer: "PreTrainedTokenizerBase", texts: Texts) -> tuple[str, ...]:
    return tuple(tokenizer.decode(ids) for ids in texts)


def score_phases(
    domains: Mapping[str, Domain],
    tuned: Mapping[str, Texts],
    before: "Scorer",
    after: "Scorer | None",
    parts: Path,
    access: Access = ACCESS,
) -> pd.DataFrame:
    """Score the texts of every phase: a row per text and phase.

    Columns are phase, domain, member (in the control: will be one), and each metric of `LABELS`
    that texts of this length have, larger for members.

    Parameters
    ----------
    domains : of `reproduction.run.domain_texts.domain_texts`.
    tuned : domain -> texts that were read in fine-tuning; their domains alone are tuned ones.
    before, after : the model before and after fine-tuning; None leaves that phase out.
    parts : folder of what is scored. access : to the scores.
    """

    def sides(members: Mapping[str, Texts]) -> list[tuple[str, bool, Texts]]:
        return [
            (name, member, texts)
            for name, domain in domains.items()
            for member, texts in ((True, members.get(name, ())), (False, domain.non_members))
        ]

    read = {name: domain.members for name, domain in domains.items()}
    tables = [_score(access, before, parts, "pre-training", sides(read))]
    if tuned:
        first = tables[0]
        untouched = first[~first["member"] & first["domain"].isin(set(tuned))]
        later = [(name, True, tuned[name]) for name in tuned]
        tables.append(_score(access, before, parts, "control", later))
        tables.append(untouched.assign(phase="control"))
    if after is not None:
        tables.append(_score(access, after, parts, "fine-tuning", sides(tuned)))
    return pd.concat(tables, ignore_index=True)


def _score(
    access: Access,
    scorer: "Scorer",
    parts: Path,
    phase: str,
    sides: Sequence[tuple[str, bool, Texts]],
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
    scores = access.score_tokens(parts / phase, scorer, every, columns)
    return pd.concat([table, scores.reset_index(drop=True)], axis=1)
