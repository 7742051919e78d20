"""The attack of `make attack`, a few attempts of it, and that it would see what it looks for."""

import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, settings

from fakes.data_fixtures import ROOT


@pytest.fixture(scope="module")
def run() -> Iterator[ModuleType]:
    """Return the module `run` of the attack, which changes the size of parts in this process."""
    from contamination.scoring import work

    folder = str(ROOT / "benchmarks" / "attack")
    size = work.SMALLEST_PART
    sys.path.insert(0, folder)
    try:
        made = importlib.import_module("run")
        made.SECONDS = 600  # that an attempt may take on a machine with other work
        sealing = importlib.import_module("sealing")
        # What fails is not made smaller.
        sealing.CHECKS = settings(sealing.CHECKS, max_examples=3, phases=[Phase.generate])
        yield made
    finally:
        sys.path.remove(folder)
        work.SMALLEST_PART = size


FRONTS = [
    "records",
    "templates",
    "items",
    "seals",
    "logs",
    "api",
    "folders",
    "commands",
    "stores",
    "servers",
    "writers",
]


@pytest.mark.parametrize("front", FRONTS)
def test_a_few_attempts_come_to_a_good_end(run: ModuleType, front: str, capfd) -> None:
    ends = run.attack(front, seed=0, first=0, times=8)
    assert ends["failed"] == 0, capfd.readouterr()
    assert ends.total() == 8
    assert ends["refused"] > 0
    assert ends["survived"] > 0 or front == "seals"
    assert set(run.FRONTS) == set(FRONTS)


OPENED = pq.ParquetFile
LINE = "contamination.cli.ending._line"
BLIND = {
    "a flipped bit is another number": (
        *("stores", "contamination.scoring.store_format.pq.ParquetFile"),
        lambda path, page_checksum_verification: OPENED(path),
    ),
    "a seal is believed": ("seals", "sealing.verify", lambda *files: None),
    "a letter is read as a text": ("items", "sealing.named", lambda r, name, _: str(r[name])),
    "an archive may be damaged": ("logs", "contamination.testsets.unpacked._DAMAGE", ()),
    "masked entries are numbers": (
        "api",
        "contamination.statistics.inputs._has_mask",
        lambda values: False,
    ),
    "layers are left out": ("folders", "contamination.scoring.loading._left_out", lambda *_: []),
    "an escape is printed": ("commands", LINE, lambda error: "\x1b[31m"),
    "refused by a traceback": ("commands", LINE, lambda error: None),
}


@pytest.mark.parametrize(("front", "check", "blind"), BLIND.values(), ids=BLIND)
def test_what_a_blind_check_lets_through_is_found_out(run, monkeypatch, front, check, blind):
    monkeypatch.setattr(check, blind)
    assert any(run.attempt(front, 9, number)[0] == "failed" for number in range(20))


def test_the_driver_kills_a_stage_keeps_other_rows_and_leaves_no_temporary_file(
    tmp_path: Path,
) -> None:
    tables = tmp_path / "results" / "tables"
    temporary = tmp_path / "temporary"
    tables.mkdir(parents=True)
    temporary.mkdir()
    header = "front,tried,refused,repaired,survived,failed,seconds"
    (tables / "attack.csv").write_text(f"{header}\ntemplates,9,9,0,0,0,9\nseals,7,7,0,0,0,7\n")
    fronts = ["templates", "rendering killed"]
    command = [sys.executable, str(ROOT / "benchmarks" / "attack" / "run.py"), "--fronts", *fronts]
    command += ["--times", "3", "--kills", "1", "--results", str(tmp_path / "results")]
    subprocess.run(command, check=True, env=os.environ | {"TMPDIR": str(temporary)}, timeout=300)
    rows = pd.read_csv(tables / "attack.csv").set_index("front")
    assert rows["tried"].to_dict() == {"rendering killed": 1, "templates": 3, "seals": 7}
    assert rows.loc["rendering killed", "repaired"] == 1
    assert not list(temporary.glob("attack-*"))
