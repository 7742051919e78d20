"""`contamination wikimia build`, as a person types it."""

from pathlib import Path

import pytest

from contamination.files import read_json
from fakes.made_up_registry import jsonl


@pytest.fixture
def pages() -> Path:
    """Write ten pages a side, whose words differ by side."""
    records = []
    for number in range(20):
        is_new = number % 2
        words = "phone app post video" if is_new else "king duke ship map"
        day = f"{2023 if is_new else 2010}-06-01"
        text = f"{number} {words} of the year"
        records.append({"title": f"Page {number}", "text": text, "date": day})
    Path("pages.jsonl").write_bytes(jsonl(records))
    return Path("pages.jsonl")


def test_lengths_need_no_quotes_and_words_that_tell_the_sides_apart_are_status_3(
    call, pages
) -> None:
    typed = ("wikimia", "build", str(pages), "--cutoff", "2023-01-01", "--lengths", "4", "8", "90")
    status, out, err = call(*typed, "--out", "made")
    assert status == 3
    assert err == ""
    assert "no split of 90 words" in out
    written = read_json(Path("made/provenance.json"))
    assert written["lengths"] == [4, 8, 90]
    assert written["texts_of_each_side"] == {"WikiMIA_length4": 10, "WikiMIA_length8": 10}


@pytest.mark.parametrize(
    ("typed", "named"),
    [
        (("--cutoff", "soon"), "--cutoff"),
        ((), "--cutoff"),
        (("--cutoff", "2030-01-01"), "0 non-members"),
        (("--cutoff", "2023-01-01", "--lengths", "many"), "--lengths"),
    ],
)
def test_bad_input_is_one_line(call, pages, typed, named) -> None:
    status, _, err = call("wikimia", "build", str(pages), *typed)
    assert status == 2
    assert named in err
    assert len(err.strip().splitlines()) == 1
