"""The store of completions: what a model wrote after each prompt, kept whole and asked for once.

A directory with a header (`completions.json`) that says what was asked, and Parquet parts, each of
the texts of `PROMPTS` prompts. The prompts are asked in a random order, which decides the part of
each. What no part holds is missing; of a model here, an interrupted run that is started again
writes the bytes of one that was not interrupted.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from tqdm import tqdm

from contamination.errors import InputError
from contamination.files import check_directory, read_json, replacing, sha256_of, write_json
from contamination.randomness import random_stream
from contamination.scoring.generation import Generator, Sampling
from contamination.scoring.store_format import UNREADABLE, check_same

PROMPTS = 32  # of a part


@dataclass(frozen=True)
class CompletionHeader:
    """What was asked: of which model, about which set, and how.

    `prompts` is the SHA-256 of all of them, in canonical order, and `count` their number. The
    first five fields are as in `contamination.scoring.store_format.Header`, protocol and
    instruction as in `Generator`, the last four as in `Sampling`.
    """

    model: str
    model_revision: str
    dataset: str
    dataset_revision: str
    template: str
    prompts: str
    count: int
    protocol: str
    instruction: str
    samples: int
    tokens: int
    temperature: float
    seed: int


class Completions:
    """A store on disk, bound to its header.

    Raises InputError if the directory holds a store of something else, and names the difference.
    """

    def __init__(self, directory: Path, header: CompletionHeader) -> None:
        self.directory, self.header, self._fields = directory, header, asdict(header)
        self._key = sha256_of(json.dumps(self._fields, sort_keys=True))
        check_directory(directory)
        self._path = directory / "completions.json"
        if self._path.is_file():
            check_same(self._path, read_json(self._path), self._fields)

    @cached_property
    def parts(self) -> tuple[tuple[int, ...], ...]:
        """Prompts of each part, in the random order in which they are asked."""
        rng = random_stream(self.header.seed, "order of requests", self.header.prompts)
        order = rng.permutation(self.header.count).tolist()
        return tuple(tuple(order[at : at + PROMPTS]) for at in range(0, len(order), PROMPTS))

    def stored(self) -> tuple[dict[int, list[str]], str]:
        """Texts after each prompt, by its number, and what the server called the model.

        As far as they are stored and undamaged.
        """
        parts = [self._read(part) for part in range(len(self.parts))]
        texts = {prompt: texts for found, _ in parts for prompt, texts in found.items()}
        return texts, next((served for _, served in parts if served), "")

    def fill(self, generator: Generator, prompts: Sequence[str], sampling: Sampling) -> None:
        """Ask for what is missing, part by part; a damaged part is written anew.

        Raises InputError as the generator, and where the server called the model by another name
        when it wrote what is stored.
        """
        texts, before = self.stored()
        write_json(self._path, self._fields)
        missing = [i for i, numbers in enumerate(self.parts) if numbers[0] not in texts]
        for part in tqdm(missing, f"{self.header.model}: texts", leave=False, disable=None):
            written = generator.generate([prompts[i] for i in self.parts[part]], sampling)
            if before not in ("", generator.served):
                raise InputError(
                    f"{self.directory}: its texts came from {before!r}, and {generator.served!r} "
                    "answers now; ask for one model by its exact name, or remove the directory"
                )
            before = generator.served
            fields = [("prompt", pa.int32()), ("texts", pa.list_(pa.string()))]
            schema = pa.schema(fields, metadata={"key": self._key, "served": before})
            with replacing(self._part(part)) as temporary:
                table = pa.table([self.parts[part], written], schema=schema)
                pq.write_table(table, temporary, compression="zstd", write_page_checksum=True)

    def _part(self, part: int) -> Path:
        return self.directory / f"part-{part:05d}.parquet"

    def _read(self, part: int) -> tuple[dict[int, list[str]], str]:
        """Texts of a part, and what the server called the model; none if missing or damaged."""
        try:
            with pq.ParquetFile(self._part(part), page_checksum_verification=True) as file:
                table = file.read()
            about = table.schema.metadata or {}
            found = dict(zip(*(column.to_pylist() for column in table.columns), strict=True))
            if about[b"key"].decode() == self._key and tuple(found) == self.parts[part]:
                return found, about[b"served"].decode()
        except (*UNREADABLE, LookupError, TypeError, ValueError):
            pass
        return {}, ""
