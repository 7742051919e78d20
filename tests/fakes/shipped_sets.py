"""A few of the shipped stores, for commands that would take seconds for all of them."""

import json
from collections.abc import Sequence
from pathlib import Path

from fakes.data_fixtures import ROOT

STORES = ROOT / "data" / "stores"


def link_shipped_sets(folder: Path, names: Sequence[str]) -> Path:
    """Make a folder of the stores of these sets, of both models; return it."""
    facts = json.loads((STORES / "stores.json").read_text(encoding="utf-8"))
    canaries = {name: facts["canaries"][name] for name in names}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "stores.json").write_text(json.dumps({"canaries": canaries}), encoding="utf-8")
    for model in ("contaminated", "clean"):
        (folder / model).mkdir()
        for name in names:
            (folder / model / name).symlink_to(STORES / model / name)
    return folder
