"""A model behind a server: honest unless a test tampers with it."""

from pathlib import Path

import pytest

from contamination.scoring.endpoint import EndpointScorer
from fakes.completions_server import Network, scorer_of, serving


@pytest.fixture(scope="module")
def directory(make_model, request) -> Path:
    """Return a model whose context is CONTEXT of the test's module."""
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
def generate(network, waits):
    """Serve SGLang's own protocol."""
    with serving(network, "generate") as running:
        yield running


@pytest.fixture
def scorer(server, directory) -> EndpointScorer:
    return scorer_of(server, directory)
