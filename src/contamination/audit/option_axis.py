"""The order of the options as a second axis of proof: what it reads, and its diagnosis.

A model that has read an item knows in which order its options stood, wherever the item stood: in
the published order of the set, shuffled, or alone. H0: the published arrangement of every item was
drawn uniformly from those that are permitted, without regard to the model and independently over
items. The p-value is exact under H0. What breaks H0 without any contamination is how people write
options; `contamination.testsets.alternatives` says what stays in place for that, and a model that
cannot have read the set is to be tested beside this one.
"""

from pathlib import Path

import numpy as np

from contamination.audit.outcome import ScoringPlan, name_model, stored_tokens
from contamination.audit.request import Request
from contamination.errors import InputError
from contamination.scoring import cost
from contamination.scoring.contract import Scorer
from contamination.scoring.plan import StorePlan
from contamination.scoring.store import Store
from contamination.statistics import CombinedResult, TestResult, fisher
from contamination.testsets.alternatives import AlternativeSet


def plan_options(scorer: Scorer, alternatives: AlternativeSet, request: Request) -> ScoringPlan:
    """Count what the test of options has to score; see `contamination.audit.verdict.plan_audit`.

    Raises InputError if what follows on the beginning of an item is longer than the context.
    """
    from contamination.scoring.alternatives import alternative_workload, token_groups
    from contamination.scoring.loading import model_shape
    from contamination.scoring.local import TransformersScorer

    groups = token_groups(scorer.tokenizer, alternatives)
    longest = max(len(rest) for group in groups for rest in group.rests)
    if longest > scorer.context:
        raise InputError(
            f"{alternatives.name}: an item takes {longest} tokens, more than --context "
            f"{scorer.context}"
        )
    work = alternative_workload(groups)
    rows = sum(len(group.rests[number]) for group in groups for number in group.which)
    store = StorePlan("alternatives", len(groups), None)
    stored = stored_tokens(_path(store, scorer, alternatives, request))
    share = max(0, rows - stored) / rows
    flops = seconds = None
    if isinstance(scorer, TransformersScorer) and share:
        shape = model_shape(scorer.config)
        flops = shape.flops(work) * share
        sample = [np.concatenate([group.prefix, *group.rests]) for group in groups]
        seconds = flops / cost.flops_per_second(scorer, shape, sample)
    return ScoringPlan(
        examples=len(alternatives.texts),
        permutations=len(alternatives.texts[0]) - 1,
        stores=(store,),
        work=work,
        missing=round(work.scored * share),
        flops=flops,
        seconds=seconds,
    )


def score_options(scorer: Scorer, alternatives: AlternativeSet, request: Request) -> Store:
    """Score what the store of these alternatives lacks, and open it."""
    from contamination.scoring.alternatives import score_alternatives, token_groups

    groups = token_groups(scorer.tokenizer, alternatives)
    store = StorePlan("alternatives", len(groups), None)
    return score_alternatives(
        alternatives,
        scorer,
        _path(store, scorer, alternatives, request),
        model=name_model(scorer, request),
        seed=request.seed,
    )


def _path(store: StorePlan, scorer: Scorer, alternatives: AlternativeSet, request: Request) -> Path:
    """Where they are stored: other arrangements of the same set lie beside these."""
    name = name_model(scorer, request)
    return store.path(request.directory, name, alternatives.name, alternatives.revision)


def joint(*results: TestResult) -> CombinedResult:
    """Combine the p-values of the order of records and of the order of options, by Fisher's rule.

    Exact under H0 of both. Let A be the arrangement of every record. The p-value of options is a
    function of A alone: it sums over records, and what is drawn for a record depends on its
    content. Given A, whatever it is, the records are exchangeable within shards, so the p-value
    p of their order satisfies P(p <= a | A) <= a for every a. Hence P(p <= a and q <= b) <= a b
    with the p-value q of options, and the pair is at least as large as two independent uniforms.
    """
    return fisher(log10_p=[result.log10_p for result in results])
