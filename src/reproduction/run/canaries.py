"""Canary test sets: records made from packages that the training corpus holds out.

Oren (section 4.1, Table 3) inject ten test sets into the pre-training data, short, medium and long
ones by their tokens in all. Here the records come from the docstrings of packages that are *not* in
the corpus, no docstring serves two sets, and all are shuffled once with a fixed seed, so the
examples of a set are exchangeable by construction: the only thing that can make the canonical order
likely is having read it.
"""

import re
from collections.abc import Callable

from contamination.errors import InputError
from contamination.randomness import random_stream
from reproduction.run.corpus import Docstring, harvest
from reproduction.run.profile import CanarySpec

Record = dict[str, str]
LEFT = "left_over"  # folder of the corpus: what no set holds, a file a kind


def _summary(text: str) -> str:
    return " ".join(text.split("\n\n", 1)[0].split())


def _signature(document: Docstring) -> Record | None:
    name, summary = document.name.rpartition(".")[2], _summary(document.text)
    wanted = document.signature and 30 <= len(summary) <= 120
    shown = {"name": name, "signature": document.signature, "summary": summary}
    return shown if wanted else None


def _question(document: Docstring) -> Record | None:
    summary = _summary(document.text)
    wanted = document.signature and 60 <= len(summary) <= 240
    shown = {"question": f"What does {document.name} do?", "answer": summary}
    return shown if wanted else None


# A numpydoc entry: "name : type", then an indented description.
_PARAMETER = re.compile(r"^(\w+) : ([^\n]{3,60})\n((?:[ ]{4}[^\n]+\n?)+)", re.MULTILINE)


def _parameter(document: Docstring) -> Record | None:
    for name, kind, block in _PARAMETER.findall(document.text):
        description = " ".join(block.split())
        if 60 <= len(description) <= 260:
            function = document.name.rpartition(".")[2]
            shown = {"function": function, "parameter": name, "type": kind.strip()}
            return shown | {"description": description}
    return None


def _entry(shortest: int, longest: int) -> Callable[[Docstring], Record | None]:
    """Whole paragraphs from the start of the docstring, `shortest` to `longest` characters."""

    def make(document: Docstring) -> Record | None:
        text = ""
        for paragraph in document.text.split("\n\n"):
            grown = f"{text}\n\n{paragraph}".strip()
            if len(grown) > longest:
                break
            text = grown
        return {"name": document.name, "text": text} if len(text) >= shortest else None

    return make


# Kind -> template, and what makes a record of a docstring; None of one that cannot become one.
KINDS: dict[str, tuple[str, Callable[[Docstring], Record | None]]] = {
    "signature": ("signature/1", _signature),
    "question": ("question/1", _question),
    "parameter": ("parameter/1", _parameter),
    "medium": ("entry/1", _entry(150, 300)),
    "long": ("entry/1", _entry(380, 600)),
}


def build_canaries(
    packages: list[str], specs: list[CanarySpec], *, seed: int
) -> tuple[dict[str, list[Record]], dict[str, list[Record]]]:
    """Draw the records of every canary set, without sharing a docstring, and what is left of them.

    Returns (sets, left): name of a set -> its records in canonical order, and kind -> records of
    the same kinds that no set holds. All records of a kind are shuffled together and then dealt
    out, so those of its sets and those that are left are exchangeable. Raises InputError if the
    packages hold too few docstrings for a set.
    """
    rng = random_stream(seed, "canaries")
    pool = [d for package in packages for d in harvest(package) if d.name and d.text.isascii()]
    records: dict[str, list[Record]] = {}
    taken: set[str] = set()

    def take(kind: str, document: Docstring) -> bool:
        # Packages repeat a docstring across classes; by its summary it is used only once.
        key = _summary(document.text).lower()
        if key in taken or (record := KINDS[kind][1](document)) is None:
            return False
        taken.add(key)
        records[kind].append(record)
        return True

    # First every kind gets as many as its sets want, then the rest, the kind with the fewest first.
    for spec in specs:
        kind = str(spec.kind)
        wanted = len(records.setdefault(kind, [])) + spec.examples
        for index in rng.permutation(len(pool)):
            if len(records[kind]) == wanted:
                break
            take(kind, pool[index])
        if short := wanted - len(records[kind]):
            raise InputError(
                f"canary set {spec.name}: only {spec.examples - short} records of kind {kind} "
                f"are left in {', '.join(packages)}, {spec.examples} wanted; lower `examples` or "
                "add a held-out package"
            )
    for index in rng.permutation(len(pool)):
        for kind in sorted(records, key=lambda kind: len(records[kind])):
            if take(kind, pool[index]):
                break
    # What many classes repeat is met early in a draw, so the order of drawing means something;
    # this shuffle is what makes the sets, and what is left, exchangeable.
    left = {kind: [of[i] for i in rng.permutation(len(of))] for kind, of in records.items()}
    sets: dict[str, list[Record]] = {}
    for spec in specs:
        kind = str(spec.kind)
        sets[spec.name], left[kind] = left[kind][: spec.examples], left[kind][spec.examples :]
    return sets, left
