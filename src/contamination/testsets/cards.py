"""Which files the card of a data set, `README.md`, names for each split.

Others have written the card, so it may name files of its own repository and no others:
no absolute path, no "..", no address and no file system of another kind.
"""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contamination.errors import InputError, brief
from contamination.testsets.inside import is_inner_name, require_inside

if TYPE_CHECKING:
    from datasets.utils.metadata import MetadataConfigs

CARD = "README.md"


def card_patterns(folder: Path, config: str | None, where: str) -> dict[str, list[str]]:
    """Return patterns of the files of each split; empty if there is no card that names any.

    `folder` is the directory of a repository, which messages call `where`. Without a
    name of a configuration, the card's default is taken. Raises InputError if the card
    has no such configuration or is malformed, and if it names what does not lie in the
    repository.
    """
    from yaml import YAMLError

    path = folder / CARD
    if not path.is_file():
        return {}
    require_inside(path, folder)
    try:
        text = path.read_text(encoding="utf-8")
        configs = _configs_of(text)
        chosen = config or configs.get_default_config_name()
    except (YAMLError, OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        # The readers of cards check little, and raise whatever a wrong type leads to.
        raise _malformed(where, str(error)) from error
    if not any("data_files" in fields for fields in configs.values()):
        return {}
    if chosen not in configs:
        raise no_config(where, config, list(configs))
    return _patterns_of(configs[chosen], where)


def _patterns_of(fields: Mapping[str, Any], where: str) -> dict[str, list[str]]:
    """Return the patterns of a configuration."""
    from datasets.data_files import sanitize_patterns

    try:
        splits = sanitize_patterns(fields["data_files"])
    except (KeyError, TypeError, ValueError) as error:
        raise _malformed(where, str(error)) from error
    folder = fields.get("data_dir")
    if folder:
        _require_inner(folder, where)
    base = f"{folder}/" if folder else ""
    patterns = dict[str, list[str]]()
    for split, paths in splits.items():
        for path in paths:
            _require_inner(path, where)
        patterns[split] = [base + path for path in paths]
    return patterns


def _require_inner(pattern: object, where: str) -> None:
    """Raise InputError for a pattern that may fit anything but files of the repository."""
    # Both mark an address, or a file system of another kind, wherever they stand.
    is_address = "://" in str(pattern) or "::" in str(pattern)
    if is_address or not is_inner_name(pattern):
        raise InputError(
            f"{where}: {CARD} names {str(pattern)[:100]!r} as data, which is no path inside of the "
            "repository; correct the card, or give the file of data itself"
        )


@lru_cache(maxsize=1)  # the subsets of MMLU are configurations of one card
def _configs_of(card: str) -> "MetadataConfigs":
    """Return the configurations that the text of a card describes, by name."""
    from datasets.utils.metadata import MetadataConfigs
    from huggingface_hub import DatasetCard

    return MetadataConfigs.from_dataset_card_data(DatasetCard(card).data)


def no_config(where: str, config: str | None, known: list[str]) -> InputError:
    """Return the error for a configuration that is not there, or not named."""
    problem = f"no configuration {config!r}" if config else "several configurations"
    names = ", ".join(map(str, known[:60])) or "none"
    return InputError(
        f"{where}: {problem}; write NAME:CONFIG with one of {names} (of a directory, "
        "give the folder or the file itself)"
    )


def _malformed(where: str, problem: str) -> InputError:
    reason = brief(problem, 200)
    return InputError(
        f"{where}: the head of {CARD} is malformed ({reason}); correct it, or give the file of "
        "data itself"
    )
