"""Each p-value names the tests of its model and set by other commands."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contamination.audit import Request, run_audit
from contamination.audit.export import format_of
from contamination.audit.generation import audit_generation
from contamination.audit.generation_plan import GenerationAudit
from contamination.audit.many import audit_pairs
from contamination.audit.other_tests import OtherTest, other_tests_in_words
from contamination.audit.rows import judged_rows
from contamination.errors import InputError
from contamination.files import sha256_of
from contamination.scoring.generation import Sampling
from fakes.made_up_scorer import MadeUpScorer
from fakes.remembering_scorer import made_up_set
from fakes.results import result_of

SET = made_up_set(20)
FEWER = replace(SET, examples=SET.examples[:19], revision="19 records")


class Parrot:
    """Write what it has read, as far as a scorer can be asked to."""

    name, revision, protocol, instruction, served = "m", "weights-1", "local", "", ""
    left_out = ()

    def generate(self, prompts, sampling):
        return [[prompt] * sampling.samples for prompt in prompts]


@pytest.fixture
def scorer(tokenizer) -> MadeUpScorer:
    return MadeUpScorer(tokenizer)


@pytest.fixture
def ask(scorer, tmp_path):
    def run(test: str, **asked):
        fixed = {"permutations": 5, "directory": tmp_path / "stores", "name": "m"}
        return run_audit(scorer, asked.pop("of", SET), Request([test], **(fixed | asked)))

    return run


def others(found) -> list[str]:
    return [other.what for other in found.other_tests]


# What a second test may ask for, and how it is named beside the first.
OTHER_TESTS = [
    ({"shards": 2}, ("sharded_exact", "2 shards")),
    ({"test": "sharded_t"}, ("sharded_t", "5 shards")),  # reads the same numbers
    ({"test": "successor"}, ("successor", "2 shards")),
    ({"permutations": 3}, ("sharded_exact", "3 permutations")),
    ({"shards": 2, "seed": 1}, ("2 shards", "another seed")),
    ({"of": FEWER}, ("4 shards", "other records")),
    ({"of": FEWER, "shards": 5}, ("5 shards", "other records")),
    ({"of": FEWER, "test": "successor", "shards": 1}, ("successor", "1 shards")),
]


@pytest.mark.parametrize(("asked", "named"), OTHER_TESTS)
def test_a_second_test_knows_of_the_first_and_the_first_of_the_second(ask, asked, named):
    assert others(ask("sharded_exact")) == []
    second = ask(**({"test": "sharded_exact"} | asked))
    (first,) = others(second)
    assert "sharded_exact" in first
    assert "5 permutations" in first
    again = ask("sharded_exact")
    (other,) = others(again)
    assert all(each in other for each in named)
    assert sum("1 other test" in line for line in again.notes()) == 1
    assert other in again.summary()


def test_the_same_test_again_is_no_other_test(ask):
    for _ in range(2):
        assert others(ask("sharded_exact")) == []


def test_other_models_and_other_sets_are_no_other_tests(ask):
    ask("sharded_exact", name="another model")
    ask("sharded_exact", of=replace(SET, name="another set"))
    assert others(ask("sharded_exact")) == []


def test_texts_at_another_temperature_are_another_test(tmp_path, ask):
    for temperature in (0.5, 0.8):
        sampling = Sampling(samples=2, tokens=4, temperature=temperature)
        request = Request(directory=tmp_path / "stores", name="m")
        written = audit_generation(GenerationAudit(Parrot(), SET, request, sampling))
    (other,) = others(written)
    assert "temperature 0.5" in other
    by_log_probs = others(ask("sharded_exact"))
    assert sorted("temperature" in each for each in by_log_probs) == [True, True]


def first_records(number: int):
    """Return the first records of one set, as `--max-records` takes them."""
    texts = made_up_set(22).examples[:number]
    return replace(made_up_set(22), examples=texts, revision=sha256_of(*texts))


# The quiz of 20 records has as many questions as that of 22.
@pytest.mark.parametrize("numbers", [(20, 19), (19, 20), (20, 22)])
@pytest.mark.parametrize("next_record", [False, True], ids=["texts", "quiz"])
def test_texts_about_another_number_of_records_are_another_test(numbers, next_record, tmp_path):
    writer = Parrot()

    def run(number: int):
        request = Request(directory=tmp_path, name="m")
        work = GenerationAudit(writer, first_records(number), request, next_record=next_record)
        return audit_generation(work)

    first = run(numbers[0])
    assert others(first) == []
    second = run(numbers[1])
    writer.generate = None  # nothing is asked again
    again = run(numbers[0])
    assert again.results[0].p == first.results[0].p
    for found in (second, again):
        (other,) = others(found)
        assert "other records" in other
        assert sum("1 other test" in line for line in found.notes()) == 1


def test_texts_about_a_set_that_was_changed_are_no_second_test(tmp_path):
    """Its store is out of date, as those of log-probabilities are."""
    request = Request(directory=tmp_path, name="m")
    audit_generation(GenerationAudit(Parrot(), SET, request))
    changed = replace(SET, examples=SET.examples[::-1], revision="changed")
    with pytest.raises(InputError, match="another dataset revision"):
        audit_generation(GenerationAudit(Parrot(), changed, request))


@given(counts=st.lists(st.integers(1, 4), min_size=1, max_size=8))
def test_tests_in_the_same_words_are_told_once_and_all_are_counted(counts):
    told = []
    for number, times in enumerate(counts):
        told += [OtherTest(f"store {number}", f"kind {number}")] * times
    words = other_tests_in_words(told)
    assert words.startswith(f"{len(told)} other test")
    counted = 0
    for number, times in enumerate(counts[:5]):
        assert words.count(f"kind {number}") == 1
        assert (f"kind {number}, {times} times" in words) == (times > 1)
        counted += times
    assert (f"{len(told) - counted} more" in words) == (len(counts) > 5)


def test_all_formats_tell(ask):
    ask("sharded_exact")
    found = result_of(json.dumps(ask("sharded_exact", shards=2).as_dict()))
    (other,) = found["other_tests"]
    assert Path(other["store"]).is_dir()
    for name in ("a.json", "a.eee.json", "a.md"):
        assert other["what"] in format_of(Path(name))(found)


def test_an_audit_of_many_sets_tells_by_pair(ask, scorer, tmp_path):
    ask("sharded_exact", shards=2)
    request = Request(["sharded_exact"], permutations=5, directory=tmp_path / "stores")
    sets = {"words": lambda: SET, "more": lambda: replace(SET, name="more")}
    rows = judged_rows([*audit_pairs(["m"], sets, request, lambda name: scorer)], alpha=0.05)
    assert ["2 shards" in row["other tests"] for row in rows] == [True, False]


def test_a_store_that_cannot_be_written_is_tested_all_the_same(ask, monkeypatch):
    from contamination.audit import other_tests

    def full(path, value):
        raise InputError(f"{path}: cannot be written")

    monkeypatch.setattr(other_tests, "write_json", full)
    assert others(ask("sharded_exact")) == []


@pytest.mark.parametrize(
    ("changed", "named"),
    [({"seed": 1}, "seed"), ({"of": replace(SET, template="x", revision="y")}, "template")],
)
def test_a_second_seed_or_template_is_no_reason_for_a_second_store(ask, changed, named):
    """Where another one was tested, the advice is not to go where nobody sees it."""
    ask("sharded_exact")
    with pytest.raises(InputError, match=f"another {named}") as caught:
        ask("sharded_exact", **changed)
    assert "another directory" not in str(caught.value)


@pytest.mark.parametrize("content", ["", "[]", '{"kind": {}, "shards": [], "temperature": "x"}'])
def test_a_damaged_store_beside_is_no_reason_to_end(ask, content):
    ask("sharded_exact", shards=2)
    (other,) = ask("sharded_exact").other_tests
    for file in Path(other.store).glob("*.json"):
        file.write_text(content)
    assert [each.store for each in ask("sharded_exact").other_tests] == [other.store]
