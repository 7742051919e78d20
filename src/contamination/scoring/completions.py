"""The store of what a model wrote: each prompt is asked once, in a random order."""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
from tqdm import tqdm

from contamination.errors import InputError
from contamination.files import check_directory, read_json, sha256_of, write_json
from contamination.randomness import random_stream
from contamination.scoring.generation import Generator, Sampling
from contamination.scoring.store_checks import check_same, require_one_model
from contamination.scoring.store_format import (
    read_table,
    write_table,
)
from contamination.testsets.example_set import ExampleSet

PROMPTS = 32  # of a part of the store
HEADER_FILE = "completions.json"


@dataclass(frozen=True)
class CompletionHeader:
    """The header of a store of texts: model, set, prompts and sampling.

    `prompts` is the SHA-256 of all of them, in canonical order, and `count` their
    number. The fields before them are as in
    `contamination.scoring.store_format.Header`, protocol and instruction as in
    `Generator`, the four behind them as in `Sampling`. `secret`, in hexadecimal digits,
    has drawn the places of a quiz; "" of other texts. `records` is the number of
    records that a quiz is about; 0 of other texts, which have a prompt a record.
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
    secret: str = ""
    records: int = 0


class Completions:
    """The store of what a model wrote: a directory, bound to its header.

    The header (`completions.json`) says what was asked, and which fields a server
    refused (`left_out`). Parquet parts hold the texts of `PROMPTS` prompts each. The
    prompts are asked in a random order, which decides the part of each.
    What no part holds is missing; of a model here, an interrupted run that is started
    again writes the bytes of one that was not interrupted. Raises InputError if the
    directory holds a store of something else, and names the difference.
    """

    def __init__(self, directory: Path, header: CompletionHeader) -> None:
        self.directory = directory
        self.header = header
        fields = asdict(header)
        secret = fields.pop("secret")
        self._records = fields.pop("records")
        # First, so that it is what is named where it differs: the prompts do so with
        # it. Texts of no quiz have none, as before there were secrets.
        self._fields = {"secret": secret} | fields if secret else fields
        columns = {
            "prompt": pa.int32(),
            "texts": pa.list_(pa.string()),
            "served": pa.string(),
        }
        key = sha256_of(json.dumps(self._fields, sort_keys=True))
        self._schema = pa.schema(columns.items(), metadata={"key": key})
        check_directory(directory)
        self._path = directory / HEADER_FILE
        if self._path.is_file():
            check_same(self._path, read_json(self._path), self._fields)

    @cached_property
    def parts(self) -> dict[Path, list[int]]:
        """Prompts of each part, in the random order in which they are asked."""
        rng = random_stream(self.header.seed, "order of requests", self.header.prompts)
        order = rng.permutation(self.header.count).tolist()
        parts: dict[Path, list[int]] = {}
        for number, start in enumerate(range(0, len(order), PROMPTS)):
            path = self.directory / f"part-{number:05d}.parquet"
            parts[path] = order[start : start + PROMPTS]
        return parts

    def stored(self) -> tuple[dict[int, list[str]], str]:
        """Texts after each prompt, by its number, and what the server called the model.

        As far as they are stored and undamaged. Raises InputError where two models
        wrote them.
        """
        stored: dict[int, list[str]] = {}
        names: list[str] = []
        for path, prompts in self.parts.items():
            with suppress(InputError):
                columns = read_table(path, self._schema).columns
                numbers, texts, served = (column.to_pylist() for column in columns)
                if numbers == prompts:
                    stored |= zip(numbers, texts, strict=True)
                    names += dict.fromkeys(served)
        require_one_model(self.directory, names)
        return stored, max(names, default="")

    @property
    def left_out(self) -> tuple[str, ...]:
        """Fields of requests that the server refused, in the order in which they were left out."""
        if not self._path.is_file():
            return ()
        return tuple(map(str, read_json(self._path).get("left_out", ())))

    def fill(
        self,
        generator: Generator,
        prompts: Sequence[str],
        sampling: Sampling,
    ) -> None:
        """Ask for what is missing, part by part; a damaged part is written anew.

        `prompts` are all of the store, in canonical order. Fields that the server
        refused before are not sent now. Raises InputError for what the generator
        refuses, and where the server called the model by another name when it wrote
        what is stored.
        """
        texts, before = self.stored()
        generator.left_out = self.left_out or generator.left_out
        parts = self.parts.items()
        missing = [(path, part) for path, part in parts if part[0] not in texts]
        title = f"{self.header.model}: texts"
        for path, part in tqdm(missing, title, leave=False, disable=None):
            written = generator.generate([prompts[i] for i in part], sampling)
            require_one_model(self.directory, [before, generator.served])
            # What is refused before the first text leaves no store.
            if not self._path.is_file() or tuple(generator.left_out) != self.left_out:
                self._write_header(generator.left_out)
            served = [generator.served] * len(part)
            write_table(path, [part, written, served], self._schema)

    def _write_header(self, left_out: Sequence[str]) -> None:
        """Write the header.

        Without refused fields and a quiz it has the bytes that it always had.
        """
        fields: dict[str, Any] = dict(self._fields)
        if self._records:
            fields["records"] = self._records
        if left_out:
            fields["left_out"] = list(left_out)
        write_json(self._path, fields)


def stored_secret(directory: Path) -> str | None:
    """Return the secret seed of the quiz that a store holds.

    It is None where there is no store.

    Raises InputError for a store from before there were secrets, and for a damaged
    header.
    """
    path = directory / HEADER_FILE
    if not path.is_file():
        return None
    secret = read_json(path).get("secret")
    if not isinstance(secret, str):
        raise InputError(
            f"{path}: its places were drawn from the seed, which anybody can repeat; "
            f"remove {directory} to ask again"
        )
    return secret


def has_other_number(directory: Path, test_set: ExampleSet, model_revision: str) -> bool:
    """Return whether a store has texts of a model about another number of records of a set.

    A store of a quiz from before it kept the number has none that could be compared.
    """
    stored: dict[str, Any] = {}
    with suppress(InputError):  # a damaged header is told where the store is opened
        stored = read_json(directory / HEADER_FILE)
    expected = {
        "model_revision": model_revision,
        "dataset": test_set.name,
        "template": test_set.template,
    }
    if any(stored.get(name) != value for name, value in expected.items()):
        return False
    number = stored.get("records")
    if number is None and not stored.get("secret"):
        number = stored.get("count")
    return number is not None and number != len(test_set.examples)
