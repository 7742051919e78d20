"""Models of a test's module, and one behind a server: honest unless a test tampers with it."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from contamination.scoring.endpoint import EndpointScorer
from fakes.completions_server import Network, scorer_of, serving
from fakes.tiny_models import save_model


@pytest.fixture(scope="session")
def save(tokenizer, tmp_path_factory) -> Callable[..., Path]:
    def to_directory(*model) -> Path:
        return save_model(tmp_path_factory.mktemp("model"), tokenizer, *model, biases=True)

    return to_directory


@pytest.fixture(scope="module")
def directories(save, request) -> Callable[[str], Path]:
    return cache(lambda name: save(*request.module.MODELS[name]))


@pytest.fixture(scope="module")
def directory(make_model, request) -> Path:
    return make_model(request.module.CONTEXT)


@pytest.fixture(scope="module")
def network(directory) -> Network:
    return Network(directory)


@pytest.fixture
def waits(monkeypatch) -> list[float]:
    """No key and no wait between tries: return the list of the waits, in seconds."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    asked = []

    async def sleep(seconds: float) -> None:
        asked.append(seconds)

    monkeypatch.setattr("anyio.sleep", sleep)
    return asked


@pytest.fixture
def server(network, waits):
    with serving(network) as running:
        yield running


@pytest.fixture
def scorer(server, directory) -> EndpointScorer:
    return scorer_of(server, directory)
