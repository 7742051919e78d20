"""Records from the network: data sets of the hub, files behind URLs, archives.

The hub's files are read as data only: no script of a repository is run. What comes from
a commit is named by it. A directory laid out like a repository of the hub is read in
the same way. Whether the hub can be reached, and what to do about its errors, is said
here for models as well.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from glob import escape
from itertools import islice
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from contamination.errors import InputError, brief
from contamination.files import replacing, sha256_of
from contamination.testsets.cards import CARD, card_patterns, no_config
from contamination.testsets.inside import require_inside
from contamination.testsets.records import FORMATS, Record, read_lines, read_records
from contamination.testsets.registry import Hub, Url
from contamination.testsets.unpacked import Archive, opened_archive

if TYPE_CHECKING:
    import requests

MOST_FILES = 20_000  # of a directory: a slip such as "/" is not searched
PATIENCE = 3.0  # seconds that the hub has to answer
ANSWER = 30.0  # seconds that any other address has for each piece
PIECE = 2**16  # bytes
MOST_BYTES = 2**31  # of a file behind an address: a wrong one does not fill the disk
CONVERTED = "give revision=refs/convert/parquet"  # what the hub made of any format


def download(
    source: Hub | Url, split: str, directory: Path, *, again: bool = False
) -> tuple[list[Record], str | None, list[str] | None]:
    """Return the records of a split, the commit of the hub, and the lines of a JSONL file.

    The directory keeps archives, which are fetched `again` if asked; the hub has a
    cache of its own. Raises InputError if there is no network and nothing in the hub's
    cache, no access, no such data set, configuration, split or member, or if files are
    of a kind that cannot be read.
    """
    if isinstance(source, Hub):
        # The second is in every repository: no warning where there is no card.
        folder = _snapshot(source, [CARD, ".gitattributes"])
        at = replace(source, revision=folder.name)  # all files are of one commit
        fetch = partial(_snapshot, at)
        records = read_repository(folder, source.config, split, str(source), fetch)
        return records, folder.name, None
    path = _retrieved(source, directory, again=again)
    if source.member is not None:
        records, lines = _read_member(source.url, source.member, path)
    else:
        try:
            records, lines = _read_with_lines(path)
        finally:
            path.unlink()  # its records are kept in a form of their own
    return records, None, lines


def _retrieved(source: Url, directory: Path, *, again: bool) -> Path:
    """Return the file that lies behind an address, downloaded to a directory."""
    path = directory / f"{sha256_of(source.url)[:12]}-{source.url.rpartition('/')[2]}"
    if path.is_file() and not again:
        return path
    import requests

    with replacing(path) as temporary, temporary.open("wb") as file:
        try:
            with requests.get(source.url, stream=True, timeout=ANSWER) as response:
                response.raise_for_status()
                for piece in _pieces(source.url, response):
                    file.write(piece)
        except requests.RequestException as error:
            advice = "check the network and the address, or use a mirror"
            raise _unreadable(source.url, error, advice) from error
    return path


def _pieces(url: str, response: "requests.Response") -> Iterator[bytes]:
    """Yield the body of an answer; raise InputError if it is larger than MOST_BYTES."""
    announced = response.headers.get("Content-Length", "")
    if announced.isdecimal():
        _require_size(url, int(announced))
    size = 0
    for piece in response.iter_content(PIECE):
        size += len(piece)
        _require_size(url, size)
        yield piece


def _require_size(url: str, size: int) -> None:
    """Raise InputError for more bytes than MOST_BYTES."""
    if size > MOST_BYTES:
        raise InputError(
            f"{url}: larger than {MOST_BYTES:,} bytes, the most that is downloaded; check the "
            "address, or put the file into a mirror"
        )


def _read_member(url: str, member: str, path: Path) -> tuple[list[Record], list[str] | None]:
    """Return records and lines of the member of an archive, which alone is unpacked."""
    try:
        with opened_archive(path, again=f"remove {path}, or use a mirror") as archive:
            content = _contents_of(member, archive)
    except InputError as error:
        raise InputError(f"{url}: {error}") from error
    with TemporaryDirectory(dir=path.parent) as folder:
        file = Path(folder) / member
        file.write_bytes(content)
        return _read_with_lines(file)


def _contents_of(member: str, archive: Archive) -> bytes:
    """Return the contents of the one file of that name in an archive, in whatever folder."""
    names = [name for name in archive.files if "__MACOSX" not in name]
    matching = [name for name in names if PurePosixPath(name).name == member]
    if len(matching) != 1:
        shown = ", ".join(PurePosixPath(name).name for name in names[:12])
        raise InputError(f"{len(matching)} members are called {member}, of {shown}")
    return archive.read(matching[0])


def _read_with_lines(path: Path) -> tuple[list[Record], list[str] | None]:
    """Return the records of a file, and of JSONL its lines."""
    lines = [*read_lines(path).values()] if path.suffix == ".jsonl" else None
    return read_records(path), lines


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

    Files come in the order of their names. A configuration is named unless there is
    only one. Messages call the directory `where`. `fetch` is called with the patterns
    of the files before they are read; None where they lie on this machine. Raises
    InputError if there is no such configuration or split, or no data in it; if the card
    is malformed; and if the card or a link leads out of the directory.
    """
    if next(islice(folder.rglob("*"), MOST_FILES, None), None) is not None:
        raise InputError(
            f"{folder}: more than {MOST_FILES:,} files; give that of one data set",
        )
    patterns = card_patterns(folder, config, where)
    guessed = not patterns
    inside = f"{config}/" if config else ""
    if fetch is not None:
        fetch(patterns.get(split) or [f"{inside}*{suffix}" for suffix in FORMATS])
    # As its files are listed; of another name for it, none would lie below it.
    folder = home = folder.absolute()
    if guessed and folder.is_dir():  # it is not there if the hub had no file for it
        folder = _folder_of(config, folder, where)
        patterns = _patterns_by_name(folder, where)
    files = _files_of(split, folder, patterns, where, of_hub=fetch is not None)
    for file in files:
        require_inside(file, home)
    below = [path.relative_to(folder) for path in files if path.parent != folder]
    folders = sorted({path.parts[0] for path in below})
    if guessed and len(folders) > 1:
        raise no_config(where, config, folders)
    records = list[Record]()
    for file in files:
        for place, record in read_records(file):
            where_in_folder = f"{file.name}, {place}" if len(files) > 1 else place
            records.append((where_in_folder, record))
    return records


