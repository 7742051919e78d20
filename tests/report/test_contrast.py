"""Contrast: known ratios, and sheets that are hard to read."""

from pathlib import Path

import pytest

from contamination.errors import InputError
from contamination.report import check_contrast
from contamination.report.contrast import contrast
from fakes.made_up_run import PAPER

SHEET = """/* :root { color: red } */
:root {
  --text: #222222; --muted: #555555; --link: #0b4f9e;
  --page: #ffffff; --soft: #f5f6f8;
}
@media (prefers-color-scheme: dark) {
  :root { --text: #eeeeee; --muted: #aaaaaa; --link: #86b7f5; --page: #16181c; --soft: #1f2228; }
}
p { color: var(--text); background-color: #ffffff; }
"""

FAULTS = {
    "grey on white": (
        "--muted: #555555",
        "--muted: #909090",
        r":2: --muted #909090 on --page #fff",
    ),
    "on the other background": ("--soft: #f5f6f8", "--soft: #808080", r":2: --text .* on --soft"),
    "dark link": ("--link: #86b7f5", "--link: #0b4f9e", r":7: --link #0b4f9e on --page #16181c"),
    "half of the dark": ("--text: #eeeeee; ", "", r":7: --text #222222 on --page #16181c"),
    "other notation": ("--page: #ffffff", "--page: white", r":2: write --page as a colour"),
    "missing": ("--link: #0b4f9e;", "", r":2: write --link as a colour"),
    "colour in a rule": ("color: var(--text)", "color: #999", r":9: name the text colour"),
    "no variables": (":root {", "main {", r"no :root with the colours --text"),
}


def test_known_ratios() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#ffffff", "#ffffff") == 1
    # The darkest greys that fail and the lightest that pass on white, as WCAG tools print them.
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.005)
    assert contrast("#ffffff", "#777777") == pytest.approx(4.48, abs=0.005)
    assert contrast("#0000ff", "#ffffff") == pytest.approx(8.59, abs=0.005)


def test_a_sound_sheet_passes(tmp_path: Path) -> None:
    sheet = tmp_path / "a.css"
    sheet.write_text(SHEET, encoding="utf-8")
    check_contrast(sheet)


@pytest.mark.parametrize(("old", "new", "message"), FAULTS.values(), ids=FAULTS.keys())
def test_fault(tmp_path: Path, old: str, new: str, message: str) -> None:
    sheet = tmp_path / "a.css"
    assert old in SHEET
    sheet.write_text(SHEET.replace(old, new), encoding="utf-8")
    with pytest.raises(InputError, match=rf"^paper/b\.css:?.*{message}") as caught:
        check_contrast(sheet, shown=Path("paper/b.css"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", sorted(sheet.name for sheet in PAPER.glob("*.css")))
def test_our_sheets(name: str) -> None:
    check_contrast(PAPER / name)
