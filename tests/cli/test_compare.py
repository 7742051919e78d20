"""`contamination compare`, as a person types it."""

import json
import shutil
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from contamination.audit.comparison import STATED, Comparison
from contamination.audit.held_out import SidesRequest, compare
from contamination.audit.text_report import read_records
from contamination.errors import InputError
from contamination.membership.dated import Rules, build_dated_set
from contamination.testsets.example_set import ExampleSet, make_test_set
from contamination.testsets.tokens import tokenize
from fakes.made_up_registry import jsonl
from fakes.made_up_scorer import Breakdown, MadeUpScorer, log_probs_of
from fakes.results import comparison_of, result_of

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


def test_an_unread_set_is_no_evidence_and_scores_are_kept(typed, model_directory):
    status, out, _ = typed("--json")
    result = comparison_of(out)
    assert status == 0
    assert result["verdict"]["conclusion"] == "no evidence"
    assert [row["score"] for row in result["scores"]] == ["min_k_20", "loss", "zlib", "min_k_pp_20"]
    (kept,) = Path("contamination-stores", model_directory.name, "published").iterdir()
    before = {part: part.stat().st_mtime_ns for part in kept.iterdir()}
    assert typed("--json")[1] == out
    assert {part: part.stat().st_mtime_ns for part in kept.iterdir()} == before


def test_a_score_that_a_record_lacks_is_told(typed):
    asked = ("--score", "loss", "--score", "ppl_200")  # of texts of 200 tokens
    _, out, _ = typed(*asked, "--json")
    result = comparison_of(out)
    assert [row["score"] for row in result["scores"]] == ["loss"]
    assert result["left_out"] == ["ppl_200"]
    _, printed, _ = typed(*asked)
    assert "ppl_200" in printed


def test_a_control_and_strata_are_in_the_result(typed, make_model):
    _, out, _ = typed("--json", "--within", "source", "--control", make_model(120))
    result = comparison_of(out)
    assert result["strata"] == 2
    assert result["within"] == "source"
    assert result["read_at_least"] is None
    assert result["control_model"]["model_revision"] != result["model_revision"]
    assert result["control_model"]["draw"] == result["draw"] == STATED


def test_a_positive_verdict_without_a_control_asks_for_one(typed):
    """At this level p is small, and the baselines without a model are silent."""
    printed = " ".join(typed("--alpha", "0.5")[1].split())
    assert "evidence: p =" in printed
    assert "--control" in printed
    assert "--control" not in typed()[1]


# How a second comparison may differ, and what the first then says of it.
OTHER_TRIES = [
    (("--seed", "1"), "seed 1"),
    (("--score", "loss"), "scores loss; 999 draws; seed 0; statistic rank, other scores"),
    (("--resamples", "99"), "99 draws"),
    (("--within", "source"), "within source"),
    (("--paired",), "pairs"),
]


@pytest.mark.parametrize(("tried", "named"), OTHER_TRIES)
def test_a_second_try_is_told_beside_the_first_and_the_first_beside_the_second(typed, tried, named):
    assert comparison_of(typed("--json")[1])["other_tests"] == []
    (first,) = comparison_of(typed("--json", *tried)[1])["other_tests"]
    assert "seed 0" in first["what"]
    assert "999 draws" in first["what"]
    (second,) = comparison_of(typed("--json")[1])["other_tests"]
    assert named in second["what"]
    printed = " ".join(typed()[1].split())
    assert "1 other test of this model and set" in printed
    assert named in printed


def test_all_tries_are_told_and_a_test_of_the_order_tells_them_too(call, typed, model_directory):
    for seed in range(4):
        typed("--seed", str(seed))
    best = comparison_of(typed("--json", "--seed", "2")[1])
    assert len(best["other_tests"]) == 3
    order = ("published.jsonl", "--template", "{text}", "--test", "sharded_exact")
    _, out, _ = call("test", model_directory, *order, *PRECISION, "--json")
    of_order = result_of(out)["other_tests"]
    assert len(of_order) == 4
    assert all(other["what"].startswith("held_out (") for other in of_order)


