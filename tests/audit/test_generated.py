"""Audits of what a model writes: planted effects, the level, and what the command does."""

from itertools import pairwise

import pytest
import scipy.stats

from contamination.audit.generated import CHOICES, Writing, audit_written, letter_of, words
from contamination.audit.request import Request
from contamination.errors import InputError
from contamination.randomness import random_stream
from fakes.items import drawn_items, items_set
from fakes.remembering_scorer import made_up_set


class Writer:
    """Writes words of the record that it thinks comes next, else of any record, or nothing.

    `after` says which comes after which; `share` is how many of its texts follow it.
    """

    name, protocol, instruction, served = "writer", "local", "", ""

    def __init__(self, texts, after=None, *, share=0.3, silent=0.0, revision="writer"):
        self.texts, self.after, self.share, self.silent = list(texts), after or {}, share, silent
        self.revision = revision

    def generate(self, prompts, sampling):
        return [[self.text(p, i) for i in range(sampling.samples)] for p in prompts]

    def text(self, prompt, number):
        rng = random_stream(0, "made-up writer", prompt, number)
        if rng.random() < self.silent:
            return ""
        known = prompt in self.after and rng.random() < self.share
        text = self.after[prompt] if known else self.texts[rng.integers(len(self.texts))]
        return text[: rng.integers(5, len(text))]


SET = made_up_set(40, words=6)
NEXT = dict(pairwise(SET.examples))


def audit_of(writer, directory, test_set=SET, **request):
    return audit_written(Writing(writer, test_set, Request(directory=directory, **request)))


def test_who_has_memorised_the_order_is_found_and_who_knows_the_records_is_not(tmp_path):
    found = audit_of(Writer(SET.examples, NEXT), tmp_path / "a")
    (result,) = found.results
    assert (result.test, result.shards, result.permutations) == ("generated_successor", 1, 20_000)
    assert result.p < 1e-4
    assert found.findings[0].control.p > 0.05
    assert found.verdict(0.01).status == 1
    backwards = {b: a for a, b in NEXT.items()}
    for number, writer in enumerate((Writer(SET.examples), Writer(SET.examples, backwards))):
        other = audit_of(writer, tmp_path / f"b{number}")
        assert other.results[0].p > 0.01
        assert other.verdict(0.01).status == 0


def test_empty_and_unusable_texts_are_counted_and_named(tmp_path):
    found = audit_of(Writer([*SET.examples, "sorry, I will not do that"], silent=0.2), tmp_path)
    about = found.written
    assert about["texts"] == 16 * 40
    assert 0.1 < about["empty"] / about["texts"] < 0.3
    assert 0 < about["unusable"] < 0.2 * about["texts"]
    assert found.as_dict()["written"]["empty"] == about["empty"]
    with pytest.raises(InputError, match="all 640 texts were refused"):
        audit_of(Writer(SET.examples, silent=1.1), tmp_path / "silent")


def test_words_are_units_also_where_no_space_parts_them():
    assert words("A cat, 9!\n猫が x") == ["a", "cat", "9", "猫", "が", "x"]


# --- the quiz -------------------------------------------------------------------------------------


class Pupil(Writer):
    """Answers with the version that it knows to be published; else always with the same letter."""

    def __init__(self, published, *, known, habit="B", revision="pupil"):
        super().__init__([], revision=revision)
        self.published, self.known, self.habit = published, known, habit

    def text(self, prompt, number):
        for version in prompt.split("Version ")[1:]:
            letter, _, text = version.partition("\n")
            if any(text.startswith(one) for one in self.published[: self.known]):
                return f" {letter}. is it"
        return self.habit


ITEMS = items_set(drawn_items(120, 4), "{question} {choices:; } {answer}\n")
ASKED = 118  # two of them have an option twice
PUBLISHED = [text.strip() for text in ITEMS.examples]


def quiz_of(pupil, directory, **request):
    return audit_of(pupil, directory, ITEMS, axis="options", **request)


def test_a_habit_of_place_hits_by_chance_and_knowledge_is_counted(tmp_path):
    for habit in ("A", "D"):
        (result,) = quiz_of(Pupil(PUBLISHED, known=0, habit=habit), tmp_path / habit).results
        assert (result.shards, result.permutations) == (ASKED, CHOICES - 1)
        assert 1e-3 < result.p < 1 - 1e-3
        assert result.known_at_least == 0 or result.p <= 0.05
    hits = 0
    for seed in range(10):
        work = Writing(Writer([]), ITEMS, Request(axis="options", seed=seed, directory=tmp_path))
        hits += sum(right == "B" for _, right in work.questions)
    low, high = scipy.stats.binom.ppf([5e-4, 1 - 5e-4], 10 * ASKED, 1 / CHOICES)
    assert low <= hits <= high
    (result,) = quiz_of(Pupil(PUBLISHED, known=60), tmp_path / "k").results
    assert result.p < 1e-8
    assert 40 <= result.known_at_least <= 60
    none = quiz_of(Pupil(PUBLISHED, known=0, habit="perhaps"), tmp_path / "none")
    assert (none.results[0].p, none.written["unusable"]) == (1.0, ASKED)


def test_published_options_need_a_control_and_drawn_ones_do_not(tmp_path):
    knows = Pupil(PUBLISHED, known=60)
    assert quiz_of(knows, tmp_path).verdict(0.05).status == 3
    drawn = quiz_of(knows, tmp_path / "drawn", drawn=True)
    assert drawn.verdict(0.05).status == (
        1 if drawn.findings[0].diagnosis.verdict == "quiet" else 3
    )


def test_the_letter_that_an_answer_begins_with_counts():
    assert [letter_of(a) for a in (" B", "(C) is", "**D**.", "b", "Answer: A", "BC", "", "1")] == (
        ["B", "C", "D", None, None, None, None, None]
    )


@pytest.mark.parametrize(
    ("request_", "named"),
    [
        ({"tests": ["successor"]}, "--test"),
        ({"shards": 2}, "--shards"),
        ({"axis": "both"}, "one axis"),
        ({"permutations": 9}, "--permutations"),
        ({"axis": "options", "arrangements": 3}, "--arrangements"),
    ],
)
def test_what_cannot_be_asked_of_texts(request_, named, tmp_path):
    with pytest.raises(InputError, match=named):
        audit_of(Writer(SET.examples), tmp_path, **request_)


@pytest.mark.parametrize("test_set", [made_up_set(2), items_set(drawn_items(5, 2))])
def test_too_small_sets(test_set, tmp_path):
    axis = "order" if len(test_set.examples) == 2 else "options"
    with pytest.raises(InputError, match=r"fewer than 3|no item has|items may move"):
        audit_of(Writer([]), tmp_path, test_set, axis=axis)
