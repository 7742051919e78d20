"""Texts that models have read, and texts that they cannot have read: WikiMIA and sets like it.

Shi et al., section 2.2: members are beginnings of Wikipedia pages on events that were created
before 2017, non-members those of pages on events of 2023 and later, each cut to 32, 64, 128 or 256
words. A split holds `{"input": text, "label": 1 | 0}`, 1 for a member; so do the sets
that `contamination wikimia build` writes, and the texts of known membership: there, members are
beginnings of documents that the models trained here read once, and non-members those of documents
of the same packages that chance left out of the corpus. Those sides differ by membership alone, and
not by their age as well.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle
from pathlib import Path

from contamination.errors import InputError
from contamination.files import sha256_of
from contamination.membership.dated_pages import LENGTHS, ORIGINAL, PARAPHRASED, split_name
from contamination.scoring.status import OK
from contamination.testsets.records import FORMATS, Record, read_records
from contamination.testsets.registry import Entry, Hub
from contamination.testsets.sources import locate
from reproduction.run.experiment import Experiment
from reproduction.run.grid import ACCESS, Access, load_each, placeholders
from reproduction.run.members import is_divided, members, non_members, sample_by_source

WIKIMIA, READ_HERE, CONTROL = "wikimia", "read here", "control"  # sources of texts

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
NOT_AT_HAND = (
    "not run here: WikiMIA is neither in the mirror nor in the cache, and no model is named that "
    "it would be fetched for"
)
TAKEN_WHOLE = "not run here: the corpus was taken whole, so no text of its kind was left out of it"


@dataclass(frozen=True)
class Part:
    """Texts of one length and variant, with who is a member.

    Attributes
    ----------
    source : benchmark that it belongs to. variant : "original" or "paraphrased".
    length : words of a text. texts, members : (n,) each; True for a text that was read.
    status : "ok", or why there is no text: "not run here: ..." or "failed: ...".
    commit : of the hub, where it is known.
    """

    source: str
    variant: str
    length: int
    texts: tuple[str, ...] = ()
    members: tuple[bool, ...] = ()
    status: str = OK
    commit: str = ""

    @property
    def split(self) -> str:
        """Name of the split, as the hub has it."""
        return split_name(self.length, self.variant)

    @property
    def revision(self) -> str:
        """The commit, else a checksum of texts and labels; "" without any text."""
        if self.commit or not self.texts:
            return self.commit
        labels = "".join(str(int(member)) for member in self.members)
        return f"sha256:{sha256_of(*self.texts, labels)[:16]}"


def load_wikimia(
    lengths: Sequence[int] = LENGTHS, *, network: bool = True, access: Access = ACCESS
) -> list[Part]:
    """Load the benchmark: the original texts by length, then the paraphrased ones.

    Each split is looked for in the mirror (`wikimia/WikiMIA_length32.jsonl`), then in the cache,
    then on the hub; what is fetched is recorded with its commit and checksum
    (`contamination.testsets.sources`). No code of a repository is run. `Part.status` says why a
    split cannot be had; after one that is out of reach, the hub is not asked again, and without
    `network` not at all. Raises InputError without a length, or for one that the benchmark lacks.
    """
    if not lengths or (unknown := sorted(set(lengths) - set(LENGTHS))):
        raise InputError(
            f"lengths of WikiMIA are {', '.join(map(str, LENGTHS))} words: give some of them, not "
            f"{', '.join(map(str, unknown)) if lengths else 'none'}"
        )
    wanted = [(ORIGINAL, length) for length in lengths]
    wanted += [(PARAPHRASED, length) for length in lengths if length in PARAPHRASED_LENGTHS]

    def load(key: tuple[str, int]) -> Part | str:
        variant, length = key
        entry, records = _entry(length, variant), RECORDS.get(length, LONGEST_RECORDS)
        if not network and locate(entry) is None:
            return NOT_AT_HAND
        tokens, mark = length * TOKENS_PER_WORD, " " if variant == ORIGINAL else "'"
        expected = partial(placeholders, records, tokens, "input", mark=mark, label=(1, 0))
        found, where, commit = access.read(entry, expected)
        return replace(_filled(Part(WIKIMIA, variant, length), found, where), commit=commit)

    found = load_each(wanted, load, at_hand=lambda key: locate(_entry(key[1], key[0])) is not None)
    return [
        Part(WIKIMIA, *key, status=one) if isinstance(one, str) else one
        for key, one in found.items()
    ]


def load_directory(directory: Path | str, lengths: Sequence[int] = LENGTHS) -> list[Part]:
    """Load a set of the same form from a directory, named after it.

    Splits are files such as `WikiMIA_length32.jsonl` (or .csv, .parquet), or those of a clone of
    the hub's repository (`data/WikiMIA_length32-*.parquet`). Lengths and paraphrased texts that are
    not there are left out. Raises InputError without the directory, without any of the splits in
    it, and for a malformed one.
    """
    folder = Path(directory)
    if not folder.is_dir():
        raise InputError(f"{folder}: no such directory; give one that holds {split_name(32)}.jsonl")
    parts = []
    for variant in (ORIGINAL, PARAPHRASED):
        for length in lengths:
            split = split_name(length, variant)
            paths = [p for suffix in FORMATS if (p := folder / f"{split}{suffix}").is_file()][:1]
            if paths := paths or sorted(folder.glob(f"data/{split}-*.parquet")):
                records = [record for path in paths for record in read_records(path)]
                parts.append(_filled(Part(folder.name, variant, length), records, str(paths[0])))
    if not parts:
        wanted = ", ".join(split_name(length) for length in lengths)
        raise InputError(f"{folder}: none of the splits {wanted}; make them with `wikimia build`")
    return parts


def load_known(
    experiment: Experiment, lengths: Sequence[int] = LENGTHS, *, texts: int
) -> list[Part]:
    """Cut documents of a run to texts of known membership, and to a control that nobody has read.

    Returns the parts of source "read here" by length, then those of source "control". Of every
    package there are as many members as non-members. The control sets the same non-members against
    as many others, so that its AUC shows how far from 0.5 chance alone goes. Texts keep their line
    ends: the models have read them verbatim. A length has at most `texts` members, and leaves out
    documents of fewer words. Raises InputError if the corpus stage has not finished, or an argument
    is below 1.
    """
    if texts < 1 or not lengths or min(lengths) < 1:
        raise InputError(f"lengths {list(lengths)}, texts {texts}: give positive numbers")
    experiment.require_corpus()
    parts: dict[str, list[Part]] = {READ_HERE: [], CONTROL: []}
    if not is_divided(experiment.corpus):
        whole = [Part("", ORIGINAL, length, status=TAKEN_WHOLE) for length in lengths]
        return [replace(part, source=source) for source in parts for part in whole]
    documents = [list(side(experiment.corpus)) for side in (members, non_members)]
    for length in lengths:
        cut_there = partial(first_words, count=length)
        read, left = (sample_by_source(found, cut_there) for found in documents)
        sides: dict[str, list[str]] = {READ_HERE: [], CONTROL: []}
        others: list[str] = []
        for name, count in _share_out(read, left, texts).items():
            sides[READ_HERE] += read[name][:count]
            others += left[name][:count]
            sides[CONTROL] += left[name][count : 2 * count]
        few = f"failed: too few documents of {length} words on both sides; lower `lengths`"
        for source, chosen in sides.items():
            labels = (True,) * len(chosen) + (False,) * len(others)
            cut, status = (*chosen, *others), OK if chosen else few
            parts[source].append(Part(source, ORIGINAL, length, cut, labels, status))
    return [*parts[READ_HERE], *parts[CONTROL]]


def as_controls(parts: Sequence[Part]) -> list[Part]:
    """Rename parts of which the models of a run have read nothing, whatever the labels.

    What an AUC on a benchmark of dates shows under such a model is how the dates differ.
    """
    return [replace(part, source=f"{CONTROL} ({part.source})") for part in parts]


def first_words(text: str, count: int) -> str | None:
    """Text up to its `count`-th word as it stands; None if it has fewer words."""
    match = re.match(rf"\s*(?:\S+\s+){{{count - 1}}}\S+", text)
    return match[0] if match else None


def _share_out(
    read: dict[str, list[str]], left: dict[str, list[str]], texts: int
) -> dict[str, int]:
    """How many members each package gives, one after the other while it has some left."""
    # Twice as many non-members are needed: the control has them on both sides.
    room = {name: min(len(read[name]), len(left[name]) // 2) for name in read if name in left}
    counts = dict.fromkeys(room, 0)
    wanted = min(texts, sum(room.values()))
    for name in cycle(room):
        if sum(counts.values()) == wanted:
            break
        counts[name] += counts[name] < room[name]
    return counts


def _filled(part: Part, records: Sequence[Record], where: str) -> Part:
    """Fill a part with records of the fields `input` and `label`; `InputError` for others."""
    texts, labels = [], []
    for place, record in records:
        text, label = record.get("input"), str(record.get("label"))
        if not isinstance(text, str) or not text.strip():
            raise InputError(f'{where}, {place}: no text; write {{"input": "...", "label": 1}}')
        if label not in ("0", "1"):
            raise InputError(f"{where}, {place}: label is {label}; write 1 for a member, else 0")
        texts.append(text)
        labels.append(label == "1")
    if len(set(labels)) != 2:
        held = "members" if any(labels) else "non-members"
        raise InputError(f"{where}: {held} alone; an AUC needs both, so add the others or drop it")
    return replace(part, texts=tuple(texts), members=tuple(labels))


def _entry(length: int, variant: str) -> Entry:
    """Describe a split as the registry describes a test set."""
    split, original = split_name(length, variant), variant == ORIGINAL
    return Entry(
        name=f"{WIKIMIA}/{split}",
        title=split,
        source=ORIGINAL_HUB if original else PARAPHRASED_HUB,
        split=split,
        licence="MIT" if original else "unknown",
        template=None,
        records=RECORDS.get(length) if original else None,
        checksum=None,
        mirror=f"{WIKIMIA}/{split}.jsonl",
    )