def test_other_held_out_records_are_told_by_their_file(call, typed, model_directory):
    lines = Path("held_out.jsonl").read_text().splitlines(keepends=True)
    Path("fewer.jsonl").write_text("".join(lines[:12]))
    typed()
    fixed = (model_directory, "published.jsonl", "fewer.jsonl", "--template", "{text}", *PRECISION)
    (first,) = comparison_of(call("compare", *fixed, "--json")[1])["other_tests"]
    assert "other held-out records: held_out" in first["what"]
    (second,) = comparison_of(typed("--json")[1])["other_tests"]
    assert "other held-out records: fewer" in second["what"]


def test_files_hold_what_is_printed(typed):
    outputs = []
    for name in ("a.json", "b.eee.json", "c.conda.csv", "d.md"):
        outputs += ["--output", name]
    result = comparison_of(typed("--json", *outputs)[1])
    assert json.loads(Path("a.json").read_bytes()) == result
    (evaluation,) = json.loads(Path("b.eee.json").read_bytes())["evaluation_results"]
    assert evaluation["score_details"]["score"] == result["p"]
    assert len(Path("c.conda.csv").read_text().splitlines()) == 1
    assert result["verdict"]["reason"] in Path("d.md").read_text(encoding="utf-8")


def test_stores_alone_give_the_p_value_again_and_damage_is_named(call, typed):
    p = comparison_of(typed("--json")[1])["p"]
    typed("--seed", "1")
    status, out, _ = call("verify", "contamination-stores")
    assert status == 0
    assert out.count("held_out") == 2
    assert f"{p:.3g}" in out
    (scores,) = Path("contamination-stores").rglob("*.parquet")
    table = pd.read_parquet(scores)
    table.loc[0, "loss"] += 1.0
    table.to_parquet(scores)
    status, _, err = call("verify", "contamination-stores")
    assert status == 2
    assert "the scores are not those that were tested" in err
    scores.write_bytes(b"PAR1")
    assert str(scores) in call("verify", "contamination-stores")[2]
    assert comparison_of(typed("--json")[1])["p"] == p


