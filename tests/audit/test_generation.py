"""Audits of what a model writes: planted effects, the level, and what the command does."""

import json
from dataclasses import replace
from itertools import pairwise, permutations
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.stats

from contamination import statistics
from contamination.audit import generation_plan
from contamination.audit.generated_texts import letter_of, words
from contamination.audit.generation import audit_generation
from contamination.audit.generation_plan import GenerationAudit
from contamination.audit.request import CHOICES, Request
from contamination.errors import InputError
from contamination.randomness import random_stream
from fakes.items import drawn_items, items_set
from fakes.remembering_scorer import made_up_set


class Writer:
    """Writes words of the record that it thinks comes next, else of any record, or nothing.

    `after` says which comes after which; `share` is how many of its texts follow it.
    """

    name, protocol, instruction, served = "writer", "local", "", ""
    left_out = ()

    def __init__(self, texts, after=None, *, share=0.3, silent=0.0, revision="writer"):
        self.texts = list(texts)
        self.after = after or {}
        self.share = share
        self.silent = silent
        self.revision = revision

    def generate(self, prompts, sampling):
        answers = []
        for prompt in prompts:
            answers.append([self.text(prompt, i) for i in range(sampling.samples)])
        return answers

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
    return audit_generation(
        GenerationAudit(writer, test_set, Request(directory=directory, **request))
    )


def test_who_has_memorised_the_order_is_found_and_who_knows_the_records_is_not(tmp_path):
    found = audit_of(Writer(SET.examples, NEXT), tmp_path / "a")
    (result,) = found.results
    assert result.test == "generated_successor"
    assert result.shards == 1
    assert result.permutations == 20_000
    assert result.p < 1e-4
    assert found.findings[0].zlib.p > 0.05
    assert found.verdict(0.01).status == 1
    backwards = {b: a for a, b in NEXT.items()}
    for number, writer in enumerate((Writer(SET.examples), Writer(SET.examples, backwards))):
        other = audit_of(writer, tmp_path / f"b{number}")
        assert other.results[0].p > 0.01
        assert other.verdict(0.01).status == 0


def test_empty_and_unusable_texts_are_counted_and_named(tmp_path):
    found = audit_of(Writer([*SET.examples, "sorry, I will not do that"], silent=0.2), tmp_path)
    about = found.generation
    assert about["texts"] == 16 * 40
    assert 0.1 < about["empty"] / about["texts"] < 0.3
    assert 0 < about["unusable"] < 0.2 * about["texts"]
    assert found.as_dict()["written"]["empty"] == about["empty"]
    assert about["repeated"] == 0
    assert found.verdict(0.01).conclusion == "no evidence"


class Says(Writer):
    """Writes the same to every prompt, but to the first `few` what a model might."""

    def __init__(self, text, few=0):
        super().__init__(SET.examples, revision=f"{text} {few}")
        self.said, self.few = text, few

    def text(self, prompt, number):
        known = prompt in SET.examples[: self.few]
        return super().text(prompt, number) if known else self.said


USELESS = {
    "all empty": (Says(""), "empty", 640),
    "nearly all empty": (Says(" ", few=1), "empty", 624),
    "all the same": (Says("so " + SET.examples[7] + SET.examples[8]), "repeated", 640),
    "all refused in words": (Says("I cannot do that."), "unusable", 640),
}


@pytest.mark.parametrize(("writer", "count", "number"), USELESS.values(), ids=USELESS)
def test_texts_of_no_use_are_no_sign_that_nothing_was_read(writer, count, number, tmp_path):
    found = audit_of(writer, tmp_path)
    assert found.generation[count] == number
    assert found.results[0].p > 0.05
    verdict = found.verdict(0.05)
    assert verdict.conclusion == "cannot say"
    assert "of 640 texts are of use" in verdict.reason
    assert "give more tokens" in verdict.reason


def test_who_repeats_what_he_is_sent_says_nothing_about_the_next_record(tmp_path):
    test_set = replace(SET, examples=tuple(f"a{i} b{i} c{i}\n" for i in range(20)))
    found = audit_of(Answers(lambda prompt: prompt), tmp_path, test_set)
    assert found.generation["unusable"] == found.generation["texts"]
    assert found.verdict().conclusion == "cannot say"


