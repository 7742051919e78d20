"""The axis of options from a set of items to a p-value: its level, what it finds, both axes."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats

from contamination.audit import Request, audit
from contamination.audit.arrangement_diagnostics import diagnose_arrangements
from contamination.audit.compressor import compressor_alternatives
from contamination.audit.option_axis import joint, score_options
from contamination.audit.verdict import plan_audit
from contamination.errors import InputError
from contamination.scoring.local import TransformersScorer
from contamination.scoring.store import open_store
from contamination.statistics import sharded_exact_p_values, sharded_exact_test
from contamination.testsets.example_set import ExampleSet, make_test_set
from fakes.items import rearranged
from fakes.level import check_level
from fakes.made_up_scorer import MadeUpScorer
from fakes.remembering_scorer import WORDS, RemembersText

OPTIONS = Request(axis="options", name="m")
BOTH = Request(axis="both", name="m")


class Historian(MadeUpScorer):
    """Log-probabilities that depend on everything before a token, as those of a model do."""

    def token_logprobs(self, sequences, wanted=None):
        for index, values in super().token_logprobs(sequences, wanted):
            state = 1
            for place, token in enumerate(sequences[index].tolist()):
                state = (31 * state + token) % 10_007
                values[place] = -1 - state % 997 / 100
            yield index, values


def quiz(items: int, *, options: int = 4, seed: int = 0) -> ExampleSet:
    """Items whose options were drawn, and stand in a random order."""
    rng = np.random.default_rng(seed)
    records = [
        {
            "question": f"Which is number {i} of {seed}?",
            "choices": [f"{' '.join(rng.permutation(WORDS)[:3])} {i}" for _ in range(options)],
            "answer": int(rng.integers(options)),
        }
        for i in range(items)
    ]
    template = "{question} {choices:, } {answer}\n"
    return make_test_set(f"quiz-{seed}", [("", r) for r in records], template, "quiz.jsonl")


def asked(request: Request, directory, **changes) -> Request:
    return replace(request, directory=directory, **changes)


# --- level ----------------------------------------------------------------------------------------


def redrawn(store, draws):
    """p-values with an arrangement drawn anew for every item in the place of the published one."""
    scores = store.alternatives()
    drawn = np.random.default_rng(1).integers(scores.shape[1], size=(draws, len(scores)))
    return sharded_exact_p_values(scores, drawn, weights="equal")


def test_1000_redrawn_arrangements_are_rejected_as_often_as_the_level(tokenizer, tmp_path) -> None:
    """All permitted arrangements are scored once; then another is called published each time."""
    test_set = quiz(20)
    scorer = RemembersText(tokenizer, test_set)  # it has read the published ones, even
    store = score_options(scorer, OPTIONS.alternatives(test_set), asked(OPTIONS, tmp_path))
    p = redrawn(store, 1000)
    check_level(p, 0.01, 0.05, 0.2, 0.5)
    assert len(np.unique(p)) > 900


@pytest.mark.parametrize("changes", [{"keep_answer": True}, {"arrangements": 5}, {}])
def test_sets_published_in_redrawn_arrangements_keep_the_level(
    tokenizer, tmp_path, changes
) -> None:
    """The whole path anew: each set is written in an arrangement that was drawn, and audited."""
    rng = np.random.default_rng(7)
    p = []
    base = quiz(6, options=3)
    for number in range(60):
        records = [rearranged(record, rng.permutation(3)) for record in base.records]
        drawn = make_test_set("drawn", [("", r) for r in records], base.template, "drawn")
        where = asked(OPTIONS, tmp_path / str(number), seed=number, **changes)
        store = score_options(Historian(tokenizer), where.alternatives(drawn), where)
        p.append(sharded_exact_test(store.alternatives(), weights="equal").p)
    check_level(p, 0.05, 0.2, 0.5, reached=False)
    assert np.mean(np.array(p) <= 0.6) > 0.3


# --- what it finds --------------------------------------------------------------------------------


def test_items_that_were_read_are_found_whatever_their_order(tokenizer, tmp_path) -> None:
    """Read one by one and scattered: no order of records is there, and that of options is."""
    test_set = quiz(20)
    rng = np.random.default_rng(3)
    shuffled = tuple(test_set.examples[i] for i in rng.permutation(20))
    read = [replace(test_set, examples=(text,)) for text in shuffled]
    found = audit(RemembersText(tokenizer, *read), test_set, asked(BOTH, tmp_path))
    order, options = found.results
    assert (order.test, options.test) == ("successor", "options")
    assert options.log10_p < -15
    assert order.p > 0.01
    assert found.joint is not None
    assert found.joint.log10_p < -15


def test_the_same_items_in_another_arrangement_are_no_evidence(tokenizer, tmp_path) -> None:
    test_set = quiz(20)
    rng = np.random.default_rng(4)
    records = [rearranged(record, rng.permutation(4)) for record in test_set.records]
    other = make_test_set("other", [("", r) for r in records], test_set.template, "other")
    found = audit(RemembersText(tokenizer, other), test_set, asked(OPTIONS, tmp_path))
    assert found.results[0].p > 0.01


def test_with_the_answer_kept_wrong_options_alone_are_evidence(tokenizer, tmp_path) -> None:
    test_set = quiz(20)
    scorer = RemembersText(tokenizer, test_set)
    whole = audit(scorer, test_set, asked(OPTIONS, tmp_path))
    kept = audit(scorer, test_set, asked(OPTIONS, tmp_path, keep_answer=True))
    assert whole.results[0].log10_p < kept.results[0].log10_p < -8
    assert kept.stores != whole.stores  # beside each other


# --- the parts ------------------------------------------------------------------------------------


def test_an_audit_is_its_parts(make_model, tmp_path) -> None:
    test_set, request = quiz(8), asked(OPTIONS, tmp_path / "stores")
    scorer = TransformersScorer(make_model(128))
    plan = plan_audit(scorer, test_set, request)
    found = audit(scorer, test_set, request)
    (result,), (control,), (diagnosis,) = found.results, found.control, found.diagnosis
    (path,) = found.stores
    store = open_store(path)
    assert path.parent == tmp_path / "stores" / "m" / "quiz-0"
    assert path.name == f"alternatives-008-{store.header.dataset_revision[:8]}"
    assert result.p == sharded_exact_test(store.alternatives(), weights="equal").p
    assert (result.test, result.shards, result.permutations) == ("options", 8, 23)
    alternatives = request.alternatives(test_set)
    assert control.p == compressor_alternatives(alternatives).p
    assert diagnosis.as_dict() == diagnose_arrangements(test_set, seed=0).as_dict()
    assert plan.missing == plan.work.scored == found.tokens_scored
    assert plan.seconds > 0
    assert plan_audit(scorer, test_set, request).missing == 0
    assert found.joint is None
    assert "8 items" in found.summary()


def test_both_axes_are_the_two_audits_and_fishers_combination(tokenizer, tmp_path) -> None:
    test_set = quiz(20)
    both, order, options = (
        audit(MadeUpScorer(tokenizer), test_set, Request(axis=axis, name="m", directory=tmp_path))
        for axis in ("both", "order", "options")
    )
    assert [r.p for r in both.results] == [order.results[0].p, options.results[0].p]
    assert [c.p for c in both.control] == [order.control[0].p, options.control[0].p]
    expected = scipy.stats.combine_pvalues([r.p for r in both.results], method="fisher").pvalue
    assert both.joint.p == pytest.approx(expected)
    assert both.joint.p == joint(*both.results).p
    assert len(both.stores) == 2
    described = json.loads(json.dumps(both.as_dict()))
    assert described["joint"]["p"] == both.joint.p
    assert described["plan"]["stores"][1]["kind"] == "alternatives"
    assert order.tokens_scored == options.tokens_scored == 0  # the first run stored all


def test_p_of_options_does_not_depend_on_the_order_of_records(tokenizer, tmp_path) -> None:
    """What the exactness of the combination rests on: it is a function of the arrangements."""
    test_set = quiz(10, options=5)  # of 120 arrangements 24 are drawn
    turned = make_test_set("turned", [("", r) for r in test_set.records[::-1]], "{{}}", "t")
    turned = replace(turned, template=test_set.template)
    scores = []
    for one in (test_set, turned):
        alternatives = OPTIONS.alternatives(one)
        store = score_options(
            MadeUpScorer(tokenizer), alternatives, asked(OPTIONS, tmp_path / one.name)
        )
        scores.append(store.alternatives())
    np.testing.assert_array_equal(scores[0], scores[1][::-1])


# --- what is refused ------------------------------------------------------------------------------


def test_options_longer_than_the_context_are_refused_before_scoring(
    model_directory, tmp_path
) -> None:
    scorer = TransformersScorer(model_directory)
    with pytest.raises(InputError, match=r"takes \d+ tokens, more than --context 16"):
        plan_audit(scorer, quiz(8), asked(OPTIONS, tmp_path))


def test_redrawn_arrangements_of_two_options_are_those_of_two_coins(tokenizer, tmp_path) -> None:
    """Twenty-four columns hold two arrangements: all 2^3 outcomes, each as often."""
    test_set = quiz(3, options=2)
    store = score_options(
        MadeUpScorer(tokenizer), OPTIONS.alternatives(test_set), asked(OPTIONS, tmp_path)
    )
    scores = store.alternatives()
    p = redrawn(store, 4000)
    pairs = [np.unique(row) for row in scores]
    assert {len(pair) for pair in pairs} == {2}
    outcomes = []
    for chosen in itertools.product(range(2), repeat=3):
        rows = [[pair[i], pair[1 - i]] for pair, i in zip(pairs, chosen, strict=True)]
        outcomes.append(sharded_exact_test(rows, weights="equal").p)
    assert sorted(np.unique(p.round(3))) == sorted(np.unique(np.round(outcomes, 3)))
    check_level(p, 0.126, 0.251, 0.501, reached=False)
