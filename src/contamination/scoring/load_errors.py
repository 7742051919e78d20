"""What goes wrong with other people's files, told in one line with advice."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from accelerate.utils.memory import should_reduce_batch_size
from huggingface_hub.errors import (
    GatedRepoError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from contamination.errors import InputError

# For an error, or one that it was raised from; the first that fits.
ADVICE: dict[type[Exception], str] = {
    GatedRepoError: "log in with `hf auth login`, and ask for access on the model's page",
    RepositoryNotFoundError: "check the name; if it is private, log in with `hf auth login`",
    RevisionNotFoundError: "check the revision on the model's page",
    LocalEntryNotFoundError: "fetch it with `hf download` where there is a network, or give a "
    "model's directory or a .gguf file",
}


@contextmanager
def told(name: str) -> Iterator[None]:
    """Raise `InputError` for whatever goes wrong while the model of that name is loaded."""
    try:
        yield
    except Exception as error:  # transformers, safetensors, pickle, hub: no common base class
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        raise InputError(
            f"{name}: the model cannot be loaded ({reason}); {_advice(error)}"
        ) from error


def is_out_of_memory(error: Exception) -> bool:
    """Whether a device or the host had no memory left; on the CPU torch has no class for that."""
    return isinstance(error, torch.OutOfMemoryError) or should_reduce_batch_size(error)


def _advice(error: Exception) -> str:
    if is_out_of_memory(error):
        return "use a lower precision, quantise (bits), or spread it over devices (device_map)"
    if "trust_remote_code" in str(error):
        return "read the code that comes with it, then allow it with --trust-remote-code"
    cause: BaseException | None = error
    while cause is not None:
        for kind, advice in ADVICE.items():
            if isinstance(cause, kind):
                return advice
        cause = cause.__cause__ or cause.__context__
    return "give a complete model: a directory, a .gguf file or a hub id"