def test_few_texts_that_recite_the_order_are_a_proof_all_the_same(tmp_path):
    """What is of no use takes evidence away, and never adds any."""
    found = audit_of(Writer(SET.examples, NEXT, share=1.0, silent=0.7), tmp_path)
    assert found.findings[0].answers_problem
    assert found.verdict(0.01).status == 1


@pytest.mark.parametrize("answer", ["", "I do not know", "E", "B"])
def test_answers_that_depend_on_no_question_are_no_sign_either(answer, tmp_path):
    assert quiz_of(Pupil(PUBLISHED, known=0, habit=answer), tmp_path).verdict().status == 3


def test_records_without_a_word_are_refused_before_anything_is_written(tmp_path):
    lines = ["!" * length + "\n" for length in range(1, 9)]  # plain: a count
    signs = replace(SET, examples=tuple(lines))
    with pytest.raises(InputError, match="0 records have a word"):
        audit_of(Writer(SET.examples), tmp_path, signs)
    with pytest.raises(InputError, match="no record has a word"):
        statistics.generated_successors([[], []], [[], []])
    some = replace(SET, examples=(*SET.examples, "!!\n"))
    assert audit_of(Writer(SET.examples), tmp_path, some).verdict(0.01).status == 0


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
        assert result.shards == ASKED
        assert result.permutations == CHOICES - 1
        assert 1e-3 < result.p < 1 - 1e-3
        assert result.known_at_least == 0 or result.p <= 0.05
    hits = 0
    for _ in range(10):
        work = GenerationAudit(
            Writer([]), ITEMS, Request(axis="options", directory=tmp_path / "new")
        )
        hits += sum(right == "B" for _, right in work.questions)
    low, high = scipy.stats.binom.ppf([5e-4, 1 - 5e-4], 10 * ASKED, 1 / CHOICES)
    assert low <= hits <= high
    (result,) = quiz_of(Pupil(PUBLISHED, known=60), tmp_path / "k").results
    assert result.p < 1e-8
    assert 40 <= result.known_at_least <= 60
    none = quiz_of(Pupil(PUBLISHED, known=0, habit="perhaps"), tmp_path / "none")
    assert none.results[0].p == 1.0
    assert none.generation["unusable"] == ASKED


def test_the_secret_of_a_quiz_is_new_each_time_and_kept_in_its_store(tmp_path):
    """Nobody can compute places and arrangements from the seed; a run that goes on knows them."""

    def work_in(folder, axis="options", **more):
        next_record = axis == "order"
        asked = Request(axis=axis, directory=tmp_path / folder)
        return GenerationAudit(
            Pupil(PUBLISHED, known=0), ITEMS, asked, next_record=next_record, **more
        )

    for axis in ("options", "order"):
        before = work_in("kept", axis)
        assert before.questions != work_in("kept", axis).questions  # not kept before it is asked
        audit_generation(before)
        after = work_in("kept", axis)
        assert after.questions == before.questions
        assert after.plan.missing == 0
        assert work_in("other", axis).questions != before.questions
        secret = before.store.header.secret
        assert work_in("other", axis, secret=secret).questions == before.questions
    # Beside the published arrangement: which others, whatever their places.
    shown = [{*row} for row in before.variants.texts]
    assert shown != [{*row} for row in work_in("other").variants.texts]
    with pytest.raises(InputError, match="another secret"):
        audit_generation(work_in("kept", secret="0" * 32))
    with pytest.raises(InputError, match="secret: give 32"):
        work_in("kept", secret="7")


@pytest.mark.parametrize("axis", ["options", "order"])
def test_who_makes_the_quiz_himself_by_the_public_code_hits_by_chance(axis, tmp_path):
    """He has the code, the set and the request, and looks the right letters up."""

    def work_of(by, folder):
        asked = Request(axis=axis, directory=tmp_path / folder)
        return GenerationAudit(by, ITEMS, asked, next_record=axis == "order")

    letters = dict(work_of(Writer([]), "his").questions)
    reader = Answers(lambda prompt: letters.get(prompt, "ABCD"[len(prompt) % 4]))
    (result,) = audit_generation(work_of(reader, "ours")).results
    assert result.p > 1e-3


