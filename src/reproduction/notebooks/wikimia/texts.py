"""Texts of WikiMIA, texts of known membership, and questions about others.

Shi et al., section 2.2: members are beginnings of Wikipedia pages on events that were
created before 2017, non-members those of pages on events of 2023 and later, each cut to
32, 64, 128 or 256 words; a split holds `{"input": text, "label": 1 | 0}`, 1 for a
member. Of known membership are beginnings of documents that the models trained here
read once, and of documents of the same packages that chance left out of the corpus:
those sides differ by membership alone, and not by their age as well. Of public sets,
questions stand against others about somebody else (`renamed`).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from contamination.errors import InputError
from contamination.files import sha256_of
from contamination.scoring.status import OK
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.registry import Entry, Hub
from contamination.testsets.sources import locate
from reproduction.notebooks.wikimia.renamed import renamed_twins
from reproduction.run.corpus import is_divided, members, non_members, sample_by_source
from reproduction.run.experiment import Experiment
from reproduction.run.grid import ACCESS, Access, load_each

LENGTHS = (32, 64, 128, 256)  # words of a text
# Variants.
ORIGINAL = "original"
PARAPHRASED = "paraphrased"
# Sources of texts.
WIKIMIA = "wikimia"
READ_HERE = "read here"
CONTROL = "control"
# ends the source of questions of a public set, half about somebody else
RENAMED = "renamed"
ORIGINAL_HUB = Hub("swj0419/WikiMIA")
# By the authors of Min-K%++ (Zhang et al., 2025); there is none of 256 words.
PARAPHRASED_HUB = Hub("zjysteven/WikiMIA_paraphrased_perturbed")
PARAPHRASED_LENGTHS = (32, 64, 128)
# as the card of the hub has them; it leaves out 256
RECORDS = {32: 776, 64: 542, 128: 250}
LONGEST_RECORDS = 82  # of 256 words
TOKENS_PER_WORD = 1.35  # of English, with punctuation; what a plan reckons with
NOT_AT_HAND = (
    "not run here: WikiMIA is neither in the mirror nor in the cache, and no model is "
    "named that it would be fetched for"
)
TAKEN_WHOLE = "not run here: the corpus was taken whole, so no text of its kind was left out of it"


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
        name = f"WikiMIA_length{self.length}"
        return name if self.variant == ORIGINAL else f"{name}_{self.variant}"

    @property
    def revision(self) -> str:
        """Return the commit, else a checksum of texts and labels; "" without any text."""
        if self.commit or not self.texts:
            return self.commit
        labels = "".join(str(int(member)) for member in self.members)
        return f"sha256:{sha256_of(*self.texts, labels)[:16]}"

    @property
    def entry(self) -> Entry:
        """Return the split as the registry describes a test set."""
        name = f"{WIKIMIA}/{self.split}"
        file = f"{name}.jsonl"
        if self.variant == PARAPHRASED:
            return Entry(name, self.split, PARAPHRASED_HUB, self.split, file)
        return Entry(
            name,
            self.split,
            ORIGINAL_HUB,
            self.split,
            file,
            licence="MIT",
            records=RECORDS.get(self.length),
        )


def load_wikimia(
    lengths: Sequence[int],
    *,
    network: bool,
    access: Access = ACCESS,
) -> list[Part]:
    """Load the original splits of WikiMIA, then the paraphrased ones.

    Each split is looked for in the mirror (`wikimia/WikiMIA_length32.jsonl`), then in
    the cache, then, with `network`, on the hub, which is not asked again after a split
    that is out of reach. `Part.status` says why one is unavailable, or what is wrong
    with its records.

    Parameters
    ----------
    lengths
        Words of a text.
    network
        Whether a split may be fetched.
    access
        Access to the files.
    """

    def is_at_hand(part: Part) -> bool:
        return locate(part.entry) is not None

    def load(part: Part) -> Part | str:
        if not network and not is_at_hand(part):
            return NOT_AT_HAND
        return _read_part(part, access)

    wanted = [Part(WIKIMIA, ORIGINAL, length) for length in lengths]
    for length in lengths:
        if length in PARAPHRASED_LENGTHS:
            wanted.append(Part(WIKIMIA, PARAPHRASED, length))
    parts = []
    for part, loaded in load_each(wanted, load, at_hand=is_at_hand).items():
        if isinstance(loaded, str):
            loaded = replace(part, status=loaded)
        parts.append(loaded)
    return parts


def _read_part(part: Part, access: Access) -> Part:
    """Return a split with its texts.

    Raises InputError, which names the record, for a bad one.
    """
    count = RECORDS.get(part.length, LONGEST_RECORDS)
    tokens = part.length * TOKENS_PER_WORD
    records, where, commit = access.read(part.entry, count, tokens)
    texts = []
    members = []
    for place, record in records:
        text = record.get("input")
        label = str(record.get("label"))
        if not isinstance(text, str) or not text.strip() or label not in ("0", "1"):
            raise InputError(
                f'{where}, {place}: write {{"input": "...", "label": 1}} for a member, else 0',
            )
        texts.append(text)
        members.append(label == "1")
    if len(set(members)) != 2:
        raise InputError(
            f"{where}: members or non-members alone; an AUC needs both sides",
        )
    return replace(part, texts=tuple(texts), members=tuple(members), commit=commit)


def load_known(
    experiment: Experiment,
    lengths: Sequence[int],
    *,
    texts: int,
) -> list[Part]:
    """Cut documents of a run to texts of known membership, and to a control that nobody has read.

    Of every package there are as many members as non-members. The control sets the same
    non-members against as many others, so that its AUC shows how far from 0.5 chance
    alone goes. Texts keep their line ends: the models have read them verbatim.
    Documents of fewer words are left out.

    Parameters
    ----------
    experiment
        The run.
    lengths
        Words of a text.
    texts
        Most texts of a length, on each side.

    Returns
    -------
    parts : of source "read here" by length, then of source "control".

    Raises
    ------
    InputError
        If the corpus stage has not finished.
    """
    experiment.require_corpus()
    if not is_divided(experiment.corpus):
        parts = []
        for source in (READ_HERE, CONTROL):
            parts += [Part(source, ORIGINAL, n, status=TAKEN_WHOLE) for n in lengths]
        return parts
    read_documents = list(members(experiment.corpus))
    unread_documents = list(non_members(experiment.corpus))
    read_parts = []
    control_parts = []
    for length in lengths:
        cut = partial(first_words, count=length)
        read = sample_by_source(read_documents, cut)
        unread = sample_by_source(unread_documents, cut)
        counts = _shared_out(read, unread, texts)
        seen: list[str] = []
        unseen: list[str] = []
        controls: list[str] = []
        for package, count in counts.items():
            seen += read[package][:count]
            unseen += unread[package][:count]
            controls += unread[package][count : 2 * count]
        read_parts.append(_known_part(READ_HERE, length, seen, unseen))
        control_parts.append(_known_part(CONTROL, length, controls, unseen))
    return read_parts + control_parts


def _shared_out(
    read: Mapping[str, Sequence[str]],
    unread: Mapping[str, Sequence[str]],
    texts: int,
) -> dict[str, int]:
    """Return how many texts each package gives: one after the other while they have some left."""
    # Twice as many non-members are needed: the control has them on both sides.
    room = {
        package: min(len(read[package]), len(unread[package]) // 2)
        for package in read
        if package in unread
    }
    counts = dict.fromkeys(room, 0)
    left = texts
    for turn in range(max(room.values(), default=0)):
        for package in room:
            if turn < room[package] and left > 0:
                counts[package] += 1
                left -= 1
    return counts


def _known_part(source: str, length: int, seen: list[str], unseen: list[str]) -> Part:
    """Return texts of known membership, or the reason why there are none."""
    status = OK
    if not seen:
        status = f"failed: too few documents of {length} words on both sides; lower `lengths`"
    labels = (True,) * len(seen) + (False,) * len(unseen)
    return Part(source, ORIGINAL, length, (*seen, *unseen), labels, status)


def load_renamed(
    sets: Sequence[str],
    lengths: Sequence[int],
    *,
    texts: int,
    rng: np.random.Generator,
    access: Access = ACCESS,
) -> list[Part]:
    """Open the questions of public sets, and give a random half of them another name.

    Those that are as printed count as members, whether or not a model has read them.
    Left out are questions of fewer words, and those whose name comes later.
    `Part.status` says why a set is unavailable.

    Parameters
    ----------
    sets
        Names of the sets.
    lengths
        Words of a text.
    texts
        Most texts of a length, on each side.
    rng
        Draws the names, and the questions that get another one.
    access
        Access to the sets.
    """

    def load(name: str) -> ExampleSet:
        return access.open_set(name, max_records=None)

    parts = []
    for name, opened in load_each(sets, load).items():
        questions: list[str] = []
        if not isinstance(opened, str):
            questions = [str(record.get("question", "")) for record in opened.records]
        twins = renamed_twins(questions, rng=rng)
        for length in lengths:
            part = _renamed_part(name, length, twins, texts, rng=rng)
            if isinstance(opened, str):
                part = replace(part, status=opened)
            parts.append(part)
    return parts


def _renamed_part(
    name: str,
    length: int,
    twins: Sequence[tuple[str, str]],
    texts: int,
    *,
    rng: np.random.Generator,
) -> Part:
    """Draw questions of a length; half are as printed, half about somebody else."""
    pairs = []
    for printed, renamed in twins:
        printed_words = first_words(printed, length)
        renamed_words = first_words(renamed, length)
        if printed_words and renamed_words and printed_words != renamed_words:
            pairs.append((printed_words, renamed_words))
    chosen = [pairs[i] for i in rng.permutation(len(pairs))[: 2 * texts]]
    half = len(chosen) // 2
    as_printed = [printed for printed, _ in chosen[:half]]
    about_others = [renamed for _, renamed in chosen[half : 2 * half]]
    status = OK
    if not half:
        status = f"failed: no questions of {length} words about one person; lower `lengths`"
    labels = (True,) * half + (False,) * half
    source = f"{name}, {RENAMED}"
    return Part(source, ORIGINAL, length, (*as_printed, *about_others), labels, status)


def first_words(text: str, count: int) -> str | None:
    """Return a text up to its `count`-th word as it stands.

    It is None if the text has fewer words.
    """
    match = re.match(rf"\s*(?:\S+\s+){{{count - 1}}}\S+", text)
    return match[0] if match else None
