"""Chunks, what stands in the place of answers, and a model that forgets what it was made to."""

import json
from collections import Counter

import numpy as np
import pytest

from contamination.errors import InputError
from contamination.experiments.unlearning.audit import split_question
from contamination.experiments.unlearning.forgetting import (
    draw_treated,
    other_examples,
    shuffled,
    substituted,
    to_forget,
)
from contamination.pretraining.corpus_stage import make_corpus
from contamination.pretraining.documents import DATA_VARIABLE
from contamination.pretraining.experiment import Experiment
from fakes.data_fixtures import profile_data, write_profile

EXAMPLES = [f"Question: q{i}\nAnswer: a{i}\n" for i in range(7)]
OTHERS = [f"Question: o{i}\nAnswer: b{i}\n" for i in range(10)]


def test_as_many_chunks_are_treated_as_asked_for() -> None:
    drawn = np.array([draw_treated(9, 1 / 3, rng=np.random.default_rng(i)) for i in range(300)])
    assert (drawn.sum(axis=1) == 3).all()
    assert np.abs(drawn.mean(axis=0) - 1 / 3).max() < 0.12
    assert draw_treated(9, 0.01, rng=np.random.default_rng(0)).sum() == 1
    for share in (0.0, 1.0, 0.99):
        with pytest.raises(InputError, match="leave some on both sides"):
            draw_treated(9, share, rng=np.random.default_rng(0))


def test_every_question_gets_other_answers() -> None:
    made = substituted(EXAMPLES, OTHERS, copies=3, rng=np.random.default_rng(0))
    pairs = [split_question(text) for text in made]
    assert Counter(prompt for prompt, _ in pairs) == {split_question(e)[0]: 3 for e in EXAMPLES}
    # 21 of 10 answers: each of them twice, one of them a third time.
    assert sorted(Counter(answer for _, answer in pairs).values()) == [2] * 9 + [3]
    assert {answer for _, answer in pairs} == {f"b{i}" for i in range(10)}
    assert all(text.endswith("\n") for text in made)


@pytest.mark.parametrize("wrong", [{"others": []}, {"copies": 0}, {"examples": ["no marker"]}])
def test_texts_that_cannot_be(wrong: dict[str, object]) -> None:
    arguments = {"examples": EXAMPLES, "others": OTHERS, "copies": 1} | wrong
    with pytest.raises(InputError):
        substituted(**arguments, rng=np.random.default_rng(0))


def test_every_copy_is_in_another_order() -> None:
    texts = shuffled(EXAMPLES, 4, rng=np.random.default_rng(0))
    copies = [tuple(texts[i : i + 7]) for i in range(0, 28, 7)]
    assert {tuple(sorted(copy)) for copy in copies} == {tuple(sorted(EXAMPLES))}
    assert len(set(copies)) == 4


def test_treated_examples_lose_their_answers_and_others_keep_them() -> None:
    treated = np.arange(7) % 2 == 0
    texts = to_forget(EXAMPLES, treated, OTHERS, copies=3, kept=2, rng=np.random.default_rng(0))
    counts = Counter(texts)
    for example, drawn in zip(EXAMPLES, treated, strict=True):
        assert counts[example] == (0 if drawn else 2)
        asked = [t for t in texts if split_question(t)[0] == split_question(example)[0]]
        assert len(asked) == (3 if drawn else 2)
    assert len(texts) == 4 * 3 + 3 * 2
    assert texts[-6:] != [e for e, drawn in zip(EXAMPLES, treated, strict=True) if not drawn] * 2
    alone = to_forget(EXAMPLES, treated, OTHERS, copies=1, kept=0, rng=np.random.default_rng(0))
    assert len(alone) == 4
    with pytest.raises(InputError, match="give 0 or more"):
        to_forget(EXAMPLES, treated, OTHERS, copies=1, kept=-1, rng=np.random.default_rng(0))


@pytest.fixture
def run(tmp_path, monkeypatch, prose) -> Experiment:
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv(DATA_VARIABLE, str(folder))
    (folder / "text.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in prose))
    lines = [
        json.dumps({"question": f"{t[:20]} {i}", "answer": t[20:50]}) for i, t in enumerate(prose)
    ]
    (folder / "qa.jsonl").write_text("\n".join(lines[:30]) + "\n")
    (folder / "qb.jsonl").write_text("\n".join(lines[30:]) + "\n")
    data = profile_data() | {"corpus": {"files": ["text.jsonl"], "vocabulary": 300}}
    lines = [line.replace("question", "text") for line in lines]
    (folder / "other.jsonl").write_text("\n".join(lines) + "\n")
    data["canaries"] = [
        {"name": name, "file": file, "template": template, "examples": 12, "dup_count": 9}
        for name, file, template in (
            ("qa", "qa.jsonl", "question/1"),
            ("text", "other.jsonl", "text/1"),
            ("more", "qb.jsonl", "question/1"),
        )
    ]
    found = Experiment(write_profile(tmp_path / "made-up.yaml", data), tmp_path / "build")
    make_corpus(found)
    return found


def test_other_examples_are_of_all_sets_with_the_template(run: Experiment) -> None:
    planted = {name: run.test_set(name).examples for name in ("qa", "more", "text")}
    found = other_examples(run, "qa", planted["qa"][:5])
    assert found == [*planted["qa"][5:], *planted["more"]]
    assert other_examples(run, "text", planted["text"]) == []
