"""A small registry whose sources are a hub and files on this machine."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import huggingface_hub.constants
import pytest
import yaml

from contamination.errors import InputError
from contamination.files import sha256_of
from contamination.testsets import registry
from fakes.hub_server import HubServer

QUESTIONS = [{"id": i, "question": f"What is {i}?", "answer": f"It is {i}."} for i in range(6)]
EXAMPLES = tuple(f"Question: {r['question']}\nAnswer: {r['answer']}\n" for r in QUESTIONS)
CHECKSUM = sha256_of(*EXAMPLES)


def jsonl(records: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def refusal(call: Callable[..., Any], *arguments: Any, **options: Any) -> str:
    """Call, and return the message of the `InputError`, checked to be one line."""
    with pytest.raises(InputError) as caught:
        call(*arguments, **options)
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    return message


def described(**changes: Any) -> dict[str, Any]:
    """Describe `QUESTIONS` as the registry does, but for `changes`."""
    return {
        "title": "Questions",
        "hub": {"id": "org/questions"},
        "split": "test",
        "licence": "MIT",
        "template": "question/1",
        "mirror": "questions/test.csv",
        "records": len(QUESTIONS),
        "checksum": CHECKSUM,
    } | changes


@contextmanager
def hub_at(monkeypatch: pytest.MonkeyPatch, directory: Path) -> Iterator[HubServer]:
    """Run a hub, and let the hub's client use it and an empty cache of its own."""
    server = HubServer()
    template = server.url + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", server.url)
    monkeypatch.setattr(huggingface_hub.constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(directory / "hub"))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_DISABLE_PROGRESS_BARS", True)
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def registry_of(
    monkeypatch: pytest.MonkeyPatch, directory: Path, sets: dict[str, Any], **families: Any
) -> Iterator[None]:
    """Put a registry of these sets in the place of the real one, and no mirror."""
    path = directory / "registry.yaml"
    path.write_text(yaml.safe_dump({"sets": sets, "families": families}, sort_keys=False))
    monkeypatch.setattr(registry, "REGISTRY", path)
    monkeypatch.setenv("CONTAMINATION_CACHE", str(directory / "cache"))
    monkeypatch.delenv("CONTAMINATION_DATA", raising=False)
    monkeypatch.chdir(directory)  # which has no `data`
    registry.entries.cache_clear()
    try:
        yield
    finally:
        registry.entries.cache_clear()
