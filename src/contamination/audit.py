"""A p-value for one model and one test set, in one call (Oren, Algorithm 1, and what goes beyond).

from contamination.audit import audit

print(audit("gpt2", "my_test_set.jsonl").summary())
"""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from contamination.audit_plan import Plan, plan_audit
from contamination.battery import DEFAULT_TESTS, TESTS
from contamination.diagnostics import Diagnosis, diagnose
from contamination.engine.contract import Scorer
from contamination.engine.loading import Source
from contamination.engine.local import TransformersScorer
from contamination.scoring import score
from contamination.statistics import TestResult
from contamination.test_set import TestSet, load_test_set


@dataclass(frozen=True, eq=False)
class Audit:
    """What an audit found, and what it took.

    Attributes
    ----------
    results : one for each test, uncorrected: choose the test before you look.
    diagnosis : whether the order of the records carries information by itself. Unless it is quiet,
        a small p-value is no evidence of contamination.
    tokens_scored, seconds : in this run; 0 tokens if all was stored.
    """

    model: str
    model_revision: str
    dataset: str
    dataset_revision: str
    template: str
    seed: int
    plan: Plan
    results: tuple[TestResult, ...]
    diagnosis: Diagnosis
    stores: tuple[Path, ...]
    tokens_scored: int
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """Return what `--json` prints."""
        kept = ("test", "statistic", "p", "log10_p", "shards", "permutations")
        return {
            "model": self.model,
            "model_revision": self.model_revision,
            "dataset": self.dataset,
            "dataset_revision": self.dataset_revision,
            "template": self.template,
            "seed": self.seed,
            "plan": asdict(self.plan),
            "results": [{name: getattr(r, name) for name in kept} for r in self.results],
            "diagnosis": {
                "verdict": self.diagnosis.verdict,
                "reasons": list(self.diagnosis.reasons),
            },
            "stores": [str(path) for path in self.stores],
            "tokens_scored": self.tokens_scored,
            "seconds": self.seconds,
        }

    def summary(self) -> str:
        """One line for each test, and what the order of the records gives away without a model."""
        lines = [
            f"{self.model} on {self.dataset}: {r.test} test, p = {r.p:.3g} ({r.shards} shards)"
            for r in self.results
        ]
        return "\n".join([*lines, f"order of the records: {self.diagnosis.verdict}"])


def audit(
    model: Scorer | Source | Path | str,
    test_set: TestSet | Path | str,
    *,
    tests: Sequence[str] = DEFAULT_TESTS,
    shards: int | None = None,
    permutations: int = 25,
    seed: int = 0,
    directory: Path | str = "contamination-stores",
    name: str | None = None,
    plan: Plan | None = None,
) -> Audit:
    """Score what is missing and test H0 "the model gives every ordering the same chance".

    Parameters
    ----------
    model : a scorer, or what `TransformersScorer` takes: hub id, directory, GGUF file.
    test_set : a test set, or the path of a file with one example a record (template "text/1").
    tests : names from `TESTS`.
    shards : r; None takes as many as leave ten examples a shard for the successor test, and four
        for those of whole orderings, 50 at most.
    permutations : m, shuffled orderings per shard, in tests of whole orderings.
    directory : where the stores of all audits lie; a second audit reads what it finds there.
    name : of the model, for people and for the store.
    plan : what `plan_audit` returned for the same arguments, if it was asked.

    Raises
    ------
    InputError
        An unknown test, too few examples, or whatever loading and scoring complain of.
    """
    scorer, called = _scorer(model, name)
    examples = test_set if isinstance(test_set, TestSet) else load_test_set(Path(test_set))
    plan = plan or plan_audit(
        scorer,
        examples,
        tests=tests,
        shards=shards,
        permutations=permutations,
        directory=directory,
        name=called,
    )
    started = time.perf_counter()
    stores = {
        store: score(
            examples,
            scorer,
            store.path(directory, called, examples),
            model=called,
            shards=store.shards,
            permutations=permutations,
            seed=seed,
            kind=store.kind,
            first=store.first,
        )
        for store in dict.fromkeys(plan.stores)
    }
    seconds = time.perf_counter() - started
    return Audit(
        model=called,
        model_revision=scorer.revision,
        dataset=examples.name,
        dataset_revision=examples.revision,
        template=examples.template,
        seed=seed,
        plan=plan,
        results=tuple(
            TESTS[test].result(test, stores[store], permutations)
            for test, store in zip(tests, plan.stores, strict=True)
        ),
        diagnosis=diagnose(
            examples.examples, examples.records or None, rng=np.random.default_rng(seed)
        ),
        stores=tuple(store.directory for store in stores.values()),
        tokens_scored=plan.missing,
        seconds=seconds,
    )


def label(model: str) -> str:
    """What tables and stores call a model: a hub id as it is, a path by its last part."""
    return Path(model).resolve().name if Path(model).exists() else model


def _scorer(model: Scorer | Source | Path | str, name: str | None) -> tuple[Scorer, str]:
    """Return the scorer, and what the model is called."""
    if isinstance(model, (str, Path, Source)):
        source = model if isinstance(model, Source) else Source(str(model))
        return TransformersScorer(source), name or label(source.name)
    return model, name or model.revision[:12]
