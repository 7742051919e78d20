"""The store of completions: what a model wrote after each prompt, kept whole and asked for once.

A directory with a header (`completions.json`) that says what was asked, and Parquet parts, each of
the texts of `PROMPTS` prompts. The prompts are asked in a random order, which decides the part of
each. What no part holds is missing; of a model here, an interrupted run that is started again
writes the bytes of one that was not interrupted.
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

import pyarrow as pa
from tqdm import tqdm

from contamination.errors import InputError
from contamination.files import check_directory, read_json, sha256_of, write_json
from contamination.randomness import random_stream
from contamination.scoring.generation import Generator, Sampling
from contamination.scoring.store_format import check_same, read_table, write_table

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
        columns = {"prompt": pa.int32(), "texts": pa.list_(pa.string()), "served": pa.string()}
        key = sha256_of(json.dumps(self._fields, sort_keys=True))
        self._schema = pa.schema(columns.items(), metadata={"key": key})
        check_directory(directory)
        self._path = directory / "completions.json"
        if self._path.is_file():
            check_same(self._path, read_json(self._path), self._fields)

    @cached_property
    def parts(self) -> dict[Path, list[int]]:
        """Prompts of each part, in the random order in which they are asked."""
        rng = random_stream(self.header.seed, "order of requests", self.header.prompts)
        order = rng.permutation(self.header.count).tolist()
        cut = (order[at : at + PROMPTS] for at in range(0, len(order), PROMPTS))
        return {self.directory / f"part-{i:05d}.parquet": part for i, part in enumerate(cut)}

    def stored(self) -> tuple[dict[int, list[str]], str]:
        """Texts after each prompt, by its number, and what the server called the model.

        As far as they are stored and undamaged.
        """
        found: dict[int, list[str]] = {}
        named = ""
        for path, prompts in self.parts.items():
            with suppress(InputError):
                columns = read_table(path, self._schema).columns
                numbers, texts, served = (column.to_pylist() for column in columns)
                if numbers == prompts:
                    found |= zip(numbers, texts, strict=True)
                    named = named or served[0]
        return found, named

    def fill(self, generator: Generator, prompts: Sequence[str], sampling: Sampling) -> None:
        """Ask for what is missing, part by part; a damaged part is written anew.

        Raises InputError as the generator, and where the server called the model by another name
        when it wrote what is stored.
        """
        texts, before = self.stored()
        write_json(self._path, self._fields)
        missing = [each for each in self.parts.items() if each[1][0] not in texts]
        for path, part in tqdm(missing, f"{self.header.model}: texts", leave=False, disable=None):
            written = generator.generate([prompts[i] for i in part], sampling)
            if before not in ("", generator.served):
                raise InputError(
                    f"{self.directory}: its texts came from {before!r}, and {generator.served!r} "
                    "answers now; ask for one model by its exact name, or remove the directory"
                )
            before = generator.served
            write_table(path, (part, written, [before] * len(part)), self._schema)
