"""Records from the network: data sets of the hub, files behind URLs, archives.

The hub's files are read as data only: no script of a repository is run. What comes from
a commit is named by it. A directory laid out like a repository of the hub is read in
the same way. Whether the hub can be reached, and what to do about its errors, is said
here for models as well.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from contamination.errors import InputError, brief
from contamination.files import sha256_of
from contamination.testsets.records import FORMATS, Record, read_lines, read_records
from contamination.testsets.registry import Hub, Url

if TYPE_CHECKING:
    from datasets.utils.metadata import MetadataConfigs

MOST_FILES = 20_000  # of a directory: a slip such as "/" is not searched
PATIENCE = 3.0  # seconds that the hub has to answer
CONVERTED = "give revision=refs/convert/parquet"  # what the hub made of any format


def download(
    source: Hub | Url, split: str, directory: Path, *, again: bool = False
) -> tuple[list[Record], str | None, list[str] | None]:
    """Return the records of a split, the commit of the hub, and the lines of a JSONL file.

    Parameters
    ----------
    source
        Source of the records.
    split
        Name of the split.
    directory
        Keeps archives; the hub has a cache of its own.
    again
        Whether to fetch an archive that is there already.

    Raises
    ------
    InputError
        If there is no network and nothing in the hub's cache, no access, no such data
        set, configuration, split or member, or if files are of a kind that cannot be
        read.
    """
    if isinstance(source, Hub):
        # The second is in every repository: no warning where there is no card.
        folder = _snapshot(source, ["README.md", ".gitattributes"])
        at = replace(source, revision=folder.name)  # all files are of one commit
        fetch = partial(_snapshot, at)
        records = read_repository(folder, source.config, split, str(source), fetch)
        return records, folder.name, None
    import pooch

    # It advises to pin a checksum, which is ours to do.
    pooch.get_logger().setLevel("WARNING")
    path = directory / f"{sha256_of(source.url)[:12]}-{source.url.rpartition('/')[2]}"
    if again:
        path.unlink(missing_ok=True)
    unpack = pooch.Unzip() if source.member else None
    try:
        retrieved = pooch.retrieve(
            source.url,
            known_hash=None,
            fname=path.name,
            path=path.parent,
            processor=unpack,
        )
    except Exception as error:
        # Requests, urllib3, OSError, zipfile: no common base class.
        advice = f"check the network and the address, remove {path}, or use a mirror"
        raise _unreadable(source.url, error, advice) from error
    if source.member is not None:
        members = [Path(file) for file in retrieved if "__MACOSX" not in file]
        matching = [file for file in members if file.name == source.member]
        if len(matching) != 1:
            names = ", ".join(file.name for file in members[:12])
            raise InputError(
                f"{source.url}: {len(matching)} members are called {source.member}, of {names}"
            )
        path = matching[0]
    try:
        lines = [*read_lines(path).values()] if path.suffix == ".jsonl" else None
        return read_records(path), None, lines
    finally:
        if source.member is None:
            path.unlink()  # its records are kept in a form of their own


def advice_on(
    error: BaseException,
    page: str = "its page at huggingface.co",
) -> str | None:
    """Return what to do about an error of the hub, with the page of the set.

    It is None for others.
    """
    from huggingface_hub import errors

    login = "log in with `hf auth login`"
    if isinstance(error, errors.GatedRepoError):
        return f"it is gated: ask for access on {page}, then {login}"
    if isinstance(error, errors.RepositoryNotFoundError):
        return f"check the name; if it is private, {login}"
    if isinstance(error, errors.RevisionNotFoundError):
        return f"check the revision on {page}"
    if isinstance(error, errors.LocalEntryNotFoundError):
        return (
            "fetch it with `hf download` where there is a network, or use a local copy "
            "(a model's directory, a set's mirror)"
        )
    return None


@contextmanager
def asked_once() -> Iterator[None]:
    """Leave the hub alone if it is out of reach: its client tries six times."""
    from huggingface_hub import constants, get_session

    before = constants.HF_HUB_OFFLINE
    if not before:
        try:
            get_session().head(constants.ENDPOINT, timeout=PATIENCE)
        except Exception:  # HTTP client: no common base class over its versions
            constants.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before


def _snapshot(source: Hub, patterns: list[str]) -> Path:
    """Download files of a commit into the hub's cache.

    Return their folder, named by the commit.
    """
    from huggingface_hub import snapshot_download

    try:
        with asked_once():
            folder = snapshot_download(
                source.id,
                repo_type="dataset",
                revision=source.revision,
                allow_patterns=patterns,
            )
            return Path(folder)
    except Exception as error:
        # The hub's own, HTTP client, OSError: no common base class.
        advice = advice_on(error, f"https://huggingface.co/datasets/{source.id}")
        raise _unreadable(str(source), error, advice or "check the network") from error


def read_repository(
    folder: Path,
    config: str | None,
    split: str,
    where: str,
    fetch: Callable[[list[str]], object] | None = None,
) -> list[Record]:
    """Read a split of a directory that is laid out like a repository of the hub.

    Parameters
    ----------
    folder
        The directory.
    config
        Name of the configuration; None where there is one.
    split
        Name of the split. Its files come in the order of their names.
    where
        What messages call the directory.
    fetch
        Called with the patterns of these files, before they are read; None where they
        lie on this machine.

    Raises
    ------
    InputError
        If there is no such configuration or split, or no data in it.
    """
    from datasets.data_files import DataFilesList, EmptyDatasetError, get_data_patterns

    if next(islice(folder.rglob("*"), MOST_FILES, None), None) is not None:
        raise InputError(
            f"{folder}: more than {MOST_FILES:,} files; give that of one data set",
        )
    patterns = _card_patterns(folder, config, where)
    guessed = not patterns
    inside = f"{config}/" if config else ""
    if fetch is not None:
        fetch(patterns.get(split) or [f"{inside}*{suffix}" for suffix in FORMATS])
    files: list[Path] = []
    with suppress(EmptyDatasetError, FileNotFoundError):
        if guessed:
            # A configuration is a folder, as the hub lays out what it has converted.
            known = sorted(path.name for path in folder.iterdir() if path.is_dir())
            folder = folder / (config or "")
            if not folder.is_dir():
                raise _no_config(where, config, known)
            patterns = get_data_patterns(str(folder))
        if split not in patterns:
            splits = ", ".join(map(str, patterns))
            raise InputError(
                f"{where}: no split {split!r}; give split={splits}",
                parameter="split",
            )
        listed = DataFilesList.from_patterns(
            patterns[split],
            base_path=str(folder),
            allowed_extensions=[*FORMATS],
        )
        files = [Path(file) for file in listed]
    if not files:
        suffixes = ", ".join(FORMATS)
        missing = f"{where}: no data files of split {split!r} ({suffixes})"
        if fetch is None:
            raise InputError(f"{missing}; give a file, or a directory that has some")
        raise InputError(f"{missing}; {CONVERTED}", parameter="revision")
    below = [path.relative_to(folder) for path in files if path.parent != folder]
    folders = sorted({path.parts[0] for path in below})
    if guessed and len(folders) > 1:
        raise _no_config(where, config, folders)
    records = list[Record]()
    for file in files:
        for place, record in read_records(file):
            where_in_folder = f"{file.name}, {place}" if len(files) > 1 else place
            records.append((where_in_folder, record))
    return records


def _card_patterns(folder: Path, config: str | None, where: str) -> dict[str, list[str]]:
    """Return patterns of the files of each split, if the card of a repository has some."""
    from datasets.data_files import sanitize_patterns

    path = folder / "README.md"
    if not path.is_file():
        return {}
    configs = _configs_of(path.read_text(encoding="utf-8"))
    chosen = config or configs.get_default_config_name()
    if not any("data_files" in fields for fields in configs.values()):
        return {}
    if chosen not in configs:
        raise _no_config(where, config, list(configs))
    folder_of_config = configs[chosen].get("data_dir")
    base = f"{folder_of_config}/" if folder_of_config else ""
    patterns = dict[str, list[str]]()
    for split, paths in sanitize_patterns(configs[chosen]["data_files"]).items():
        patterns[split] = [base + path for path in paths]
    return patterns


@lru_cache(maxsize=1)  # the subsets of MMLU are configurations of one card
def _configs_of(card: str) -> "MetadataConfigs":
    """Return the configurations that the text of a card describes, by name."""
    from datasets.utils.metadata import MetadataConfigs
    from huggingface_hub import DatasetCard

    return MetadataConfigs.from_dataset_card_data(DatasetCard(card).data)


def _no_config(where: str, config: str | None, known: list[str]) -> InputError:
    problem = f"no configuration {config!r}" if config else "several configurations"
    names = ", ".join(known[:60]) or "none"
    return InputError(
        f"{where}: {problem}; write NAME:CONFIG with one of {names} (of a directory, "
        "give the folder or the file itself)"
    )


def _unreadable(where: str, error: Exception, advice: str) -> InputError:
    reason = brief(f"{type(error).__name__}: {error}", 300)
    return InputError(f"{where}: cannot be had ({reason}); {advice}")
