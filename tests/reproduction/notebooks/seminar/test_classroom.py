"""One tiny model reads a set until no test can miss it; the other stays blind to it."""

import numpy as np
import pytest

from contamination.errors import InputError
from contamination.statistics import sharded_exact_test
from contamination.testsets.tokens import tokenize
from reproduction.notebooks.seminar import classroom as module
from reproduction.notebooks.seminar.classroom import MODELS, final_losses, open_classroom

SETTINGS = {"dup_counts": [1, 150], "examples": 12, "documents": 60, "seed": 3}  # of `classroom`


def _differences(log_probs):
    return log_probs[:, 0] - log_probs[:, 1:].mean(axis=1)


def test_only_the_planted_set_under_the_model_that_read_it_rejects(classroom):
    p, means = {}, {}
    for model in MODELS:
        for name, test_set in classroom.sets.items():
            scores = classroom.log_probs(model, test_set, shards=3, permutations=20)
            assert scores.shape == (3, 21)
            p[model, name] = sharded_exact_test(scores).p
            means[model, name] = _differences(scores).mean()
    assert p.pop(("contaminated", "x150")) < 0.002
    assert min(p.values()) > 0.002
    assert means["contaminated", "x150"] > 5
    assert abs(means["clean", "x150"]) < 5


def test_the_sets_are_what_was_asked_for(classroom):
    assert dict(classroom.dup_counts) == {"x1": 1, "x150": 150}
    assert [len(test_set.examples) for test_set in classroom.sets.values()] == [12, 12]
    for test_set in classroom.sets.values():
        assert all(text.count("\n") == 2 for text in test_set.examples)
        assert {"question", "answer", "town"} == set(test_set.records[0])
    losses = final_losses(classroom)
    assert losses["contaminated"] < losses["clean"]


def test_scores_are_chain_rule_sums(classroom):
    test_set = classroom.sets["x1"]
    scorer = classroom.scorers["clean"]
    ids = np.concatenate(tokenize(scorer.tokenizer, test_set.examples[:4]))
    ((_, alone),) = scorer.token_logprobs([ids])
    scores = classroom.log_probs("clean", test_set, shards=3, permutations=20)
    assert scores[0, 0] == pytest.approx(alone.sum(dtype=np.float64), abs=1e-3)


def test_the_same_classroom_is_not_trained_twice(classroom, monkeypatch):
    monkeypatch.setattr(module, "train", lambda *args, **kwargs: pytest.fail("trained again"))
    again = open_classroom(classroom.directory.parent, **SETTINGS)
    assert again.directory == classroom.directory
    revisions = [[one.revision for one in room.sets.values()] for room in (again, classroom)]
    assert revisions[0] == revisions[1]


def test_other_settings_are_another_classroom(classroom, monkeypatch):
    trained = []
    monkeypatch.setattr(module, "train", lambda *args, **kwargs: trained.append(kwargs["label"]))
    other = open_classroom(classroom.directory.parent, **SETTINGS | {"seed": 4})
    assert other.directory != classroom.directory
    assert trained == ["train contaminated model", "train clean model"]


def test_the_clean_model_reads_no_copy(tmp_path, monkeypatch):
    streams = {}

    def keep(tokens, tokenizer, shape, spec, directory, **kwargs):
        streams[directory.name] = tokenizer.decode(tokens)

    monkeypatch.setattr(module, "train", keep)
    room = open_classroom(tmp_path, dup_counts=[2, 3], examples=3, documents=20, seed=0)
    for name, count in room.dup_counts.items():
        whole = "".join(room.sets[name].examples)
        assert streams["contaminated"].count(whole) == count
        assert not any(example in streams["clean"] for example in room.sets[name].examples)


@pytest.mark.parametrize("dup_counts", [[], [1, 1], [0, 4]])
def test_bad_input(tmp_path, dup_counts):
    with pytest.raises(InputError, match="different numbers of at least 1"):
        open_classroom(tmp_path, dup_counts=dup_counts, examples=4, documents=10, seed=0)
