"""The passes of notebook 06: every model scores every part of WikiMIA, and of sets like it.

Shi et al., section 2.2: members are beginnings of Wikipedia pages on events that were created
before 2017, non-members those of pages on events of 2023 and later, each cut to 32, 64, 128 or 256
words; a split holds `{"input": text, "label": 1 | 0}`, 1 for a member. Of known membership are
beginnings of documents that the models trained here read once, and of documents of the same
packages that chance left out of the corpus: those sides differ by membership alone, and not by
their age as well. Of public sets, questions stand against others about somebody else (`renamed`).
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from pathlib import Path

import numpy as np
import pandas as pd

from contamination.errors import InputError
from contamination.files import sha256_of
from contamination.randomness import random_stream
from contamination.scoring.contract import Scorer
from contamination.scoring.models import ModelEntry, find_model
from contamination.scoring.plan import stores_of
from contamination.scoring.status import FAILURES, OK, status_of
from contamination.testsets.registry import Entry, Hub
from contamination.testsets.sources import locate
from reproduction.notebooks.wikimia.renamed import renamed_twins
from reproduction.run.corpus import is_divided, members, non_members, sample_by_source
from reproduction.run.experiment import Experiment, parts_of
from reproduction.run.grid import ACCESS, Access, Row, grid, load_each

LENGTHS = (32, 64, 128, 256)  # words of a text
ORIGINAL, PARAPHRASED = "original", "paraphrased"  # variants
WIKIMIA, READ_HERE, CONTROL = "wikimia", "read here", "control"  # sources of texts
RENAMED = "renamed"  # ends the source of questions of a public set, half about somebody else

ORIGINAL_HUB = Hub("swj0419/WikiMIA")
# By the authors of Min-K%++ (Zhang et al., 2025); there is none of 256 words.
PARAPHRASED_HUB = Hub("zjysteven/WikiMIA_paraphrased_perturbed")
PARAPHRASED_LENGTHS = (32, 64, 128)
RECORDS = {32: 776, 64: 542, 128: 250}  # as the card of the hub has them; it leaves out 256
LONGEST_RECORDS = 82  # of 256 words
TOKENS_PER_WORD = 1.35  # of English, with punctuation; what a plan reckons with

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
CELL = "cell"  # number of a model and part
CELLS = (
    *(CELL, "model", "parameters", "source", "variant", "split", "length", "reference"),
    *("model_revision", "text_revision", "status"),
)
NOT_AT_HAND = (
    "not run here: WikiMIA is neither in the mirror nor in the cache, and no model is named that "
    "it would be fetched for"
)
TAKEN_WHOLE = "not run here: the corpus was taken whole, so no text of its kind was left out of it"
NO_MODEL = "not run here: no model is named"


@dataclass(frozen=True)
class Part:
    """Texts of one length and variant, with who is a member."""

    source: str  # benchmark that it belongs to
    variant: str  # `ORIGINAL` or `PARAPHRASED`
    length: int  # words of a text
    texts: tuple[str, ...] = ()
    members: tuple[bool, ...] = ()  # of each text: True if it was read
    status: str = OK  # or why there is no text
    commit: str = ""  # of the hub, where it is known

    @property
    def split(self) -> str:
        """Name of the split, as the hub has it; of renamed questions the number of words."""
        if self.source.endswith(RENAMED):
            return f"{self.length} words"
        mark = f"_{self.variant}" if self.variant != ORIGINAL else ""
        return f"WikiMIA_length{self.length}{mark}"

    @property
    def revision(self) -> str:
        """The commit, else a checksum of texts and labels; "" without any text."""
        if self.commit or not self.texts:
            return self.commit
        labels = "".join(str(int(member)) for member in self.members)
        return f"sha256:{sha256_of(*self.texts, labels)[:16]}"

    @property
    def entry(self) -> Entry:
        """The split as the registry describes a test set."""
        at, split = f"{WIKIMIA}/{self.split}", self.split
        if self.variant == PARAPHRASED:
            return Entry(at, split, PARAPHRASED_HUB, split, f"{at}.jsonl")
        records = RECORDS.get(self.length)
        return Entry(at, split, ORIGINAL_HUB, split, f"{at}.jsonl", licence="MIT", records=records)


def load_wikimia(lengths: Sequence[int], *, network: bool, access: Access = ACCESS) -> list[Part]:
    """Load the benchmark: the original texts by length, then the paraphrased ones.

    Each split is looked for in the mirror (`wikimia/WikiMIA_length32.jsonl`), then in the cache,
    then, with `network`, on the hub, which is not asked again after a split that is out of reach.
    `Part.status` says why one cannot be had, or what is wrong with its records.
    """
    wanted = [Part(WIKIMIA, ORIGINAL, length) for length in lengths]
    wanted += [Part(WIKIMIA, PARAPHRASED, n) for n in lengths if n in PARAPHRASED_LENGTHS]

    def load(part: Part) -> Part | str:
        if not network and locate(part.entry) is None:
            return NOT_AT_HAND
        count, tokens = RECORDS.get(part.length, LONGEST_RECORDS), part.length * TOKENS_PER_WORD
        records, where, commit = access.read(part.entry, count, tokens)
        texts, labels = [], []
        for place, record in records:
            text, label = record.get("input"), str(record.get("label"))
            if not isinstance(text, str) or not text.strip() or label not in ("0", "1"):
                raise InputError(
                    f'{where}, {place}: write {{"input": "...", "label": 1}} for a member, else 0'
                )
            texts.append(text)
            labels.append(label == "1")
        if len(set(labels)) != 2:
            raise InputError(f"{where}: members or non-members alone; an AUC needs both sides")
        return replace(part, texts=tuple(texts), members=tuple(labels), commit=commit)

    found = load_each(wanted, load, at_hand=lambda part: locate(part.entry) is not None)
    return [replace(p, status=one) if isinstance(one, str) else one for p, one in found.items()]


def load_known(experiment: Experiment, lengths: Sequence[int], *, texts: int) -> list[Part]:
    """Cut documents of a run to texts of known membership, and to a control that nobody has read.

    Returns the parts of source "read here" by length, then those of source "control". Of every
    package there are as many members as non-members, in all at most so many `texts` of a length.
    The control sets the same non-members against as many others, so that its AUC shows how far from
    0.5 chance alone goes. Texts keep their line ends: the models have read them verbatim. Documents
    of fewer words are left out. Raises InputError if the corpus stage has not finished.
    """
    experiment.require_corpus()
    sources = (READ_HERE, CONTROL)
    if not is_divided(experiment.corpus):
        return [Part(one, ORIGINAL, n, status=TAKEN_WHOLE) for one in sources for n in lengths]
    documents = [list(side(experiment.corpus)) for side in (members, non_members)]
    parts = []
    for length in lengths:
        read, left = (sample_by_source(d, partial(first_words, count=length)) for d in documents)
        # Twice as many non-members are needed: the control has them on both sides.
        room = {name: min(len(read[name]), len(left[name]) // 2) for name in read if name in left}
        # Packages give one text after the other while they have some left.
        turns = sorted(((i, n) for n in room for i in range(room[n])), key=itemgetter(0))
        counts = Counter(n for _, n in turns[:texts])
        others = [text for n in room for text in left[n][: counts[n]]]
        sides = {READ_HERE: [text for n in room for text in read[n][: counts[n]]]}
        sides[CONTROL] = [text for n in room for text in left[n][counts[n] : 2 * counts[n]]]
        few = f"failed: too few documents of {length} words on both sides; lower `lengths`"
        for source, chosen in sides.items():
            labels = (True,) * len(chosen) + (False,) * len(others)
            status = OK if chosen else few
            parts.append(Part(source, ORIGINAL, length, (*chosen, *others), labels, status))
    return sorted(parts, key=lambda part: sources.index(part.source))


def load_renamed(
    sets: Sequence[str],
    lengths: Sequence[int],
    *,
    texts: int,
    rng: np.random.Generator,
    access: Access = ACCESS,
) -> list[Part]:
    """Open the questions of public sets, and give a random half of them another name.

    Those that are as printed count as members, whether or not a model has read them; of a length
    there are at most so many `texts` on each side. Left out are questions of fewer words, and those
    whose name comes later. `Part.status` says why a set cannot be had.
    """
    opened = load_each(sets, lambda name: access.open_set(name, max_records=None))
    parts = []
    for name, found in opened.items():
        records = () if isinstance(found, str) else found.records
        twins = renamed_twins([str(one.get("question", "")) for one in records], rng=rng)
        for length in lengths:
            cut = [[first_words(text, length) for text in pair] for pair in twins]
            pairs = [(a, b) for a, b in cut if a and b and a != b]
            chosen = [pairs[i] for i in rng.permutation(len(pairs))[: 2 * texts]]
            half = len(chosen) // 2
            written = [a for a, _ in chosen[:half]] + [b for _, b in chosen[half : 2 * half]]
            few = f"failed: no questions of {length} words about one person; lower `lengths`"
            status = found if isinstance(found, str) else OK if half else few
            labels = (True,) * half + (False,) * half
            source = f"{name}, {RENAMED}"
            parts.append(Part(source, ORIGINAL, length, tuple(written), labels, status))
    return parts


def first_words(text: str, count: int) -> str | None:
    """Text up to its `count`-th word as it stands; None if it has fewer words."""
    match = re.match(rf"\s*(?:\S+\s+){{{count - 1}}}\S+", text)
    return match[0] if match else None


def measure(
    experiment: Experiment,
    *,
    models: Sequence[str],
    references: Mapping[str, str],
    lengths: Sequence[int],
    texts: int,
    neighbours: int,
    renamed: Sequence[str] = (),
    access: Access = ACCESS,
) -> dict[str, pd.DataFrame]:
    """Score texts of known membership under the models trained here, and WikiMIA under `models`.

    Tables: `known` (the parts of known membership: source, words, members, texts, status), `cells`
    and `scored` as of `tables_of`, and `blind` (what needs no model, as of `Access.score_blind`).
    The models trained here score WikiMIA, too, where it is at hand, as a control: they have read
    neither side. Without a corpus there is WikiMIA alone, and beside it, where some are named, the
    sets `renamed` as of `load_renamed`.

    `references` are a smaller model for each of some `models`, all by their names. Texts have
    `lengths` words; of a length there are at most so many `texts` of known membership on each side.
    `neighbours` are those of `score_models`.
    """
    names = [*experiment.sizes, "clean"] if experiment.shapes else []
    trained = [ModelEntry(name, str(experiment.model(name))) for name in names]
    here = load_known(experiment, lengths, texts=texts) if trained else []
    yardsticks = {entry.name: trained[0] for entry in trained[1:]}
    public = load_wikimia(lengths, network=bool(models), access=access)
    rng = random_stream(experiment.profile.seed, "renamed questions")
    public += load_renamed(renamed, lengths, texts=texts, rng=rng, access=access)
    named = {name: find_model(name) for name in models}
    smaller = {named[n].name: find_model(o) for n, o in references.items() if n in named}
    folder, seed = parts_of(experiment, "wikimia"), experiment.profile.seed
    unread = [replace(p, source=f"{CONTROL} ({p.source})") for p in public if trained and p.texts]
    settings: Row = {"neighbours": neighbours, "seed": seed, "access": access}
    rows = score_models(trained, here, folder / "known", yardsticks, **settings)
    rows += score_models(list(named.values()), public, folder / "public", smaller, **settings)
    rows += score_models(trained, unread, folder / "controls", yardsticks, **settings)
    cells, scored = tables_of(rows)
    splits = [
        {"texts": p.texts, "members": p.members, "split": p.split, "status": p.status}
        | {"rng": random_stream(seed, "blind baselines of WikiMIA", p.source, p.split)}
        | {"benchmark": p.source}
        for p in [*(p for p in here if p.source == READ_HERE), *public]
    ]
    shown = [(p.source, p.length, sum(p.members), len(p.texts), p.status) for p in here]
    return {
        "known": pd.DataFrame(shown, columns=["source", "words", "members", "texts", "status"]),
        "cells": cells,
        "scored": scored,
        "blind": access.score_blind(splits),
    }


def score_models(
    models: Sequence[ModelEntry],
    parts: Sequence[Part],
    folder: Path,
    references: Mapping[str, ModelEntry],
    *,
    neighbours: int = 0,
    seed: int = 0,
    access: Access = ACCESS,
) -> list[Row]:
    """Score every part under every model, by the scores of Table 1: a row of `CELLS` for each.

    `scored` of a row has a column for each score, its `status` says why there are none. A part that
    cannot be had is one row without a model. `folder` keeps what is scored.

    Parameters
    ----------
    references : name of a model -> the smaller one that "Smaller Ref" compares it with; without
        one it is left out. Two models with one tokenizer are compared by means over tokens, as in
        the paper, others by bytes.
    neighbours : of each text for "Neighbor", with words moved or left out at random where the
        paper asks a masked language model; 0 leaves it out.
    """
    if not models:
        parts = [replace(p, status=NO_MODEL) if p.status == OK else p for p in parts]
    lost = [{**_describe(p), "model": "", "status": p.status} for p in parts if p.status != OK]

    def asked(entry: ModelEntry) -> list[tuple[Row, Part | str]]:
        reference = references[entry.name].name if entry.name in references else ""
        known = {"parameters": entry.parameters, "reference": reference}
        return [(_describe(part) | known, part) for part in parts if part.status == OK]

    def open_model(entry: ModelEntry) -> tuple[tuple[Scorer, Row, Row], Row]:
        scorer, other = access.open_model(entry), None
        known = {"model_revision": scorer.revision} | access.parameters(scorer)
        if reference := references.get(entry.name):
            try:
                other = access.open_model(reference)
            except FAILURES as error:  # the other scores need no reference
                known["reference"] = f"{reference.name} ({status_of(error)})"
        alike = other and scorer.tokenizer.get_vocab() == other.tokenizer.get_vocab()
        settings: Row = {"columns": COLUMNS, "neighbours": neighbours, "seed": seed}
        settings |= {"reference": other, "reference_per": "token" if alike else "byte"}
        return (scorer, settings, {}), known

    def cell(entry: ModelEntry, opened: tuple[Scorer, Row, Row], part: Part) -> Row:
        scorer, settings, known = opened  # a text of several parts is read once
        missing = [text for text in dict.fromkeys(part.texts) if text not in known]
        if missing:
            own = stores_of(folder, entry.name, f"{part.source}-{part.split}")
            found = access.score_texts(own, scorer, missing, **settings)
            found = found[[name for name in SCORES if name in found]]
            known.update(zip(missing, found.to_dict("records"), strict=True))
        scored = pd.DataFrame([known[text] for text in part.texts])
        return {"scored": scored.assign(member=part.members)}

    return lost + grid(models, asked, cell, open_model=open_model)


def tables_of(rows: Sequence[Row]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return tables of rows of `score_models`: cells, numbered through, and their texts.

    The second has the columns cell, member and a column for each score that some cell has.
    """
    numbered = [row | {CELL: i} for i, row in enumerate(rows)]
    cells = pd.DataFrame(numbered, columns=list(CELLS)).astype({"parameters": "Int64"})
    texts = [one["scored"].assign(cell=one[CELL]) for one in numbered if "scored" in one]
    return cells, pd.concat(texts or [pd.DataFrame(columns=[CELL, "member"])], ignore_index=True)


def _describe(part: Part) -> Row:
    known = {key: getattr(part, key) for key in ("source", "variant", "split", "length")}
    return known | {"text_revision": part.revision}