def test_a_quiz_from_before_there_were_secrets_is_not_gone_on_with(tmp_path):
    work = GenerationAudit(
        Pupil(PUBLISHED, known=0), ITEMS, Request(axis="options", directory=tmp_path)
    )
    audit_generation(work)
    path = work.folder / "completions.json"
    fields = json.loads(path.read_text())
    del fields["secret"]
    path.write_text(json.dumps(fields))
    again = GenerationAudit(work.generator, ITEMS, work.request)
    with pytest.raises(InputError, match="drawn from the seed"):
        audit_generation(again)


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
        ({"tests": ["successor"]}, "tests is for"),
        ({"shards": 2}, "shards is for"),
        ({"axis": "both"}, "one axis"),
        ({"permutations": 9}, "permutations is for"),
        ({"axis": "options", "arrangements": 3}, "arrangements is for"),
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


# --- which record comes next ----------------------------------------------------------------------

HABITS = {
    "a letter": lambda prompt: "B",
    "a favourite": lambda prompt: "ABCD"[int(np.argmin(candidates(prompt)))],
    "anything": lambda prompt: "ABCD"[random_stream(0, "habit", prompt).integers(4)],
}


def candidates(prompt: str) -> list[str]:
    return [part.split("\n")[1] for part in prompt.split("Version ")[1:5]]


@pytest.mark.parametrize("habit", HABITS)
def test_over_all_orders_and_places_each_answer_hits_a_quarter_of_them(monkeypatch, habit):
    """The five records of one question in all 5! orders, by all 4! draws of the places."""
    five, hits = [*SET.examples[:5]], 0
    for places in permutations(range(CHOICES)):
        drawn = SimpleNamespace(permutation=lambda n, places=places: np.array(places))
        monkeypatch.setattr(generation_plan, "random_stream", lambda *_, drawn=drawn: drawn)
        for order in permutations(five):
            work = GenerationAudit(
                Writer([]), replace(SET, examples=order), Request(), next_record=True
            )
            ((prompt, right),) = work.questions
            assert prompt.index(order[0].strip()) < prompt.index("Version A")
            assert candidates(prompt)["ABCD".index(right)] == order[1].strip()
            assert sorted(candidates(prompt)) == sorted(text.strip() for text in order[1:])
            hits += right == HABITS[habit](prompt)
    assert hits == 120 * 24 / CHOICES


class Answers(Writer):
    """Answers by a rule of the prompt."""

    def __init__(self, rule):
        super().__init__([])
        self.rule = rule

    def text(self, prompt, number):
        return self.rule(prompt)


def test_redrawn_orders_keep_the_level_of_a_quiz_about_records():
    """1,000 orders of 40 records, eight questions each, by a model with two habits."""
    rng = np.random.default_rng(2)
    p = []
    for i in range(1_000):
        order = tuple(SET.examples[j] for j in rng.permutation(len(SET.examples)))
        asked = Request(seed=i)
        work = GenerationAudit(Writer([]), replace(SET, examples=order), asked, next_record=True)
        rule = HABITS["a letter" if i % 2 else "a favourite"]
        hits = [rule(prompt) == right for prompt, right in work.questions]
        assert len(hits) == 8
        p.append(statistics.quiz_test(hits, choices=4, test="t", alpha=0.05).p)
    for level in (0.03, 0.12, 0.33):  # 5, 4, 3 hits or more
        reached = scipy.stats.binom.sf(range(-1, 8), 8, 1 / 4)
        rate = max(each for each in reached if each <= level)
        low, high = scipy.stats.binom.ppf([5e-4, 1 - 5e-4], 1_000, rate)
        assert low <= np.sum(np.array(p) <= level) <= high


def test_who_knows_what_comes_next_is_found_by_the_quiz_about_records(tmp_path):
    def knows(prompt: str) -> str:
        cue = prompt.split("\n\n")[1] + "\n"
        return "ABCD"[candidates(prompt).index(NEXT[cue].strip())]

    request = Request(directory=tmp_path)
    found = audit_generation(GenerationAudit(Answers(knows), SET, request, next_record=True))
    (result,) = found.results
    assert result.test == "record_quiz"
    assert result.shards == 8
    assert result.permutations == 3
    assert result.p == pytest.approx(4**-8)
    assert result.known_at_least == 6
    assert found.verdict(0.05).status == 1
    with pytest.raises(InputError, match="leave out axis='options'"):
        GenerationAudit(Writer([]), ITEMS, Request(axis="options"), next_record=True)
