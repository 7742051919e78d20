"""Stamps: what a stage depends on apart from files, and since when.

The text of a stamp names the facts; its time says when one of them changed, and make
compares this time with the stage's target. An edit that is taken back changes nothing:
the stamp of which the target was made is kept, and returns with its time. Once a stage
has begun, it may have replaced other files than its target, and nothing returns.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from contamination.files import write_text


def write_stamp(path: Path, facts: Mapping[str, str], target: Path) -> None:
    """Write a stamp if its facts have changed.

    Parameters
    ----------
    path
        File of the stamp. Beside it, `NAME.made` keeps the one of which the target was
        made.
    facts
        Name of what the stage depends on -> its digest or version.
    target
        File that the stage makes.
    """
    text = "".join(f"{name} {value}\n" for name, value in facts.items())
    made = _made(path)
    if path.is_file():
        before = path.read_text(encoding="utf-8")
        if before == text:
            return
        if target.is_file() and _time(target) >= _time(path):
            write_text(made, before)
            _set_time(made, _time(path))
    write_text(path, text)
    is_taken_back = made.is_file() and made.read_text(encoding="utf-8") == text
    if is_taken_back:
        _set_time(path, _time(made))


def forget_stamp(stamps: Path, stage: str) -> None:
    """Forget of which stamp the target of a stage was made, as the stage begins."""
    _made(stamps / stage).unlink(missing_ok=True)


def _made(path: Path) -> Path:
    """Return where the stamp is kept of which the target was made."""
    return path.with_name(f"{path.name}.made")


def _time(path: Path) -> int:
    """Return the time of a file's last change, in nanoseconds."""
    return path.stat().st_mtime_ns


def _set_time(path: Path, time: int) -> None:
    os.utime(path, ns=(time, time))
