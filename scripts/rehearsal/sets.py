"""Data sets with the names, fields and file formats of the real ones, and made-up records.

Fields are those that the template of a set in the registry names, so a new set needs no new code.
"""

import io
import json
import re
import string
import zipfile
from collections.abc import Sequence
from dataclasses import asdict
from itertools import product
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pandas as pd

from contamination.files import sha256_of
from contamination.randomness import random_stream
from contamination.testsets.example_set import make_test_set
from contamination.testsets.records import Record, normalise
from contamination.testsets.registry import Entry, Hub, entries
from contamination.testsets.sources import checksum
from contamination.testsets.templates import TEMPLATES
from fakes.hub_server import HubServer, Repository
from reproduction.notebooks.assumptions import public
from reproduction.notebooks.wikimia import texts as benchmark

RECORDS = 100  # of a set: enough for 50 shards
TEXTS = 30  # of each split of a domain of the Pile
RECORDS_OF_MMLU = 24  # of each of its 57 subsets
SHORTENED = 8  # times are texts of WikiMIA shorter than the real ones: 12 models read them
CHOICES = 4

Rows = list[dict[str, Any]]
# id and branch of a repository -> configuration -> split -> records
Splits = dict[tuple[str, str], dict[str, dict[str, Rows]]]
SHORT = (
    "answer",
    "answerKey",
    "label",
    "gold_label",
    "target",
    "type",
    "A",
    "B",
    "C",
    "D",
)  # fields of one word


def made_up_words() -> list[str]:
    """Return words that no language has, of two syllables."""
    first = ("ba", "ke", "li", "mo", "nu", "pa", "re", "so", "ta", "vi", "zo", "du")
    second = ("dan", "fel", "gor", "tim", "lus", "mek", "nof", "rab", "sil", "vun")
    return [a + b for a, b in product(first, second)]


WORDS = made_up_words()
# Every record of a set has a word of its own, and all share the rest.
KEYS, COMMON = WORDS[:RECORDS], WORDS[RECORDS:]


def words(rng: np.random.Generator, count: int) -> str:
    """Draw words."""
    return " ".join(rng.choice(COMMON, size=count))


def prose(documents: int = 300) -> list[str]:
    """Text to train tokenizers on."""
    rng = random_stream(0, "text of the rehearsal")
    lines = (rng.choice(WORDS, size=12) for _ in range(documents))
    return [f"{first}\nQuestion: {' '.join(rest)}?\nAnswer: {first}\n" for first, *rest in lines]


def made_up_record(template: str, key: str, rng: np.random.Generator) -> dict[str, Any]:
    """Make a record with every field that a template names; each has the key, or is the key."""
    record: dict[str, Any] = {}
    for _, path, joiner, _ in string.Formatter().parse(TEMPLATES.get(template, template)):
        if path is None:
            continue
        name, *inside = re.findall(r"[^\[\]]+", path)
        if name in record and not (inside and isinstance(record[name], dict)):
            continue
        text = key if name in SHORT else f"{key} {words(rng, int(rng.integers(2, 6)))} {key}"
        if inside and inside[0].isdigit():
            record[name] = [key, *(words(rng, 2) for _ in range(CHOICES - 1))]
        elif inside:
            several = [words(rng, 2) for _ in range(CHOICES)]
            record.setdefault(name, {})[inside[0]] = several if joiner else text
        else:
            record[name] = text
    return record


def records_of(entry: Entry) -> Rows:
    """Make the records of a registered set, as its source has them."""
    rng = random_stream(0, "records of the rehearsal", entry.name)
    count = RECORDS_OF_MMLU if entry.normalise == "mmlu" else RECORDS
    if entry.normalise == "wikitext":
        return [{"text": f" = {words(rng, 2)} = \n {words(rng, 60)} \n"} for _ in range(count)]
    keys = rng.permutation(KEYS)[:count]
    template = entry.template or "text/1"
    records = [made_up_record(template, str(key), rng) for key in keys]
    if entry.normalise == "mmlu":
        return [record | {"answer": int(rng.integers(CHOICES))} for record in records]
    return records


def _placed(records: Sequence[dict[str, Any]]) -> list[Record]:
    return [(f"record {number}", record) for number, record in enumerate(records, start=1)]


def examples_of(entry: Entry) -> tuple[str, ...]:
    """Render a made-up set by the template of the real one."""
    records = normalise(_placed(records_of(entry)), entry.normalise, entry.name)
    return make_test_set(entry.name, records, str(entry.template), entry.name).examples


