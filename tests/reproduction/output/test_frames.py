"""What a notebook shows of a data frame."""

import pandas as pd
import pytest

from reproduction.output.frames import number_text, show_frames


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (41.0, "41"),
        (1533.0, "1,533"),
        (-2.5, "−2.5"),
        (0.001, "0.001"),
        (1e-8, "1.0\u00a0×\u00a010⁻⁸"),
        (-1e-8, "−1.0\u00a0×\u00a010⁻⁸"),
        (float("inf"), "inf"),
    ],
)
def test_a_number_is_written_for_readers(value: float, text: str) -> None:
    assert number_text(value) == text


def test_a_frame_shows_whole_texts() -> None:
    long = "a conclusion " * 20
    with pd.option_context("display.max_colwidth", 50, "display.float_format", None):
        show_frames()
        shown = pd.DataFrame({"conclusion": [long.strip()], "p": [3e-41]}).to_html()
    assert long.strip() in shown
    assert "10⁻⁴¹" in shown
