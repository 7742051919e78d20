"""The nine domains of the Pile, as the public set `llm_dataset_inference` has them.

Fu et al. ask released models about 1,000 texts each of the training and the test split
of nine domains of the Pile, from a copy of hundreds of gigabytes. The public set here
(Maini et al., 2024) has 2,000 of the training and of the validation split; by the code
that made it, texts are pieces of 512 tokens (64 of Enron Emails), and members were cut
from longer documents than non-members. It was not at hand here: files, fields and
numbers are those of its page on the hub, or of public code that reads them. No licence
is known.
"""

from dataclasses import dataclass
from typing import NamedTuple

from contamination.errors import InputError
from contamination.scoring.status import OK
from contamination.testsets.registry import Entry, Hub
from contamination.testsets.sources import locate
from reproduction.run.grid import ACCESS, Access, load_each

PIECE = 512  # tokens to which the code behind the public set cut its texts
# As Tables 7 to 13 call them, in their order.
DOMAINS = (
    "Github",
    "FreeLaw",
    "Enron Emails",
    "ArXiv",
    "OpenWebText2",
    "OpenSubtitles",
    "HackerNews",
    "YoutubeSubtitles",
    "Pile-CC",
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
    status: str = OK  # or the reason why there is no text


def load_public(
    *,
    length: int,
    texts: int,
    access: Access = ACCESS,
) -> list[PublicDomain]:
    """Load the nine domains of the public set; a reason stands for an unavailable one.

    Each split is looked for in the mirror (such as
    `llm_dataset_inference/github/train.jsonl`), then in the cache, then on the hub,
    which is not asked again after a domain that is out of reach.

    Parameters
    ----------
    length, texts
        Tokens of a text, and texts on each side, with which a plan without the files
        reckons.
    access
        Access to the files.
    """

    def load(domain: str) -> PublicDomain:
        members, non_members = (
            _public_side(entry, texts=texts, length=length, access=access)
            for entry in _public_files(domain)
        )
        return PublicDomain(domain, members.texts, non_members.texts, non_members.commit)

    def is_at_hand(domain: str) -> bool:
        return all(locate(entry) is not None for entry in _public_files(domain))

    loaded = load_each(DOMAINS, load, at_hand=is_at_hand)
    domains = []
    for name, domain in loaded.items():
        if isinstance(domain, str):
            domain = PublicDomain(name, status=domain)
        domains.append(domain)
    return domains


def _public_files(domain: str) -> list[Entry]:
    """Return the files of a domain as registered test sets, members first."""
    configuration = CONFIGURATIONS[domain]
    source = Hub(REPOSITORY, configuration)
    entries = []
    for split in SPLITS:
        name = f"{PUBLIC}/{configuration}/{split}"
        entries.append(Entry(name, name, source, split, f"{name}.jsonl"))
    return entries


class _PublicSide(NamedTuple):
    """Texts of one split, and the commit that they come from."""

    texts: tuple[str, ...]
    commit: str


def _public_side(
    entry: Entry,
    *,
    texts: int,
    length: int,
    access: Access,
) -> _PublicSide:
    """Read the texts of a file.

    Raises InputError, which names the record, for one without text.
    """
    records, where, commit = access.read(entry, texts, length)
    for place, record in records:
        if not isinstance(record.get("text"), str):
            raise InputError(f'{where}, {place}: no text; write {{"text": "..."}}')
    return _PublicSide(tuple(record["text"] for _, record in records), commit)
