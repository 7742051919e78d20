"""Texts in the layout of WikiMIA whose membership is known, because the models were trained here.

Members are beginnings of documents that the models read once, non-members those of documents of the
same packages that chance left out of the corpus (`contamination.pretraining.members`). So the two
sides differ by membership alone, and not, as in WikiMIA, by their age as well.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle

from contamination.errors import InputError
from contamination.experiments.wikimia.benchmark import LENGTHS, ORIGINAL, Part, make_part
from contamination.pretraining.experiment import Experiment
from contamination.pretraining.members import MEMBERS, NON_MEMBERS, read_documents

READ_HERE = "read here"
CONTROL = "control"

TAKEN_WHOLE = "not run here: the corpus was taken whole, so no text of its kind was left out of it"

Texts = dict[str, list[str]]  # source -> texts


def parts_here(
    experiment: Experiment, lengths: Sequence[int] = LENGTHS, *, texts: int
) -> list[Part]:
    """Cut documents to the benchmark, and to a control in which nobody has read either side.

    Of every package there are as many members as non-members. The control sets the same non-members
    against as many others, so that its AUC shows how far from 0.5 chance alone goes. Texts keep
    their line ends: the models have read them verbatim.

    Parameters
    ----------
    lengths : words of a text; shorter documents are left out of that length.
    texts : most members of a length.

    Returns
    -------
    list of Part
        By length, those of source "read here", then those of source "control".

    Raises
    ------
    InputError
        The corpus stage has not finished, or an argument is below 1.
    """
    if texts < 1 or not lengths or min(lengths) < 1:
        raise InputError(f"lengths {list(lengths)}, texts {texts}: give positive numbers")
    experiment.require_corpus()
    paths = [experiment.corpus / name for name in (MEMBERS, NON_MEMBERS)]
    if not all(path.is_file() for path in paths):
        return [
            Part(source, ORIGINAL, length, status=TAKEN_WHOLE)
            for source in (READ_HERE, CONTROL)
            for length in lengths
        ]
    documents = [list(read_documents(path)) for path in paths]
    parts: dict[str, list[Part]] = {READ_HERE: [], CONTROL: []}
    for length in lengths:
        seen, unseen = (_beginnings(found, length) for found in documents)
        counts = _shared_out(seen, unseen, texts)
        read = [text for name, count in counts.items() for text in seen[name][:count]]
        left = [text for name, count in counts.items() for text in unseen[name][:count]]
        other = [t for name, count in counts.items() for t in unseen[name][count : 2 * count]]
        for source, members in ((READ_HERE, read), (CONTROL, other)):
            labels = [True] * len(members) + [False] * len(left)
            made = make_part(source, ORIGINAL, length, [*members, *left], labels)
            missing = f"failed: too few documents of {length} words on both sides; lower `lengths`"
            parts[source].append(made if left else Part(source, ORIGINAL, length, status=missing))
    return [*parts[READ_HERE], *parts[CONTROL]]


def unread(parts: Sequence[Part]) -> list[Part]:
    """Rename parts of which the models of a run have read nothing: controls, whatever the labels.

    What an AUC on a benchmark of dates shows under such a model is how the dates differ.
    """
    return [replace(part, source=f"{CONTROL} ({part.source})") for part in parts]


def first_words(text: str, count: int) -> str | None:
    """Text up to its `count`-th word as it stands; None if it has fewer words."""
    match = re.match(rf"\s*(?:\S+\s+){{{count - 1}}}\S+", text)
    return match[0] if match else None


def _beginnings(documents: Sequence[tuple[str, str]], length: int) -> Texts:
    found: Texts = {}
    for source, text in documents:
        if (cut := first_words(text, length)) is not None:
            found.setdefault(source, []).append(cut)
    return found


def _shared_out(seen: Texts, unseen: Texts, texts: int) -> dict[str, int]:
    """How many members each package gives, one after the other while it has some left."""
    # Twice as many unseen ones are needed: the control has them on both sides.
    room = {name: min(len(seen[name]), len(unseen[name]) // 2) for name in seen if name in unseen}
    counts = dict.fromkeys(room, 0)
    wanted = min(texts, sum(room.values()))
    for name in cycle(room):
        if sum(counts.values()) == wanted:
            break
        counts[name] += counts[name] < room[name]
    return counts
