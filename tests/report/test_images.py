"""Drawings that a reader's machine could not show as they were meant."""

import base64
from pathlib import Path
from urllib.parse import quote

import matplotlib.pyplot as plt
import pytest

from contamination.report.images import broken_image
from fakes.made_up_run import SVG


def svg(body: str) -> str:
    text = (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'
        f"{body}</svg>"
    )
    return "data:image/svg+xml;base64," + base64.b64encode(text.encode()).decode()


SOUND = {
    "paths": svg('<path d="M0 0"/>'),
    "glyphs": svg('<defs><path id="DejaVuSans-10" d="M0 0"/></defs><use href="#DejaVuSans-10"/>'),
    "generic font": svg('<text font-family="Verdana, sans-serif">a</text>'),
    "generic font in a style": svg('<text style="font: 10px monospace">a</text>'),
    "font of the drawing": svg('<g><text x="1"><tspan font-family="serif">a</tspan></text></g>'),
    "no words": svg("<text> </text>"),
    "not base64": "data:image/svg+xml," + quote(SVG),
}
FAULTS = {
    "one font": (svg('<text font-family="Helvetica Neue">a</text>'), "font that may be missing: a"),
    "not generic": (svg('<text font-family="my-serif">a</text>'), "font that may be missing"),
    "lost character": (svg('<text font-family="serif">a\ufffd</text>'), "character that was lost"),
    "box": (svg('<use xlink:href="#DejaVuSans-0"/>'), "character that its font lacks"),
    "file": (svg('<image href="a.png"/>'), "loads a.png"),
    "other drawing": (svg('<use href="http://example.org/a.svg#b"/>'), "loads http://example"),
}


@pytest.mark.parametrize("source", SOUND.values(), ids=SOUND.keys())
def test_sound(source: str) -> None:
    assert broken_image(source) is None


@pytest.mark.parametrize(("source", "message"), FAULTS.values(), ids=FAULTS.keys())
def test_fault(source: str, message: str) -> None:
    assert message in str(broken_image(source))


@pytest.mark.filterwarnings("ignore:Glyph .* missing from font")
@pytest.mark.parametrize(("title", "found"), [("A → −", False), ("A 中", True)])
def test_what_matplotlib_draws_for_a_missing_glyph(tmp_path: Path, title: str, found: bool) -> None:
    figure, axes = plt.subplots()
    axes.set_title(title)
    figure.savefig(tmp_path / "a.svg")
    plt.close(figure)
    problem = broken_image("data:image/svg+xml," + quote((tmp_path / "a.svg").read_text("utf-8")))
    assert ("font lacks" in str(problem)) == found
