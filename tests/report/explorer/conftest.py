"""Fixtures of the explorer's tests: scored sets, and a page made from them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from contamination.report.explorer.page import write_page
from contamination.report.explorer.scored import Found, walk
from fakes.browser import Browser, find_chromium
from fakes.made_up_sets import fill


@pytest.fixture(scope="session")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    directory = tmp_path_factory.mktemp("stores")
    sets = fill(directory)
    return walk(directory, "Made up", lambda name, examples: sets[name])


@pytest.fixture(scope="session")
def page(found: Found, tmp_path_factory: pytest.TempPathFactory) -> Path:
    told = Found(found.sets, ("somewhere: <i>no store</i>",))
    return write_page(told, tmp_path_factory.mktemp("results"), title="tiny")


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = find_chromium()
    if program is None:
        pytest.skip("no Chromium or Chrome on PATH")
    tab = Browser(program, tmp_path_factory.mktemp("browser"))
    try:
        yield tab
    finally:
        tab.close()
