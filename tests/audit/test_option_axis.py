"""The axis of options from a set of items to a p-value: what it finds, its parts, both axes."""

import json
from dataclasses import replace

import pytest
import scipy.stats

from contamination.audit import Request, run_audit
from contamination.audit.controls.options import diagnose_arrangements
from contamination.audit.controls.zlib import zlib_option_test
from contamination.audit.plan import Work
from contamination.scoring.local import TransformersScorer
from contamination.scoring.store import open_store
from contamination.statistics import sharded_exact_test
from contamination.testsets.example_set import ExampleSet
from fakes.items import drawn_items, items_set
from fakes.made_up_scorer import MadeUpScorer
from fakes.remembering_scorer import RemembersText

OPTIONS = Request(axis="options", name="m")


def quiz(items: int, options: int = 4) -> ExampleSet:
    return items_set(drawn_items(items, options), "{question} {choices:, } {answer}\n")


def test_with_the_answer_kept_wrong_options_alone_are_evidence(tokenizer, tmp_path) -> None:
    test_set = quiz(20)
    scorer = RemembersText(tokenizer, test_set)
    whole = run_audit(scorer, test_set, replace(OPTIONS, directory=tmp_path))
    kept = run_audit(scorer, test_set, replace(OPTIONS, directory=tmp_path, keep_answer=True))
    assert whole.results[0].log10_p < kept.results[0].log10_p < -8
    assert kept.stores != whole.stores  # beside each other


def test_an_audit_is_its_parts(make_model, tmp_path) -> None:
    test_set = quiz(8)
    request = replace(OPTIONS, directory=tmp_path / "stores")
    scorer = TransformersScorer(make_model(128))
    plan = Work(scorer, test_set, request).plan
    found = run_audit(scorer, test_set, request)
    (one,) = found.findings
    result, control, diagnosis = one.result, one.zlib, one.diagnosis
    (path,) = found.stores
    store = open_store(path)
    assert path.parent == tmp_path / "stores" / "m" / "quiz"
    assert path.name == f"alternatives-008-{store.header.dataset_revision[:8]}"
    assert result.p == sharded_exact_test(store.variants(), weights="equal").p
    assert result.test == "options"
    assert result.shards == 8
    assert result.permutations == 23
    alternatives = request.option_variants(test_set)
    assert control.p == zlib_option_test(alternatives).p
    assert (
        diagnosis.as_dict() == diagnose_arrangements(test_set, seed=0, keep=request.keep).as_dict()
    )
    assert plan.missing == plan.work.scored == found.tokens_scored
    assert Work(scorer, test_set, request).plan.missing == 0
    assert found.combined is None


def test_both_axes_are_the_two_audits_and_fishers_combination(tokenizer, tmp_path) -> None:
    test_set = quiz(20)
    both, order, options = (
        run_audit(
            MadeUpScorer(tokenizer), test_set, Request(axis=axis, name="m", directory=tmp_path)
        )
        for axis in ("both", "order", "options")
    )
    assert [r.p for r in both.results] == [order.results[0].p, options.results[0].p]
    controls = [found.findings[0].zlib.p for found in (order, options)]
    assert [each.zlib.p for each in both.findings] == controls
    expected = scipy.stats.combine_pvalues([r.p for r in both.results], method="fisher").pvalue
    assert both.combined.p == pytest.approx(expected)
    assert json.loads(json.dumps(both.as_dict()))["joint"]["p"] == both.combined.p
    assert order.tokens_scored == options.tokens_scored == 0  # the first run stored all
