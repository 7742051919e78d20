"""Members and non-members: documents kept for membership inference by the corpus stage.

Where only a part of the documents becomes the corpus, the rest is text of the same sources that no
model reads. A document is kept, on either side, if its first paragraph stands in no other document
that was found. This is decided before chance divides them, so that but for the training the two
sides are alike; near-copies of a document that was read are in neither.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from contamination.files import write_text
from contamination.pretraining.documents import Document

MEMBERS, NON_MEMBERS = "members.jsonl", "non_members.jsonl"
KEPT = 600  # documents of a source, on either side


def keep_comparable(
    taken: Sequence[Document], left: Sequence[Document], directory: Path, *, kept: int = KEPT
) -> None:
    """Write `members.jsonl` and `non_members.jsonl`: the first of each source.

    Parameters
    ----------
    taken, left : documents of the corpus, and those that were found and left out, each in random
        order.
    kept : most documents of a source in a file.
    """
    times = Counter(first_paragraph(text) for _, text in (*taken, *left))
    for name, documents in ((MEMBERS, taken), (NON_MEMBERS, left)):
        count: Counter[str] = Counter()
        lines = []
        for source, text in documents:
            if times[first_paragraph(text)] == 1 and count[source] < kept:
                count[source] += 1
                line = json.dumps({"source": source, "text": text}, ensure_ascii=False)
                lines.append(line + "\n")
        write_text(directory / name, "".join(lines))


def forget_comparable(directory: Path) -> None:
    """Remove what an earlier corpus has left, where all documents are read."""
    for name in (MEMBERS, NON_MEMBERS):
        (directory / name).unlink(missing_ok=True)


def read_documents(path: Path) -> Iterator[Document]:
    """Yield (source, text) of a file of the corpus stage."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            document = json.loads(line)
            yield document["source"], document["text"]


def first_paragraph(text: str) -> str:
    """Text up to the first empty line, in lower case and with single blanks."""
    return " ".join(text.partition("\n\n")[0].lower().split())
