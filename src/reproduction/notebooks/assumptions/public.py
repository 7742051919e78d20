"""Public sets of members and non-members of the Pile by domain, for models that have read the Pile.

Fu et al. sample 1,000 texts of the training split and as many of the test split of nine domains of
the Pile, from a copy of hundreds of gigabytes (`ArmelR/the-pile-splitted`). Two sets that one can
fetch whole hold texts of both sides by domain:

- `llm_dataset_inference` (Maini et al., 2024): 2,000 texts of the training split and as many of the
  validation split, of all nine domains. By the code that made it, texts are pieces of 512 tokens
  (64 of Enron Emails), and members were cut from longer documents than non-members.
- `mimir` (Duan et al., 2024): up to 1,000 texts of 100 to 200 words of either split, of four of the
  nine domains and of three others; non-members of which at least 80% of the 13-grams are in the
  training split were left out. The hub gives it to accounts that have asked for access.

Neither was at hand here: files, fields and numbers are those of the pages of the hub, or of public
code that reads them. No licence of either is known.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from contamination.errors import InputError
from contamination.scoring.status import FAILURES, OK, status_of
from contamination.testsets.records import Record
from contamination.testsets.registry import Entry, Hub, unregistered
from contamination.testsets.sources import cache_path, fetch, locate, read_origin, read_verified

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


def load_public(name: str, *, mirror: Path | str | None = None) -> list[PublicDomain]:
    """Load the domains of one of `SETS`: the nine of Fu et al. in their order, then any others.

    Each split is looked for in the mirror (such as `mimir/github/train.jsonl`), then in the cache,
    then on the hub; what is fetched is recorded with its commit and checksum
    (`contamination.testsets.sources`). No code of a repository is run. `PublicDomain.status` says
    why a domain cannot be had; after one that is out of reach, the hub is not asked again. Raises
    InputError for an unknown set.
    """
    if name not in SETS:
        raise InputError(f"public is {name!r}: give one of {', '.join(SETS)}")
    found: list[PublicDomain] = []
    unreachable = ""
    for domain in dict.fromkeys([*DOMAINS, *SETS[name].domains]):
        if domain not in SETS[name].domains:
            status = f"not asked: {name} has no texts of this domain"
            found.append(PublicDomain(domain, status=status))
            continue
        found.append(_load(name, domain, mirror, unreachable))
        if found[-1].status.startswith("not run"):
            unreachable = unreachable or f"not run here: the hub was out of reach for {domain}"
    return found


def _load(name: str, domain: str, mirror: Path | str | None, unreachable: str) -> PublicDomain:
    """Load a domain; where the hub is `unreachable` (why), from the mirror or the cache."""
    public = SETS[name]
    sides: list[tuple[str, ...]] = []
    commit = ""
    try:
        for split in (public.members, public.non_members):
            entry = _entry(name, domain, split)
            path = locate(entry, mirror)
            if path is None and unreachable:
                return PublicDomain(domain, status=unreachable)
            path = path or fetch(entry)
            sides.append(_texts(read_verified(entry, path), str(path)))
            if path == cache_path(entry):
                commit = read_origin(path).get("commit") or ""
    except FAILURES as error:
        return PublicDomain(domain, status=status_of(error))
    return PublicDomain(domain, sides[0], sides[1], commit=commit)


def _texts(records: Sequence[Record], where: str) -> tuple[str, ...]:
    for place, record in records:
        if not isinstance(record.get("text"), str):
            raise InputError(f'{where}, {place}: no text; write {{"text": "..."}}')
    return tuple(record["text"] for _, record in records)


def _entry(name: str, domain: str, split: str) -> Entry:
    """Describe a split of a domain as the registry describes a test set."""
    label = f"{name}/{SETS[name].domains[domain]}/{split}"
    return unregistered(label, SETS[name].hub(domain, split), split, mirror=f"{label}.jsonl")
