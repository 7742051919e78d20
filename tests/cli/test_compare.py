"""`contamination compare`, as a person types it."""

import json
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from contamination.audit.held_out import SidesRequest, compare
from contamination.errors import InputError
from contamination.membership.dated import Rules, build_dated_set
from contamination.testsets.example_set import ExampleSet, make_test_set
from fakes.made_up_registry import jsonl

PRECISION = ("--precision", "float32")


def _records(texts: list[str]) -> list[dict[str, object]]:
    return [{"text": text, "source": number % 2} for number, text in enumerate(texts)]


@pytest.fixture
def sides(prose):
    """Write sixteen published and as many held-out records, cut from the same prose."""
    texts = [text[:60] for text in prose[:32]]
    Path("published.jsonl").write_bytes(jsonl(_records(texts[::2])))
    Path("held_out.jsonl").write_bytes(jsonl(_records(texts[1::2])))


@pytest.fixture
def typed(call, model_directory, sides):
    fixed = (model_directory, "published.jsonl", "held_out.jsonl", "--template", "{text}")
    return lambda *more: call("compare", *fixed, *PRECISION, "--resamples", "999", *more)


def test_an_unread_set_is_no_evidence_and_scores_are_kept(typed):
    status, out, _ = typed("--json")
    result = json.loads(out)
    assert status == 0
    assert result["verdict"]["conclusion"] == "no evidence"
    assert [row["score"] for row in result["scores"]] == ["min_k_20", "loss", "zlib", "min_k_pp_20"]
    (kept,) = Path("contamination-stores/held-out").iterdir()
    before = {part: part.stat().st_mtime_ns for part in kept.iterdir()}
    assert typed("--json")[1] == out
    assert {part: part.stat().st_mtime_ns for part in kept.iterdir()} == before


def test_a_control_and_strata_are_in_the_result(typed, model_directory):
    _, out, _ = typed("--json", "--within", "source", "--control", model_directory)
    result = json.loads(out)
    assert result["strata"] == 2
    assert result["read_at_least"] is None
    assert result["control_model"]["p"] == pytest.approx(result["p"], abs=0.1)


@pytest.mark.parametrize(
    ("records", "arguments", "named"),
    [
        ([{"text": "the same text of a record"}], (), "record 1 of held_out"),
        ([{"other": "a field that is not there"}], (), "text"),
        ([{"text": "one record alone is no pair"}], ("--paired",), "paired"),
        ([{"text": "a record without a source"}], ("--within", "source"), "source"),
        ([{"text": "another score"}], ("--score", "luck"), "luck"),
        ([{"text": "pairs in strata"}], ("--paired", "--within", "source"), "--within"),
        ([], (), "held_out.jsonl"),
    ],
)
def test_bad_input_is_one_line(typed, records, arguments, named):
    published = [{"text": "the same text of a record", "source": 1}, {"text": "b c", "source": 1}]
    Path("published.jsonl").write_bytes(jsonl(published))
    Path("held_out.jsonl").write_bytes(jsonl(records))
    status, out, err = typed(*arguments)
    assert status == 2
    assert out == ""
    assert named in err.splitlines()[-1]


class Reader:
    """A scorer of made-up numbers: texts with a mark are likelier by so many nats a token."""

    batch_tokens = 1_000
    revision = "f" * 64
    name = "reader"

    def __init__(self, tokenizer: object, effect: float, mark: str = "read") -> None:
        self.tokenizer = tokenizer
        self.effect = effect
        self.mark = mark

    def token_logprobs(self, sequences, *_):
        rng = np.random.default_rng(0)
        for number, ids in enumerate(sequences):
            read = self.mark in self.tokenizer.decode(ids)
            yield number, rng.normal(-4, 1, size=len(ids)) + self.effect * read


def _set(name: str, texts: list[str]) -> ExampleSet:
    return make_test_set(name, [(str(i), {"text": t}) for i, t in enumerate(texts)], "{text}", name)


def _request(directory: Path) -> SidesRequest:
    return SidesRequest(scores=("min_k_20", "loss"), resamples=9_999, directory=directory)


def test_read_records_are_found_unless_the_sides_differ(tmp_path, tokenizer):
    """The word that tells the made-up model what to prefer tells the baselines as well."""
    rng = np.random.default_rng(1)
    words = np.array(["red", "blue", "green", "stone", "river", "seven", "paper", "cloud"])
    texts = [" ".join(rng.choice(words, size=12)) for _ in range(80)]
    held_out = _set("held_out", texts[40:])
    marked = _set("published", [f"{text} read" for text in texts[:40]])
    found = compare(Reader(tokenizer, 1.0), marked, held_out, _request(tmp_path))
    assert found.result.p == pytest.approx(1e-4)
    assert found.verdict().conclusion == "sides are no evidence here"
    assert found.blind.p_values["words"] < 0.01
    drawn = SidesRequest(scores=("loss",), resamples=9_999, directory=tmp_path, drawn=True)
    proven = compare(Reader(tokenizer, 1.0), marked, held_out, drawn)
    assert proven.verdict().conclusion == "proven"
    assert proven.read_bound > 20


def _dated_sides(directory: Path) -> tuple[ExampleSet, ExampleSet]:
    """Build a benchmark of pages from two times, which differ by nothing but their years."""
    rng = np.random.default_rng(2)
    words = np.array(["red", "blue", "green", "stone", "river", "seven", "paper", "cloud"])
    pages = []
    for number in range(80):
        year = rng.integers(2010, 2019) if number % 2 else rng.integers(2023, 2026)
        text = f"In {year} the {' '.join(rng.choice(words, size=12))} was built"
        pages.append({"title": str(number), "text": text, "date": f"{year}-06-01"})
    path = directory / "pages.jsonl"
    path.write_bytes(jsonl(pages))
    build_dated_set(path, directory / "made", Rules(cutoff=date(2020, 1, 1), lengths=(12,)))
    texts: dict[int, list[str]] = {0: [], 1: []}
    for line in (directory / "made" / "WikiMIA_length12.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        texts[row["label"]].append(row["input"])
    return _set("older", texts[1]), _set("newer", texts[0])


@pytest.mark.parametrize("effect", [-1.0, 0.0, 1.0])
def test_dated_sides_are_no_evidence_whatever_the_model_says(tmp_path, tokenizer, effect):
    """A model that prefers older texts, or newer ones, or neither, gets the same verdict."""
    older, newer = _dated_sides(tmp_path)
    model = Reader(tokenizer, effect, mark="In 201")
    found = compare(model, older, newer, _request(tmp_path))
    verdict = found.verdict()
    assert verdict.conclusion == "sides are no evidence here"
    assert verdict.status == 3
    assert found.blind.p_values["dates"] < 0.01


def test_too_few_records_cannot_say(tmp_path, tokenizer):
    """Two divisions of one record a side have no p below one half."""
    one = _set("published", ["red stones are read"])
    other = _set("held_out", ["blue clouds are not"])
    found = compare(Reader(tokenizer, 5.0), one, other, _request(tmp_path))
    assert found.verdict().conclusion == "cannot say"


def test_sets_of_two_templates_are_refused(tmp_path, tokenizer):
    one = make_test_set("a", [("1", {"text": "x y"})], "{text}", "a")
    other = make_test_set("b", [("1", {"text": "z y"})], "{text}\n", "b")
    with pytest.raises(InputError, match="template"):
        compare(Reader(tokenizer, 0.0), one, other, _request(tmp_path))
