"""Made-up checkpoints: one has read two of four sets, the control none."""

from pathlib import Path

import pytest

from fakes.checkpoint_run import MadeUpCheckpoints


@pytest.fixture
def made_up(tmp_path: Path, tokenizer, monkeypatch: pytest.MonkeyPatch) -> MadeUpCheckpoints:
    found = MadeUpCheckpoints(tmp_path, tokenizer)
    found.write()
    found.stand_in(monkeypatch.setattr)
    return found
