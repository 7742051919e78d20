"""A command ends with 1 or 3 by its verdict alone, and only after all of it has been printed."""

import copy
import errno
import os
import subprocess
import sys

import pytest
from pydantic_core import SchemaError

from contamination.cli.ending import ExitStatus, outcome, run
from contamination.errors import InputError
from fakes.data_fixtures import ROOT

# What libraries make of Ctrl-C: an error that names it, or one that it has caused.
NAMED = SchemaError("Error building the schema: KeyboardInterrupt")
CAUSED = RuntimeError("could not import")
CAUSED.__context__ = KeyboardInterrupt()
FULL = OSError(errno.ENOSPC, "No space left on device", "x[/b]")
CIRCULAR = InputError("b")  # a tool raised its cause again while it handled the error
CIRCULAR.__cause__ = ValueError("a")
CIRCULAR.__cause__.__context__ = CIRCULAR


class Refusing:
    """A stream that takes nothing."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def write(self, text: str) -> int:
        raise copy.copy(self.error)  # it would keep what was handled when it came up

    def flush(self) -> None:
        raise copy.copy(self.error)

    def fileno(self) -> int:
        raise OSError


@pytest.mark.parametrize(
    ("error", "status", "shown"),
    [
        (InputError("a: wrong"), 2, "error: a: wrong\n"),
        (FULL, 2, "error: x[/b]: No space"),
        (MemoryError(), 2, "MemoryError"),
        (KeyError("bug"), 2, "KeyError"),
        (ImportError("no module"), 2, "no module"),
        (SystemExit(1), 2, "SystemExit"),
        (SystemExit(3), 2, "SystemExit"),
        (KeyboardInterrupt(), 130, "run the same command again to go on"),
        (NAMED, 130, "interrupted"),
        (CAUSED, 130, "interrupted"),
        (SchemaError("no such field"), 2, "no such field"),
        (CIRCULAR, 2, "error: b"),
        (BrokenPipeError(), 141, ""),
    ],
    ids=repr,
)
@pytest.mark.parametrize("readable", [True, False])
def test_what_goes_wrong_is_no_verdict(error, status, shown, readable, capsys, monkeypatch) -> None:
    def fail(**_: object) -> None:
        raise error

    if not readable:  # whether or not it can be told
        monkeypatch.setattr(sys, "stderr", Refusing(FULL))
    with pytest.raises(SystemExit) as caught:
        run(fail)
    assert caught.value.code == status
    assert not readable or shown in capsys.readouterr().err


@pytest.mark.parametrize(
    ("returned", "status"),
    [(None, 0), (0, 0), (1, 2), (3, 2), (130, 130), (True, 2), ("text", 2), (ExitStatus(1), 1)],
    ids=repr,
)
def test_a_number_is_no_verdict(returned: object, status: int) -> None:
    assert outcome(lambda **_: returned) == status


@pytest.mark.parametrize("verdict", [ExitStatus.DONE, ExitStatus.PROVEN, ExitStatus.NOT_SAID])
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
@pytest.mark.parametrize(("error", "status"), [(FULL, 2), (BrokenPipeError(), 141)])
def test_a_verdict_that_cannot_be_printed_is_none(
    verdict, stream, error, status, monkeypatch
) -> None:
    monkeypatch.setattr(sys, stream, Refusing(error))
    with pytest.raises(SystemExit) as caught:
        run(lambda **_: verdict)
    assert caught.value.code == status


PROVEN = """
import sys
from contamination.cli.ending import ExitStatus, run

def app(standalone_mode):
    print("proven, p \u2264 0.001")
    print("and a line beside it", file=sys.stderr)
    return ExitStatus.PROVEN

run(app)
"""


@pytest.mark.parametrize(
    ("redirected", "encoding", "status"),
    [
        ("", "utf-8", 1),
        ("", "cp1252", 1),
        ("", "ascii", 1),
        (">/dev/full", "utf-8", 2),
        ("2>/dev/full", "utf-8", 2),
        (">/dev/full 2>&1", "utf-8", 2),
        (">&-", "utf-8", 2),
        (">&- 2>&-", "utf-8", 2),
        ("2>&-", "utf-8", 1),
    ],
)
def test_a_whole_process_ends_with_1_only_where_its_verdict_arrives(
    redirected, encoding, status, tmp_path
) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROVEN)
    told = {"PYTHONPATH": str(ROOT / "src"), "PYTHONIOENCODING": encoding}
    line = f'"{sys.executable}" "{program}" {redirected}'
    done = subprocess.run(["sh", "-c", line], env=os.environ | told, capture_output=True)
    assert done.returncode == status
    assert (b"proven" in done.stdout) == (status == 1 or redirected == "2>/dev/full")
    assert (b"standard output" in done.stderr) == (redirected in (">/dev/full", ">&-"))


def test_the_module_is_the_command() -> None:
    """Without `__main__` it would do nothing, and end with 0."""
    for module in ("contamination", "contamination.cli.main"):
        done = subprocess.run(
            [sys.executable, "-m", module, "data", "list", "nothing"],
            env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 2
        assert "nothing" in done.stderr