def _folder_of(config: str | None, folder: Path, where: str) -> Path:
    """Return the folder of a configuration, as the hub lays out what it has converted."""
    if config is None:
        return folder
    known = sorted(path.name for path in folder.iterdir() if path.is_dir())
    if config not in known:
        raise no_config(where, config, known)
    return folder / config


def _files_of(
    split: str, folder: Path, patterns: Mapping[str, list[str]], where: str, *, of_hub: bool
) -> list[Path]:
    """Return the files of a split, at least one, by the patterns of each split."""
    if patterns and split not in patterns:
        splits = ", ".join(map(str, patterns))
        raise InputError(
            f"{where}: no split {split!r}; give split={splits}",
            parameter="split",
        )
    files = _matching(folder, patterns.get(split, []), where)
    if files:
        return files
    suffixes = ", ".join(FORMATS)
    missing = f"{where}: no data files of split {split!r} ({suffixes})"
    if of_hub:
        raise InputError(f"{missing}; {CONVERTED}", parameter="revision")
    raise InputError(f"{missing}; give a file, or a directory that has some")


def _patterns_by_name(folder: Path, where: str) -> dict[str, list[str]]:
    """Return patterns of the files of each split, as the names of files tell them."""
    from datasets.data_files import EmptyDatasetError, get_data_patterns

    try:
        patterns: dict[str, list[str]] = get_data_patterns(escape(str(folder)))
    except EmptyDatasetError:
        return {}
    except ValueError as error:
        reason = brief(str(error), 200)
        raise InputError(
            f"{where}: names of files tell no splits ({reason}); rename them, or give one of them"
        ) from error
    return patterns


def _matching(folder: Path, patterns: list[str], where: str) -> list[Path]:
    """Return the files of a format that is read and whose names fit any of the patterns."""
    from datasets.data_files import DataFilesList

    try:
        listed = DataFilesList.from_patterns(
            patterns,
            base_path=escape(str(folder)),
            allowed_extensions=[*FORMATS],
        )
    except FileNotFoundError:
        return []
    except ValueError as error:
        shown = brief(", ".join(patterns), 100)
        raise InputError(
            f"{where}: {CARD} names its data by {shown}, which is no pattern of files "
            f"({brief(str(error), 200)}); correct the card, or give the file of data itself"
        ) from error
    return [Path(file) for file in listed]


def _unreadable(where: str, error: Exception, advice: str) -> InputError:
    reason = brief(f"{type(error).__name__}: {error}", 300)
    return InputError(f"{where}: is unavailable ({reason}); {advice}")
