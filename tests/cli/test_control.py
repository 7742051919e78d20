"""A control model that lies here, beside an endpoint that serves the model."""

import json
from pathlib import Path

import pytest

from fakes.completions_server import Network, serving
from fakes.made_up_registry import jsonl

COMMANDS = {
    "test": ("test", "served", "published.jsonl", "--shards", "2"),
    "audit": ("audit", "published.jsonl", "--model", "served", "--shards", "2"),
    "compare": ("compare", "served", "published.jsonl", "held_out.jsonl", "--resamples", "99"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_control_that_lies_here_is_loaded_here(command, call, prose, make_model):
    model = make_model(64)
    control = make_model(32)
    texts = [{"text": text[:24]} for text in prose[:16]]
    Path("published.jsonl").write_bytes(jsonl(texts[::2]))
    Path("held_out.jsonl").write_bytes(jsonl(texts[1::2]))
    with serving(Network(model)) as server:
        there = ("--endpoint", server.url, "--tokenizer", model, "--context", "64")
        here = ("--control", control, "--precision", "float32")
        status, out, err = call(*COMMANDS[command], "--field", "text", *there, *here, "--json")
        assert {body["model"] for _, body in server.seen} == {"served"}
    assert status in (0, 1, 3), err
    result = json.loads(out)
    if command == "audit":
        assert result[0]["control"] is not None
        assert result[0]["precision"] == "unknown"
    else:
        assert result["precision"] == "unknown"
        assert result["control_model"]["precision"] == "float32"
