"""`contamination test --access generate`, of a model here and behind loopback servers."""

import json
from pathlib import Path

import pytest

from contamination.scoring.generation import LocalGenerator
from contamination.scoring.local import TransformersScorer
from fakes.completions_server import serving
from fakes.items import drawn_items
from fakes.made_up_registry import jsonl
from fakes.results import result_of

WRITE = ("--access", "generate", "--samples", "3", "--tokens", "6")


@pytest.fixture(scope="module")
def model(make_model) -> Path:
    return make_model(96)


@pytest.fixture(scope="module")
def writer(model) -> LocalGenerator:
    return LocalGenerator(TransformersScorer(model), "tiny")


@pytest.fixture
def write(call, model, prose):
    rows = [json.dumps({"text": text[:40]}) + "\n" for text in prose[:40]]
    Path("set.jsonl").write_text("".join(rows), encoding="utf-8")

    def run(*arguments, name=model):
        return call("test", name, "set.jsonl", "--store", "stores", *WRITE, *arguments)

    return run


def test_json_and_people_get_the_same_and_nothing_is_written_twice(write, monkeypatch):
    status, out, _ = write("--json", "--control", "copy", name="missing/model/here")
    assert status == 2
    found = result_of(write("--json")[1])
    assert [result["test"] for result in found["results"]] == ["generated_successor"]
    assert found["written"]["texts"] == 120
    assert found["written"]["protocol"] == "local"
    assert found["results"][0]["min_p"] == pytest.approx(1 / 20_001)
    monkeypatch.setattr(LocalGenerator, "generate", lambda *_: pytest.fail("again"))
    status, out, _ = write("--alpha", "1e-4")
    assert status == 3
    assert "120 texts" in out
    assert "the zlib baseline" in out
    assert "texts are of use" in out  # a random model writes no words of the set


def test_another_number_of_records_is_one_more_test_in_both_results(write):
    found = []
    for number in (30, 20, 30):
        found.append(result_of(write("--json", "--max-records", number)[1]))
    assert [each["plan"]["examples"] for each in found] == [30, 20, 30]
    assert [len(each["other_tests"]) for each in found] == [0, 1, 1]
    assert "other records" in found[2]["other_tests"][0]["what"]


def test_a_dry_run_names_the_price_and_keeps_nothing(write):
    plan = json.loads(write("--dry-run", "--json", "--price-in", "2", "--price-out", "10")[1])
    (rows,) = plan.values()
    assert rows["requests"] == 40
    assert rows["tokens out, at most"] == 40 * 3 * 6
    price = (rows["tokens in, about"] * 2 + 720 * 10) / 1e6
    assert float(rows["price, about"]) == pytest.approx(price, rel=1e-3)
    assert not Path("stores").exists()
    write()
    assert json.loads(write("--dry-run", "--json")[1]).popitem()[1]["requests"] == 0


def test_the_quiz_by_command(call, model, writer):
    Path("quiz.jsonl").write_bytes(jsonl(drawn_items(20, 3)))
    arguments = ("quiz.jsonl", "--access", "generate", "--axis", "options", "--json")
    with serving(None, "chat", writer) as server:
        status, out, _ = call("test", "tiny", *arguments, "--endpoint", server.url)
        assert "Version D" in server.seen[0][1]["messages"][0]["content"]
    found = result_of(out)
    assert found["results"][0]["test"] == "arrangement_quiz"
    assert status == 3
    assert found["results"][0]["known_at_least"] == 0
    assert found["results"][0]["p"] == 1.0


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--temperature", "0"), "--temperature 0"),
        (("--stop",), "--stop"),
        # Before the server is asked: nothing answers there.
        (("--quiz", "--axis", "options", "--endpoint", "http://127.0.0.1:1/v1"), "leave out --ax"),
        (("--quiz",), "the quiz asks for one letter"),
        (("--endpoint", "http://127.0.0.1:1/v1", "--tokenizer", "x"), "--tokenizer"),
        (("--endpoint", "http://127.0.0.1:1/v1"), "cannot be reached"),
        (("--tokens", "96"), "tokens is 96"),
        (("--access", "logprobs"), "--samples goes with --access generate"),
    ],
)
def test_bad_input_is_one_line(options, named, refused, model, write):
    assert named in refused("test", model, "set.jsonl", "--store", "stores", *WRITE, *options)
