"""Names and links in a folder that others have written: whether they stay in the folder.

The card of a data set names its files, and a folder may hold links. Neither may lead to
a file that nobody has asked for: its records could be sent to a server.
"""

from pathlib import Path, PureWindowsPath

from contamination.errors import InputError


def is_inner_name(name: object) -> bool:
    """Return whether a name is a path that stays in its folder, on every system.

    What is no text does not, nor does an absolute path, one with a drive, with ".." or
    with a zero byte.
    """
    if not isinstance(name, str) or "\0" in name:
        return False
    path = PureWindowsPath(name)  # which takes / and \ alike for a separator
    return not path.anchor and ".." not in path.parts


def lies_inside(file: Path, folder: Path) -> bool:
    """Return whether a file lies in a folder when all links are followed.

    A folder of the hub's cache has links to files beside it, which belong to it. A path
    that cannot be followed, such as one that is too long, does not lie in the folder.
    """
    try:
        target = file.resolve()
        home = folder.resolve()
    except (OSError, ValueError, RuntimeError):  # a link to itself is a RuntimeError
        return False
    if target.is_relative_to(home):
        return True
    for place in (home, *home.parents):
        blobs = place.parent.parent / "blobs"
        if place.parent.name == "snapshots" and target.is_relative_to(blobs):
            return True
    return False


def require_inside(file: Path, folder: Path) -> None:
    """Raise InputError if a file, when all links are followed, lies outside of a folder."""
    if not lies_inside(file, folder):
        raise InputError(
            f"{file}: a link that leads out of {folder}; copy the file there, or give the path of "
            "the file that it leads to"
        )
