"""The WikiMIA benchmark: texts that models up to 2023 have read, and texts too young for them.

Shi et al., section 2: members are beginnings of Wikipedia pages created before 2017, non-members
those of pages on events after 2022, each cut to 32, 64, 128 or 256 words. A split holds
`{"input": text, "label": 1 | 0}`, 1 for a member. What `contamination wikimia build` writes has the
same form.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from contamination.errors import InputError
from contamination.files import read_json, sha256_of
from contamination.scoring.status import FAILURES, OK, status_of
from contamination.testsets.cache import Found, fetch, find, kept_at, verified
from contamination.testsets.records import FORMATS, Record, read_records
from contamination.testsets.registry import Entry, Hub

LENGTHS = (32, 64, 128, 256)  # words
ORIGINAL, PARAPHRASED = "original", "paraphrased"
SOURCE = "wikimia"

ORIGINAL_HUB = Hub("swj0419/WikiMIA")
# By the authors of Min-K%++ (Zhang et al., 2025); there is none of 256 words.
PARAPHRASED_HUB = Hub("zjysteven/WikiMIA_paraphrased_perturbed")
PARAPHRASED_LENGTHS = (32, 64, 128)
RECORDS = {32: 776, 64: 542, 128: 250}  # as the card of the hub has them; it leaves out 256

NOT_AT_HAND = (
    "not run here: WikiMIA is neither in the mirror nor in the cache, and no model is named that "
    "it would be fetched for"
)


@dataclass(frozen=True)
class Part:
    """Texts of one length and variant, with who is a member.

    Attributes
    ----------
    source : benchmark that it belongs to. variant : "original" or "paraphrased".
    length : words of a text.
    texts : (n,). members : (n,), True for a text that was read.
    status : "ok", or why there is no text: "not run here: ..." or "failed: ...".
    revision : the hub's commit where it is known, else a checksum of texts and labels.
    """

    source: str
    variant: str
    length: int
    texts: tuple[str, ...] = ()
    members: tuple[bool, ...] = ()
    status: str = OK
    revision: str = ""

    @property
    def split(self) -> str:
        """Name of the split, as the hub has it."""
        return split_name(self.length, self.variant)


def split_name(length: int, variant: str = ORIGINAL) -> str:
    """Name of a split: WikiMIA_length32, or WikiMIA_length32_paraphrased."""
    return f"WikiMIA_length{length}" + (f"_{variant}" if variant != ORIGINAL else "")


def make_part(
    source: str,
    variant: str,
    length: int,
    texts: Sequence[str],
    members: Sequence[bool],
    revision: str = "",
) -> Part:
    """Make a part of texts that are there, named by their checksum where no revision is given."""
    labels = "".join(str(int(member)) for member in members)
    known = revision or f"sha256:{sha256_of(*texts, labels)[:16]}"
    return Part(source, variant, length, tuple(texts), tuple(members), revision=known)


def load_wikimia(
    lengths: Sequence[int] = LENGTHS,
    *,
    mirror: Path | str | None = None,
    network: bool = True,
) -> list[Part]:
    """Load the benchmark: the original texts by length, then the paraphrased ones.

    Each split is looked for in the mirror (`wikimia/WikiMIA_length32.jsonl`), then in the cache,
    then on the hub; what is fetched is recorded with its commit and checksum
    (`contamination.testsets.cache`). No code of a repository is run. A split that cannot be had is
    told in `Part.status`; after one that is out of reach, the hub is not asked again.

    Parameters
    ----------
    mirror : directory of a local mirror; None is that of CONTAMINATION_DATA, else `data`.
    network : False asks the mirror and the cache alone.

    Raises
    ------
    InputError
        No length, or one that the benchmark does not have.
    """
    if not lengths or (unknown := sorted(set(lengths) - set(LENGTHS))):
        raise InputError(
            f"lengths of WikiMIA are {', '.join(map(str, LENGTHS))} words: give some of them, not "
            f"{', '.join(map(str, unknown)) if lengths else 'none'}"
        )
    wanted = [(ORIGINAL, length) for length in lengths]
    wanted += [(PARAPHRASED, length) for length in lengths if length in PARAPHRASED_LENGTHS]
    parts, unreachable = [], "" if network else NOT_AT_HAND
    for variant, length in wanted:
        entry = entry_of_split(length, variant)
        try:
            found = find(entry, mirror)
            if found is None and unreachable:
                parts.append(Part(SOURCE, variant, length, status=unreachable))
                continue
            found = found or Found("cache", fetch(entry))
            records, where = verified(entry, found), str(found.path)
            parts.append(part_of(SOURCE, variant, length, records, where, _commit(entry, found)))
        except FAILURES as error:
            status = status_of(error)
            parts.append(Part(SOURCE, variant, length, status=status))
            unreachable = unreachable or (status if status.startswith("not run") else "")
    return parts


def load_directory(directory: Path | str, lengths: Sequence[int] = LENGTHS) -> list[Part]:
    """Load a set of the same form from a directory, named after it.

    Splits are files such as `WikiMIA_length32.jsonl` (or .csv, .parquet), or those of a clone of
    the hub's repository. Lengths and paraphrased texts that are not there are left out.

    Raises
    ------
    InputError
        No such directory, none of the splits in it, or a malformed one.
    """
    folder = Path(directory)
    if not folder.is_dir():
        raise InputError(f"{folder}: no such directory; give one that holds {split_name(32)}.jsonl")
    parts = []
    for variant in (ORIGINAL, PARAPHRASED):
        for length in lengths:
            split = split_name(length, variant)
            if found := _split_of(folder, split):
                records, where = found
                parts.append(part_of(folder.name, variant, length, records, where))
    if not parts:
        wanted = ", ".join(split_name(length) for length in lengths)
        raise InputError(f"{folder}: none of the splits {wanted}; make them with `wikimia build`")
    return parts


def part_of(
    source: str,
    variant: str,
    length: int,
    records: Sequence[Record],
    where: str,
    revision: str = "",
) -> Part:
    """Make a part of records with the fields `input` and `label`.

    Raises
    ------
    InputError
        A record without text, or with another label than 1 and 0; one class alone.
    """
    texts, members = [], []
    for place, record in records:
        text, label = record.get("input"), str(record.get("label"))
        if not isinstance(text, str) or not text.strip():
            raise InputError(f'{where}, {place}: no text; write {{"input": "...", "label": 1}}')
        if label not in ("0", "1"):
            raise InputError(f"{where}, {place}: label is {label}; write 1 for a member, else 0")
        texts.append(text)
        members.append(label == "1")
    if len(set(members)) != 2:
        held = "members" if any(members) else "non-members"
        raise InputError(f"{where}: {held} alone; an AUC needs both, so add the others or drop it")
    return make_part(source, variant, length, texts, members, revision)


def entry_of_split(length: int, variant: str) -> Entry:
    """Describe a split as the registry describes a test set."""
    split, original = split_name(length, variant), variant == ORIGINAL
    return Entry(
        name=f"{SOURCE}/{split}",
        title=split,
        source=ORIGINAL_HUB if original else PARAPHRASED_HUB,
        split=split,
        licence="MIT" if original else "unknown",
        template=None,
        records=RECORDS.get(length) if original else None,
        checksum=None,
        mirror=f"{SOURCE}/{split}.jsonl",
    )


def _commit(entry: Entry, found: Found) -> str:
    """Commit that a split in the cache was fetched from, if that was recorded."""
    note = kept_at(entry).with_suffix(".source.json")
    known = found.place == "cache" and note.is_file()
    return str(read_json(note).get("commit") or "") if known else ""


def _split_of(folder: Path, split: str) -> tuple[list[Record], str] | None:
    """Records of `<split>.jsonl` or its like, else of the files of a clone, `data/<split>-*`."""
    paths = [folder / f"{split}{suffix}" for suffix in FORMATS]
    found = [path for path in paths if path.is_file()][:1]
    found = found or sorted(folder.glob(f"data/{split}-*.parquet"))
    if not found:
        return None
    return [record for path in found for record in read_records(path)], str(found[0])
