"""Files of the hub: fetched if the disk has room for all of them, by one process at a time."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from filelock import FileLock

from contamination.errors import InputError
from contamination.files import writing


def fetch_files(
    repository: str, patterns: Sequence[str], *, kind: str = "model", revision: str | None = None
) -> Path:
    """Return the folder of a commit in the hub's cache; files that fit `patterns` are in it.

    Of several processes one fetches, and the others find what it has fetched. Without a network
    what is in the cache has to do. Raises InputError, before anything is fetched, if the disk is
    too small for what is missing; errors of the hub are its own.

    Parameters
    ----------
    kind : "model" or "dataset".
    revision : branch, tag or commit; None is the main branch.
    """
    from huggingface_hub import constants, snapshot_download
    from huggingface_hub.errors import DryRunError

    cache = Path(constants.HF_HUB_CACHE)
    wanted = {"repo_type": kind, "revision": revision, "allow_patterns": list(patterns)}

    def missing() -> int:
        try:
            files = snapshot_download(repository, dry_run=True, **wanted)  # type: ignore[call-overload]
        except DryRunError:
            return 0  # the hub is out of reach, or gives no access: then it is asked for the files
        return sum(file.file_size or 0 for file in files if file.will_download)

    def fetch() -> Path:
        return Path(snapshot_download(repository, **wanted))  # type: ignore[call-overload]

    if not missing():
        return fetch()
    with writing(cache):
        cache.mkdir(parents=True, exist_ok=True)
        lock = FileLock(cache / ".contamination.lock").acquire()
    with lock:
        require_disk(repository, missing(), cache)
        return fetch()


def require_disk(what: str, size: int, folder: Path) -> None:
    """Raise InputError if the disk that holds `folder` has less room than `size` (bytes)."""
    free = shutil.disk_usage(folder).free
    if size > free:
        raise InputError(
            f"{what}: {size / 1e9:,.3g} GB are missing of it, and the disk that holds {folder} has "
            f"{free / 1e9:,.3g} GB left; free some, or name a folder on a larger disk with HF_HOME"
        )
