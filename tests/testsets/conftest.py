"""A hub on this machine, and files to write."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fakes.hub_server import HubServer
from fakes.made_up_registry import hub_at


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[HubServer]:
    """Run a hub that has nothing yet."""
    with hub_at(monkeypatch, tmp_path) as running:
        yield running


@pytest.fixture
def save(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write
