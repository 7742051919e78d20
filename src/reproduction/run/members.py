"""Members and non-members: documents whose membership is known, for membership inference.

Where only a part of the documents becomes the corpus, the rest is text of the same sources that no
model reads. The corpus stage keeps documents of both sides: those whose first paragraph stands in
no other document that was found. This is decided before chance divides them, so that but for the
training the two sides are alike; near-copies of a document that was read are in neither.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from contamination.files import write_text
from reproduction.run.corpus import Document

T = TypeVar("T")

MEMBERS, NON_MEMBERS = "members.jsonl", "non_members.jsonl"
DOCUMENTS = "documents.jsonl"  # the whole corpus
KEPT = 600  # documents of a source, on either side


def write_comparable(
    read: Sequence[Document], unread: Sequence[Document], corpus: Path, *, kept: int = KEPT
) -> None:
    """Write members and non-members: the first `kept` documents of each source, in their order.

    `read` are the documents of the corpus and `unread` the rest of those found, in random order.
    """
    times = Counter(first_paragraph(text) for _, text in (*read, *unread))
    for name, documents in ((MEMBERS, read), (NON_MEMBERS, unread)):
        count: Counter[str] = Counter()
        lines = []
        for source, text in documents:
            if times[first_paragraph(text)] == 1 and count[source] < kept:
                count[source] += 1
                lines.append(document_line(source, text))
        write_text(corpus / name, "".join(lines))


def is_divided(corpus: Path) -> bool:
    """Whether members and non-members were kept; not where the corpus was taken whole."""
    return all((corpus / name).is_file() for name in (MEMBERS, NON_MEMBERS))


def members(corpus: Path) -> Iterator[Document]:
    """Yield documents that the models read: those kept, or all where the corpus was taken whole."""
    return read_documents(corpus / (MEMBERS if is_divided(corpus) else DOCUMENTS))


def non_members(corpus: Path) -> Iterator[Document]:
    """Yield documents that no model reads; none where the corpus was taken whole."""
    return read_documents(corpus / NON_MEMBERS) if is_divided(corpus) else iter(())


def sample_by_source(
    documents: Iterable[Document],
    cut: Callable[[str], T | None],
    *,
    most: int | None = None,
    sources: int | None = None,
) -> dict[str, list[T]]:
    """Sample by source what `cut` makes of the first documents; it gives None to leave one out.

    Reading ends when so many `sources` have `most` each: a corpus may be larger than memory.
    """
    found: dict[str, list[T]] = {}
    full = 0
    for source, text in documents:
        kept = found.get(source, [])
        if len(kept) == most or (beginning := cut(text)) is None:
            continue
        found.setdefault(source, kept).append(beginning)
        full += len(kept) == most
        if full == sources:
            break
    return found


def document_line(source: str, text: str) -> str:
    """Return a line of a file that `read_documents` reads."""
    return json.dumps({"source": source, "text": text}, ensure_ascii=False) + "\n"


def read_documents(path: Path) -> Iterator[Document]:
    """Yield (source, text) of every line of a file that the corpus stage wrote."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            document = json.loads(line)
            yield document["source"], document["text"]


def first_paragraph(text: str) -> str:
    """Text up to the first empty line, in lower case and with single blanks."""
    return " ".join(text.partition("\n\n")[0].lower().split())
