"""The files of a model on this machine: which are read, and whether they are still the same.

A run names a model by the hash of its files, and may read the weights hours later. The
state of the files, as the system tells it, says whether they were written or replaced
meanwhile. Files of another state are hashed again when they have been read, and so are
those whose state can hide a second writing.
"""

import json
import shlex
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from contamination.errors import InputError
from contamination.files import FileState, is_path, read_json, states_of
from contamination.testsets.inside import is_inner_name

# Ends the name of a file that says which weights are in which file.
INDEX = ".index.json"
# What transformers looks for first.
USUAL = ("model.safetensors", f"model.safetensors{INDEX}")
TOKENIZER = ("tokenizer*", "vocab*", "merges*", "*.model", "*.tiktoken")
ADAPTER = "adapter_config.json"
COARSEST_CLOCK = 2_000_000_000  # nanoseconds between two times of a file system (FAT)
OTHERS = (
    "config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "adapter_*",
    *TOKENIZER,
)


def weights_of(directory: Path) -> list[Path]:
    """Return the files of weights in a directory, then the indexes that name some of them.

    Raises InputError for an index that cannot be read, or names a pipe, or a file
    outside of the directory.
    """
    chosen = _chosen_weights(directory)
    safe = any(directory.glob("*.safetensors*"))
    kinds = ["*.safetensors" if safe else "*.bin"]
    if safe and not chosen and not any((directory / name).exists() for name in USUAL):
        kinds.append("*.bin")  # transformers does not read safetensors of other names
    indexes = matching(directory, [f"{kind}{INDEX}" for kind in kinds])
    indexes |= {file for file in chosen if file.name.endswith(INDEX)}
    named = set(chosen) - indexes
    for index in indexes:
        named |= _named_by(index)
    refuse_pipes(named)
    weights = matching(directory, kinds) | set(filter(Path.is_file, named))
    return [*sorted(weights), *sorted(indexes)]


def _chosen_weights(directory: Path) -> list[Path]:
    """Return the file of weights, or the index, that config.json names, if it names one."""
    config = directory / "config.json"
    if not config.is_file():
        return []
    try:
        name = read_json(config).get("transformers_weights")
    except InputError:  # whoever loads it says what is wrong
        return []
    if not name:
        return []
    file = _below(directory, name, config)
    return [file] if is_path(str(file)) and file.is_file() else []


def _named_by(index: Path) -> set[Path]:
    """Return the files that an index names and that are there, also in folders below."""
    names = read_json(index).get("weight_map", {})
    if not isinstance(names, Mapping):
        raise InputError(f"{index}: weight_map is no object; copy the model again")
    files = {_below(index.parent, name, index) for name in names.values()}
    return {file for file in files if is_path(str(file))}


def _below(directory: Path, name: object, where: Path) -> Path:
    """Return the path of a file of weights; InputError for one outside of the directory."""
    if not is_inner_name(name):
        raise InputError(
            f"{where}: it names {str(name)[:100]!r}, which is no file below {directory}; put the "
            "weights there"
        )
    return directory / str(name)


def others_of(directory: Path, *, code: bool) -> list[Path]:
    """Return the files that decide what a model says, but for its weights.

    They include its `code` if that is run.

    They are its configuration, its tokenizer and adapters.
    """
    kinds = [*OTHERS, "*.py"] if code else OTHERS
    return sorted(matching(directory, kinds))


def matching(directory: Path, patterns: Iterable[str]) -> set[Path]:
    """Return the files of a directory whose names fit any of the patterns."""
    files: set[Path] = set()
    for pattern in patterns:
        files |= set(directory.glob(pattern))
    return files


@contextmanager
def unchanged(model: Path, *, code: bool = False) -> Iterator[None]:
    """Raise `InputError` if a file of a model is written or replaced while the block runs.

    `model` is a directory or a file; anything else, such as the id of a hub, has no
    files here. `code` is as in `others_of`.
    """
    before = _states(model, code)
    failure = None
    try:
        yield
    except InputError as error:  # perhaps for a file that was half written
        failure = error
    if _states(model, code) != before:
        raise changed_files_error(model) from failure
    if failure is not None:
        raise failure


def settled_states(model: Path, *, code: bool = False) -> dict[Path, FileState] | None:
    """Return the states of the files of a model, if whatever is written now changes them.

    It is None if a file was written a moment ago: the clock of its file system may give
    a second writing the same time. `model` and `code` are as in `unchanged`.
    """
    states = _states(model, code)
    youngest = max((changed_at for _, _, changed_at in states.values()), default=0)
    if time.time_ns() - youngest < COARSEST_CLOCK:
        return None
    return states


def changed_files_error(model: Path) -> InputError:
    """Return the error for files that are no longer those which name the model."""
    return InputError(
        f"{model}: its files have changed since this run named the model by them; copy "
        "the checkpoint to a directory where nothing is written, and run the command "
        "again"
    )


def _states(model: Path, code: bool) -> dict[Path, FileState]:
    if model.is_file():
        return states_of([model])
    return states_of([*weights_of(model), *others_of(model, code=code)])


def refuse_pipes(files: Iterable[Path]) -> None:
    """Raise `InputError` for a pipe, socket or device: whoever reads one may wait for ever."""
    for file in files:
        if file.exists() and not (file.is_file() or file.is_dir()):
            raise InputError(f"{file}: no regular file; take it out, or put the model's own there")


def refuse_adapter(model: Path) -> None:
    """Raise `InputError` for a directory with an adapter, which nobody would apply."""
    if (model / ADAPTER).is_file() or any(model.glob("adapter_model.*")):
        raise unmerged(str(model))


def unmerged(name: str) -> InputError:
    """Return the error for an adapter in place of a model, or beside one."""
    merged = f"{Path(name).name}-merged"
    merge = (
        "from peft import AutoPeftModelForCausalLM as M; "
        f"M.from_pretrained({json.dumps(name)}).merge_and_unload()"
        f".save_pretrained({json.dumps(merged)})"
    )
    return InputError(
        f"{name}: it holds an adapter (adapter_*), which is not applied here; merge it (python -c "
        f"{shlex.quote(merge)}), put the tokenizer there, and give {merged}; if these weights "
        "have it already, take adapter_* out"
    )