@pytest.mark.parametrize(
    ("records", "arguments", "named"),
    [
        ([{"text": "the same text of a record"}], (), "record 1 of held_out"),
        ([{"other": "a field that is not there"}], (), "text"),
        ([{"text": "one record alone is no pair"}], ("--paired",), "paired"),
        ([{"text": "a record without a source"}], ("--within", "source"), "source"),
        ([{"text": "another score"}], ("--score", "luck"), "luck"),
        ([{"text": "no model for it"}], ("--score", "reference_ratio"), "reference"),
        ([{"text": "no neighbours"}], ("--score", "neighbour"), "neighbours"),
        ([{"text": "pairs in strata"}], ("--paired", "--within", "source"), "--within"),
        ([{"text": "strata that one side has", "source": 7}], ("--within", "source"), "'source'"),
        ([{"text": "a record that is long"}, {"text": ""}], (), "record 2 of held_out"),
        ([], (), "held_out.jsonl"),
        ([{"text": "a format"}], ("--output", "x.csv"), ".conda.csv"),
        ([{"text": "an output"}], ("--output", "held_out.jsonl"), "held_out.jsonl"),
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


def test_the_held_out_side_has_the_template_of_the_published_one(call, model_directory):
    """The message names the field that one side lacks."""
    Path("published.jsonl").write_bytes(jsonl([{"question": f"{i}?", "answer": "a"} for i in "ab"]))
    Path("held_out.jsonl").write_bytes(jsonl([{"question": f"{i}?"} for i in "cd"]))
    status, _, err = call("compare", model_directory, "published.jsonl", "held_out.jsonl")
    assert status == 2
    assert "held_out.jsonl, line 1: field 'answer' is missing" in err.splitlines()[-1]


def test_a_model_is_no_control_of_itself(call, typed, model_directory, sides):
    for control in (model_directory, shutil.copytree(model_directory, "copy")):
        status, out, err = typed("--control", control)
        assert status == 2
        assert out == ""
        assert "control" in err.splitlines()[-1]


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


def test_the_nats_a_character_are_those_of_the_texts_of_both_sides(tmp_path, tokenizer, prose):
    model = MadeUpScorer(tokenizer, batch_tokens=1_000)
    published = _set("published", [text[:60] for text in prose[:20]])
    held_out = _set("held out", [text[:60] for text in prose[20:40]])
    found = compare(model, published, held_out, _request(tmp_path))
    texts = [*published.examples, *held_out.examples]
    nats = 0.0
    for ids in tokenize(tokenizer, texts):
        nats -= log_probs_of(ids)[1:].sum(dtype=np.float64)
    characters = sum(len(text) for text in texts)
    assert found.nats_per_character == pytest.approx(nats / characters, rel=1e-4)
    other = replace(found, nats_per_character=9.0)
    told = replace(found, control=other).as_dict()["nats_per_character"]
    assert told == {"model": found.nats_per_character, "control": 9.0}


@pytest.mark.parametrize(("bound", "claims"), [(0, False), (3, True), (None, False)])
def test_a_bound_of_no_record_claims_none(tmp_path, tokenizer, prose, bound, claims):
    published = _set("published", [text[:60] for text in prose[:20]])
    held_out = _set("held out", [text[:60] for text in prose[20:40]])
    found = compare(Reader(tokenizer, 0.0), published, held_out, _request(tmp_path))
    lines = read_records(replace(found, read_bound=bound, read_records=()))
    assert any("at least" in line for line in lines) == claims
    assert bool(lines) == (bound is not None)


@pytest.mark.parametrize(
    ("level", "confidence", "rate"), [(0.05, "95%", "5%"), (0.001, "99.9%", "0.1%")]
)
def test_a_strict_level_is_not_rounded(six, level, confidence, rate):
    for bound in (0, 3):
        found = replace(six, level=level, read_bound=bound, read_records=(1,))
        first, second = read_records(found)
        assert f"(confidence {confidence})" in first
        assert f"rate of {rate}: " in second


def test_a_score_that_is_named_twice_is_refused() -> None:
    with pytest.raises(InputError, match="'loss' is named twice"):
        SidesRequest(scores=("loss", "min_k_20", "loss"))


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


def test_a_comparison_that_was_killed_goes_on_and_gives_the_same_bytes(tmp_path, tokenizer):
    rng = np.random.default_rng(2)
    texts = ["".join(rng.choice(list("abcdefgh "), size=4_000)) for _ in range(24)]
    sides = (_set("published", texts[:12]), _set("held_out", texts[12:]))
    whole = MadeUpScorer(tokenizer)
    expected = compare(whole, *sides, _request(tmp_path / "whole"))
    killed = MadeUpScorer(tokenizer, survives=whole.scored - 1)
    with pytest.raises(Breakdown):
        compare(killed, *sides, _request(tmp_path / "killed"))
    rest = MadeUpScorer(tokenizer)
    found = compare(rest, *sides, _request(tmp_path / "killed"))
    assert 0 < rest.scored < whole.scored
    assert found.result.p == expected.result.p
    files = sorted(expected.store.directory.iterdir())
    assert len(files) > 3
    for path in files:
        assert (found.store.directory / path.name).read_bytes() == path.read_bytes()


@pytest.fixture
def six(tmp_path, tokenizer) -> Comparison:
    """Compare three records a side, of which 1/20 is the least p."""
    texts = [f"{word} stones" for word in ("red", "blue", "green", "grey", "pink", "white")]
    sides = (_set("published", texts[:3]), _set("held_out", texts[3:]))
    return compare(Reader(tokenizer, 0.0), *sides, _request(tmp_path))


@pytest.mark.parametrize(("p", "objects"), [(0.05, True), (0.0501, False)])
def test_baselines_object_at_their_own_level(six, p, objects):
    compared = replace(six, blind=replace(six.blind, p=p))
    assert bool(compared.verdict().objections) == objects


@pytest.mark.parametrize("tests", [1, 3])
def test_the_least_p_of_a_comparison_is_corrected_as_its_p_is(six, tests):
    assert six.evidence(corrected_for=tests).floor == pytest.approx(tests / 20)


def test_more_records_are_called_read_at_a_larger_level(tmp_path, tokenizer):
    texts = [f"stone {number}" for number in range(80)]
    published = _set("published", [f"{text} read" for text in texts[:40]])
    asked = SidesRequest(scores=("loss",), resamples=99, directory=tmp_path, drawn=True)
    read = []
    for level in (0.05, 0.5):
        sides = (published, _set("held_out", texts[40:]), asked)
        read.append(compare(Reader(tokenizer, 1.0), *sides, level=level).read_records)
    assert set(read[0]) < set(read[1])
