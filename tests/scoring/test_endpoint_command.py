"""`contamination test` through an endpoint, from the options to the p-value."""

import json
from itertools import product

import pytest

from fakes.completions_server import Network, serving


def lines(prose: list[str]) -> str:
    return "".join(f"{text[:30]}\n".replace("\n", " ") + "\n" for text in prose[:12])


def test_a_model_behind_an_endpoint_gives_the_p_value_of_the_model_itself(
    call, make_model, prose, tmp_path, monkeypatch
):
    model, data = make_model(64), tmp_path / "prose.txt"
    data.write_text(lines(prose))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    fixed = ("--test", "sharded_exact", "--permutations", "3", "--json")
    with serving(Network(model)) as server:
        url = f"http://127.0.0.1:{server.server_address[1]}/v1"
        where = ("--endpoint", url, "--tokenizer", model, "--context", "64")
        _, out, err = call("test", "m", data, *fixed, *where, "--store", tmp_path / "a")
        _, stopped, _ = call("test", "m", data, *fixed, "--stop", *where, "--store", tmp_path / "c")
    _, local, _ = call(
        "test", model, data, *fixed, "--precision", "float32", "--store", tmp_path / "b"
    )
    (far,), (near,) = (json.loads(text)["results"] for text in (out, local))
    assert far["statistic"] == pytest.approx(near["statistic"], abs=0.01)
    assert "requests" in err.splitlines()[-1]
    assert json.loads(out)["noise"] == json.loads(stopped)["noise"] == 0  # nats a token
    assert json.loads(local)["noise"] is None
    (run,) = (tmp_path / "a").rglob("run-*.json")
    assert json.loads(run.read_text())["noise"] == 0


def test_sglang_gives_the_p_value_of_the_model_itself(
    call, make_model, prose, tmp_path, monkeypatch
):
    """Of whole orderings, and of pairs, where the end of a prompt alone is asked for."""
    model, data = make_model(128), tmp_path / "prose.txt"
    data.write_text(lines(prose))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    wide = ("--precision", "float32", "--context", "120")  # eight less, which SGLang keeps
    with serving(Network(model), "generate") as server:
        where = ("--endpoint", server.url, "--tokenizer", model, "--context", "128")
        for test, (name, options) in product(
            ("sharded_exact", "successor"), {"m": where, model: wide}.items()
        ):
            fixed = ("--test", test, "--permutations", "3", "--json", "--store", tmp_path / "s")
            _, out, _ = call("test", name, data, *fixed, *options)
            (result,) = json.loads(out)["results"]
            if name == "m":
                far = result["statistic"]
            assert result["statistic"] == pytest.approx(far, abs=0.01)
    starts = [body["logprob_start_len"] for _, body in server.seen]
    assert min(starts) == 0 < max(starts)