def lines_of(entry: Entry) -> tuple[str, ...]:
    """Write a made-up set as the lines of its file."""
    return tuple(f"{json.dumps(record)}\n" for record in records_of(entry))


def serve_sets(hub: HubServer, spoilt: str) -> dict[str, Any]:
    """Put all registered sets and WikiMIA on the hub and behind plain addresses.

    Returns a registry of them: the real one with addresses of the hub, and with numbers of records
    and checksums of what is made up; that of the set `spoilt` is of something else.
    """
    registry: dict[str, Any] = {}
    splits: Splits = {}
    archives: dict[str, dict[str, bytes]] = {}
    for entry in entries().values():
        records = records_of(entry)
        kept = normalise(_placed(records), entry.normalise, entry.name)
        fields = asdict(entry)
        name = fields.pop("name")
        source = fields.pop("source")
        if isinstance(entry.source, Hub):
            place = {"hub": source}
            add(splits, entry.source, entry.split, records)
        else:
            address = urlsplit(entry.source.url)
            path = f"/{address.netloc}{address.path}"
            place = {"url": source | {"url": hub.url + path}}
            if entry.source.member:
                archives.setdefault(path, {})[entry.source.member] = jsonl(records)
            else:
                hub.files[path] = jsonl(records)
        proof = "0" * 64 if name == spoilt else checksum(entry, kept, name)
        lines = sha256_of(*lines_of(entry)) if entry.lines else None
        proved = {"records": len(kept), "checksum": proof, "lines": lines}
        registry[name] = fields | place | proved
    for path, members in archives.items():
        hub.files[path] = zipped(members)
    add_wikimia(splits)
    add_domains(splits)
    for (name, ref), configurations in splits.items():
        repository = hub.repositories.setdefault(name, Repository())
        repository.push(repository_files(configurations), ref)
    return registry


def add_wikimia(splits: Splits) -> None:
    """Add WikiMIA: as many texts of each length as its card says, but of fewer words."""
    for variant, source in (
        (benchmark.ORIGINAL, benchmark.ORIGINAL_HUB),
        (benchmark.PARAPHRASED, benchmark.PARAPHRASED_HUB),
    ):
        for length in benchmark.LENGTHS:
            if variant == benchmark.PARAPHRASED and length not in benchmark.PARAPHRASED_LENGTHS:
                continue
            split = benchmark.Part(benchmark.WIKIMIA, variant, length).split
            rng = random_stream(0, "texts of the rehearsal", split)
            count = benchmark.RECORDS.get(length, 80)
            fewer = length // SHORTENED
            texts = [{"input": words(rng, fewer), "label": i % 2} for i in range(count)]
            add(splits, source, split, texts)


def add_domains(splits: Splits) -> None:
    """Add the public set of members and non-members by domain of the Pile."""
    for domain, theirs in public.CONFIGURATIONS.items():
        for split in public.SPLITS:
            rng = random_stream(0, "domains of the rehearsal", public.PUBLIC, domain, split)
            texts = [{"text": words(rng, int(rng.integers(230, 300)))} for _ in range(TEXTS)]
            add(splits, Hub(public.REPOSITORY, theirs), split, texts)


def add(splits: Splits, source: Hub, split: str, records: Rows) -> None:
    """Add a split to those of its repository."""
    configurations = splits.setdefault((source.id, source.revision or "main"), {})
    configurations.setdefault(source.config or "default", {})[split] = records


def repository_files(configurations: dict[str, dict[str, Rows]]) -> dict[str, bytes]:
    """Write splits as Parquet, and a card that says where they are, as the hub has them."""
    files, listed = {}, []
    for name, splits in configurations.items():
        folder = "data" if name == "default" else name
        places = []
        for split, records in splits.items():
            buffer = io.BytesIO()
            pd.DataFrame(records).to_parquet(buffer)
            files[f"{folder}/{split}-00000-of-00001.parquet"] = buffer.getvalue()
            places.append({"split": split, "path": f"{folder}/{split}-*"})
        listed.append({"config_name": name, "data_files": places})
    card = f"---\nconfigs: {json.dumps(listed)}\n---\nMade up.\n"
    return {"README.md": card.encode(), ".gitattributes": b""} | files


def jsonl(records: Sequence[dict[str, Any]]) -> bytes:
    """Write records as JSON lines."""
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def zipped(members: dict[str, bytes]) -> bytes:
    """Pack files into an archive, in a folder."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in members.items():
            archive.writestr(f"benchmarks/{name}", data)
    return buffer.getvalue()
