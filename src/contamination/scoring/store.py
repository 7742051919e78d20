"""The log-probability store: score once, test many ways.

One store holds the per-token log-probabilities of one test set under one model for one
number of shards. Its header names the kind, and the kind its class.
"""

import dataclasses
import shutil
from pathlib import Path

import numpy as np

from contamination.errors import InputError
from contamination.files import check_directory, require_path
from contamination.scoring.store_format import Header as Header
from contamination.scoring.store_format import Kind, read_header
from contamination.scoring.stores.base import Store as Store
from contamination.scoring.stores.orderings import OrderingStore
from contamination.scoring.stores.shard_tokens import ShardTokens as ShardTokens
from contamination.scoring.stores.successors import SuccessorStore
from contamination.scoring.stores.variants import VariantStore

KINDS: dict[Kind, type[Store]] = {
    "orderings": OrderingStore,
    "successors": SuccessorStore,
    "alternatives": VariantStore,
}


def store_of(directory: Path, header: Header) -> Store:
    """Return the store of this header in a directory; nothing is read or written yet."""
    return KINDS[header.kind](directory, header)


def create_store(directory: Path, header: Header, *, replace: bool = False) -> Store:
    """Return the store of this header in a directory; the header is written if it is not there.

    The directory need not exist. With `replace` a store of something else is removed
    from it. Raises InputError if the directory holds a store of something else, one of
    another version of this package, or a damaged `store.json`.
    """
    require_path(directory, "the store")
    store = store_of(directory, header)
    store.create(replace=replace)
    return store


def open_store(directory: Path | str) -> Store:
    """Return a store that was scored before, whatever it holds.

    Raises InputError if there is none, its header is damaged, or it is one of another
    version of this package.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> header = Header("toy", "1", "a set", "2", "text/1", 0, 1, (3, 2))
    >>> places = [((0, 0), [0, 1]), ((0, 1), [1, 0])]
    >>> nats = np.array([-1.0, -2.0, -0.5, -1.5, -1.0], dtype=np.float32)
    >>> with TemporaryDirectory() as folder:
    ...     created = create_store(Path(folder), header)
    ...     rows = [(place, np.array(order, np.int32), nats) for place, order in places]
    ...     part = created.append(rows)
    ...     store = open_store(folder)
    ...     store.permutations(), store.log_probs(1).tolist()
    (1, [[-6.0, -6.0]])
    """
    require_path(directory, "the store")
    path = Path(directory) / "store.json"
    check_directory(path.parent)
    if not path.is_file():
        raise InputError(
            f"{path}: no such store; score it first, on several nodes into a directory "
            "that all of them see"
        )
    return store_of(path.parent, read_header(path))


def sum_store(store: Store, directory: Path, *, permutations: int) -> None:
    """Write a store that has the sums of another one, to travel with a repository.

    It has one sum of an ordering, or one of a predecessor for each other example of its
    shard, in canonical order; p-values are those of `store`, bit by bit. What needs
    tokens raises InputError there: all but `log_probs`, `resolution` and `successors`
    of whole examples. The records of runs come along: they say with which model,
    packages and precision the tokens were scored.

    Raises InputError if `store` holds variants, lacks one of the sequences, or is
    damaged.

    Parameters
    ----------
    store
        A store of orderings or successors, scored.
    directory
        Directory of the new store; a store of something else there is removed.
    permutations
        Number of permutations to copy; it concerns a store of orderings alone.
    """
    sums = list(store.sums(permutations))
    summed = create_store(directory, dataclasses.replace(store.header, summed=True), replace=True)
    no_examples = np.empty(0, np.int32)
    places = store.places(permutations=permutations)
    rows = zip(places, sums, strict=True)
    summed.append((place, no_examples, nats) for place, nats in rows)
    for record in store.records():
        shutil.copy(record, directory)
