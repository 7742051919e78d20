"""A key is found in whatever a server makes of it, and nothing else is struck out."""

import base64
import html
import json
import time
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contamination.scoring.redaction import (
    LOOKED_AT,
    MOST_ENCODED,
    STRUCK,
    shortened,
    strike_out,
    whole_repr,
)

KEY = "sk-proj_4F/x+Zq9=&\"'"
ENCODINGS = {
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 of URLs": lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
    "base64 in lines": lambda text: base64.encodebytes(text.encode()).decode(),
    "hexadecimal": lambda text: text.encode().hex(),
    "pairs of digits": lambda text: text.encode().hex(":").upper(),
    "URL": lambda text: quote(text, safe=""),
    "HTML": lambda text: "".join(f"&#{ord(character)};" for character in text),
    "entities": html.escape,
    "JSON": lambda text: json.dumps(text)[1:-1],
    "\\u": lambda text: "".join(f"\\u{ord(character):04x}" for character in text),
}
AROUND = st.sampled_from(["", "Bearer ", "user:", "x", "ab", "/v1/", " said ", "é", "="])
CHAINS = st.lists(st.tuples(st.sampled_from(sorted(ENCODINGS)), AROUND, AROUND), max_size=4)


def shown_anywhere(text: str, chain: list[str]) -> bool:
    """Say whether a key is still in a text, or in what one of its encodings says."""
    encoded = KEY
    for name in chain:
        encoded = ENCODINGS[name](encoded)
        if encoded.strip() in text:
            return True
    return KEY in text


@settings(max_examples=300, deadline=None)
@given(CHAINS)
def test_no_encoding_of_a_key_hides_it(chain) -> None:
    text = KEY
    for name, before, after in chain:
        text = before + ENCODINGS[name](text) + after
    struck = strike_out(KEY, f"no key like {text}, sorry")
    assert STRUCK in struck
    assert not shown_anywhere(struck, [name for name, _, _ in chain])


@given(st.text(st.characters(exclude_characters="%&\\"), max_size=200))
def test_a_text_without_the_key_stays(text) -> None:
    assert strike_out(KEY, text) == text


@pytest.mark.parametrize(
    "text",
    [
        "The model `org/model-7b-instruct` does not exist or you do not have access to it.",
        "maximum context length is 4096 tokens\nrequest 0f8fad5b-d9cb-469f-a165-70867728950e",
        base64.b64encode(b"another secret, of somebody else").decode(),
    ],
)
def test_words_of_a_server_stay(text) -> None:
    assert strike_out(KEY, text) == text


def test_what_is_encoded_too_often_is_not_shown() -> None:
    for name in ("URL", "base64"):
        text = KEY
        for _ in range(MOST_ENCODED + 1):
            text = ENCODINGS[name](text)
        assert strike_out(KEY, text) == STRUCK
    assert strike_out(KEY, f"&#{'0' * 5000}32; {KEY}") == STRUCK


def test_no_part_of_a_key_is_left_where_a_long_text_is_cut() -> None:
    length = LOOKED_AT - 9
    for space in (" ", "&#32;", "\\u0020"):
        text = "".join([space] * (length // len(space)))
        assert shortened(KEY, f"{text}{KEY} and more") == STRUCK
        assert shortened("", f"{text}{KEY} and more")
    assert shortened(KEY, "word".ljust(length, ".") + KEY).startswith("word...")
    assert whole_repr([KEY * 100]) == repr([KEY * 100])


def test_without_a_key_nothing_is_struck_out() -> None:
    assert strike_out("", "a%20b") == "a%20b"


@pytest.mark.parametrize(
    "text", ["A" * 2**18, "\n" * 2**18, "\\" * 2**18, "AAAA \n" * 2**15, "ab:" * 2**16]
)
def test_long_answers_take_no_time(text) -> None:
    started = time.process_time()
    strike_out(KEY, text)
    assert time.process_time() - started < 5
