"""`ModelSource`: where a model comes from and how it is to be loaded."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from contamination.errors import InputError
from contamination.files import require_path
from contamination.scoring.checkpoint import refuse_adapter, refuse_pipes

Precision = Literal["auto", "float32", "bfloat16", "float16"]


@dataclass(frozen=True)
class ModelSource:
    """The place of a model, and how to load it.

    Attributes
    ----------
    name
        Hub id, directory, or .gguf file.
    revision
        Branch, tag or commit of a hub id; files on this machine have none.
    precision
        "auto" is bfloat16 where the device computes in it, else float32.
    attention
        Transformers' attn_implementation; None is its default, torch's fused attention.
    compile
        Run the network through torch.compile.
    context
        Tokens in a window, at most what the model allows; None is just that.
    trust_remote_code
        Run the Python files of the model's repository.
    """

    name: str
    revision: str | None = None
    precision: Precision = "auto"
    attention: str | None = None
    compile: bool = False
    context: int | None = None
    trust_remote_code: bool = False

    def __post_init__(self) -> None:
        """Refuse what is wrong whatever the files say."""
        require_path(self.name, "the model")
        precisions = get_args(Precision)
        if self.precision not in precisions:
            listed = ", ".join(precisions)
            raise InputError(f"precision is {self.precision!r}: give one of {listed}")
        refuse_kernels(self.attention, self.name)
        path = Path(self.name)
        is_a_path = self.name.count("/") > 1 or self.name.startswith((".", "/"))
        is_misnamed = path.is_file() != (path.suffix == ".gguf")
        if is_misnamed or (is_a_path and not path.exists()):
            raise InputError(
                f"{path}: no model; give a directory, a GGUF file or a hub id",
            )
        if self.revision is not None and path.exists():
            raise InputError(
                f"{path} lies on this machine; leave revision {self.revision} out",
            )
        refuse_pipes(path.glob("*"))
        refuse_adapter(path)

    @property
    def location(self) -> dict[str, Any]:
        """Return the arguments that every `from_pretrained` of transformers shares."""
        path = Path(self.name)
        arguments: dict[str, Any] = {
            "pretrained_model_name_or_path": self.name,
            "local_files_only": path.exists(),
            "revision": self.revision,
            "trust_remote_code": self.trust_remote_code,
        }
        if path.suffix == ".gguf":
            arguments["pretrained_model_name_or_path"] = str(path.parent)
            arguments["gguf_file"] = path.name
        return arguments


def refuse_kernels(attention: Any, name: str) -> None:
    """Refuse attention kernels from the hub: programs, which nobody has asked to run."""
    if "/" in str(attention):
        raise InputError(
            f"{name}: attention {attention!r} is a program from the hub, which is not "
            "run; take it out of config.json and choose sdpa, flash_attention_2 or "
            "eager",
            parameter="attention",
        )
