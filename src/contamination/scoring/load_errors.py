"""One line for a model that cannot be loaded, whatever library has refused it."""

import errno
import os
import pickle
from collections.abc import Iterator
from contextlib import contextmanager

import torch
import transformers
from accelerate.utils.memory import should_reduce_batch_size
from huggingface_hub.errors import StrictDataclassError

from contamination.errors import InputError, brief
from contamination.scoring.status import causes

COMPLETE = "give a complete model: a directory, a .gguf file or a hub id"
CONFIG = "a value in its config.json is wrong or missing: take the publisher's file again"


@contextmanager
def explain_load_errors(name: str, *, reads_config: bool = False) -> Iterator[None]:
    """Raise `InputError` for whatever goes wrong while the model of that name is loaded.

    With `reads_config` nothing but its configuration is used.
    """
    verbosity = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()  # our line says what matters
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        # Transformers, safetensors, pickle, hub: no common base class.
        reason = _reason(error)
        advice = _advice(error)
        if advice is None:
            is_config = reads_config and not isinstance(error, OSError)
            advice = CONFIG if is_config and not name.endswith(".gguf") else COMPLETE
        message = f"{name}: the model cannot be loaded ({reason}); {advice}"
        parameter = "trust_remote_code" if "trust_remote_code" in str(error) else None
        raise InputError(message, parameter=parameter) from error
    finally:
        transformers.logging.set_verbosity(verbosity)


def is_out_of_memory(error: Exception) -> bool:
    """Return whether a device or the host had no memory left.

    Torch has no class for the CPU's.
    """
    return isinstance(error, torch.OutOfMemoryError) or should_reduce_batch_size(error)


def _reason(error: Exception) -> str:
    """Return what an error says, on one line of at most 300 characters."""
    text = type(error).__name__
    # A pickle that is refused comes with the advice to run it.
    if not isinstance(error, pickle.UnpicklingError):
        text += f": {error}"
    return brief(text, 300)


def _advice(error: Exception) -> str | None:
    """Return how to mend what an error complains of; None if it does not say."""
    from contamination.testsets.fetching import advice_on

    if is_out_of_memory(error):
        return "use a lower precision, a smaller model, or a machine with more memory"
    if os.strerror(errno.ENOSPC) in str(error):
        return "free some, or name a folder on a larger disk with HF_HOME"
    if "trust_remote_code" in str(error):
        return "read the code that comes with it, then allow it with trust_remote_code"
    if "does not recognize this architecture" in str(error):
        return "correct model_type in its config.json, or install a newer transformers"
    if isinstance(error, StrictDataclassError):
        return CONFIG
    if isinstance(error, ImportError):
        return "install what it requires"
    if "ignore_mismatched_sizes" in str(error):
        return "its weights have other sizes than its config.json states: give those of one model"
    if any(isinstance(cause, pickle.UnpicklingError) for cause in causes(error)):
        return "its pickle holds more than weights and is not run; give a model with *.safetensors"
    for cause in causes(error):
        advice = advice_on(cause)
        if advice:
            return advice
    return None
