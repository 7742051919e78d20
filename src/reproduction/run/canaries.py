"""Canary test sets: records made from packages that the training corpus holds out.

Oren (section 4.1, Table 3) inject ten test sets into the pre-training data, short,
medium and long ones by their tokens in all. Here the records come from the docstrings
of packages that are *not* in the corpus, no docstring serves two sets, and all are
shuffled once with a fixed seed, so the examples of a set are exchangeable by
construction: the only thing that can make the canonical order likely is having read it.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from contamination.errors import InputError
from contamination.randomness import random_stream
from reproduction.run.corpus import Docstring, harvest
from reproduction.run.profile import CanarySpec

Record = dict[str, str]
# folder of the corpus: records that no set holds, a file for each kind
LEFT = "left_over"


def _summary(text: str) -> str:
    first_paragraph = text.split("\n\n", 1)[0]
    return " ".join(first_paragraph.split())


def _signature(document: Docstring) -> Record | None:
    summary = _summary(document.text)
    if not document.signature or not 30 <= len(summary) <= 120:
        return None
    name = document.name.rpartition(".")[2]
    return {"name": name, "signature": document.signature, "summary": summary}


def _question(document: Docstring) -> Record | None:
    summary = _summary(document.text)
    if not document.signature or not 60 <= len(summary) <= 240:
        return None
    return {"question": f"What does {document.name} do?", "answer": summary}


# A numpydoc entry: "name : type", then an indented description.
_PARAMETER = re.compile(r"^(\w+) : ([^\n]{3,60})\n((?:[ ]{4}[^\n]+\n?)+)", re.MULTILINE)


def _parameter(document: Docstring) -> Record | None:
    for name, kind, block in _PARAMETER.findall(document.text):
        description = " ".join(block.split())
        if 60 <= len(description) <= 260:
            return {
                "function": document.name.rpartition(".")[2],
                "parameter": name,
                "type": kind.strip(),
                "description": description,
            }
    return None


def _entry(document: Docstring, *, shortest: int, longest: int) -> Record | None:
    """Take whole paragraphs from the start of a docstring, within the limits."""
    text = ""
    for paragraph in document.text.split("\n\n"):
        with_paragraph = f"{text}\n\n{paragraph}".strip()
        if len(with_paragraph) > longest:
            break
        text = with_paragraph
    if len(text) < shortest:
        return None
    return {"name": document.name, "text": text}


def _medium_entry(document: Docstring) -> Record | None:
    return _entry(document, shortest=150, longest=300)


def _long_entry(document: Docstring) -> Record | None:
    return _entry(document, shortest=380, longest=600)


@dataclass(frozen=True)
class Kind:
    """A kind of records: its template, and the function that makes them.

    `make_record` takes a docstring and returns a record, or None if it cannot become
    one.
    """

    template: str
    make_record: Callable[[Docstring], Record | None]


KINDS: dict[str, Kind] = {
    "signature": Kind(template="signature/1", make_record=_signature),
    "question": Kind(template="question/1", make_record=_question),
    "parameter": Kind(template="parameter/1", make_record=_parameter),
    "medium": Kind(template="entry/1", make_record=_medium_entry),
    "long": Kind(template="entry/1", make_record=_long_entry),
}


class RecordPool:
    """Records of several kinds, made of docstrings of which each serves once.

    Packages repeat a docstring across classes, so docstrings with one summary count as
    one.
    """

    def __init__(self) -> None:
        self.records: dict[str, list[Record]] = {}
        self._used_summaries: set[str] = set()

    def add(self, kind: str, document: Docstring) -> bool:
        """Make a record of a docstring if it is unused; return whether it was made."""
        summary = _summary(document.text).lower()
        if summary in self._used_summaries:
            return False
        record = KINDS[kind].make_record(document)
        if record is None:
            return False
        self._used_summaries.add(summary)
        self.records[kind].append(record)
        return True

    def kinds_by_size(self) -> list[str]:
        """Return the kinds, the one with the fewest records first."""
        return sorted(self.records, key=lambda kind: len(self.records[kind]))


def build_canaries(
    packages: list[str], specs: list[CanarySpec], *, seed: int
) -> tuple[dict[str, list[Record]], dict[str, list[Record]]]:
    """Draw the records of every canary set, and the records left over.

    All records of a kind are shuffled together and then dealt out, so those of its sets
    and those that are left over are exchangeable.

    Parameters
    ----------
    packages
        Installed distributions whose docstrings become records.
    specs
        The canary sets, each of one of `KINDS`.
    seed
        Of the run; the draw has a stream of its own.

    Returns
    -------
    sets : name of a set -> its records in canonical order.
    left_over : kind -> records of the same kinds that no set holds.

    Raises
    ------
    InputError
        If the packages hold too few docstrings for a set.
    """
    rng = random_stream(seed, "canaries")
    documents = _named_docstrings(packages)
    pool = RecordPool()
    # First every kind gets as many as its sets want, then the rest, the kind with the
    # fewest first.
    for spec in specs:
        _add_records_of_set(pool, spec, documents, packages, rng=rng)
    for index in rng.permutation(len(documents)):
        for kind in pool.kinds_by_size():
            if pool.add(kind, documents[index]):
                break
    # What many classes repeat is met early in a draw, so the order of drawing means
    # something; this shuffle is what makes the sets, and what is left over,
    # exchangeable.
    left_over: dict[str, list[Record]] = {}
    for kind, records in pool.records.items():
        left_over[kind] = [records[i] for i in rng.permutation(len(records))]
    sets: dict[str, list[Record]] = {}
    for spec in specs:
        kind = str(spec.kind)
        sets[spec.name] = left_over[kind][: spec.examples]
        left_over[kind] = left_over[kind][spec.examples :]
    return sets, left_over


def _named_docstrings(packages: list[str]) -> list[Docstring]:
    """Return the docstrings that have a name and ASCII characters alone."""
    documents = []
    for package in packages:
        for document in harvest(package):
            if document.name and document.text.isascii():
                documents.append(document)
    return documents


def _add_records_of_set(
    pool: RecordPool,
    spec: CanarySpec,
    documents: list[Docstring],
    packages: list[str],
    *,
    rng: np.random.Generator,
) -> None:
    """Draw docstrings until the pool has the records of a kind that a set wants."""
    kind = str(spec.kind)
    records = pool.records.setdefault(kind, [])
    wanted = len(records) + spec.examples
    for index in rng.permutation(len(documents)):
        if len(records) == wanted:
            break
        pool.add(kind, documents[index])
    missing = wanted - len(records)
    if missing:
        raise InputError(
            f"canary set {spec.name}: only {spec.examples - missing} records of kind "
            f"{kind} are left in {', '.join(packages)}, {spec.examples} wanted; lower "
            "`examples` or add a held-out package"
        )
