"""Audit of many models on many test sets (Oren, section 4.3 and Table 2).

Every model is loaded once and freed before the next. If a model or a set cannot be opened, its rows
say why, and the others are audited. What is scored stays in stores, so that an interrupted audit
resumes where it stopped.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
from tqdm import tqdm

from contamination.audit.battery import TESTS, Request
from contamination.audit.published import published_p
from contamination.audit.verdict import score_and_test
from contamination.device import free_memory
from contamination.errors import InputError
from contamination.experiments.open_models.sets import ExampleSets, SetName, set_names
from contamination.experiments.open_models.tables import Row, add_controls, corrected
from contamination.pretraining.experiment import MODELS, Experiment, trained_here
from contamination.results.tables import outcome_row
from contamination.scoring.contract import Scorer
from contamination.scoring.local import open_scorer
from contamination.scoring.models import ModelEntry, find_model
from contamination.scoring.status import FAILURES, OK, status_of

AUDIT_TESTS = ("successor", "sharded_t")  # the default of an audit, and the paper's own

Open = Callable[[ModelEntry], Scorer]


def audit_models(
    models: Sequence[str | ModelEntry],
    sets: Sequence[str],
    *,
    tests: Sequence[str] = AUDIT_TESTS,
    permutations: int = 25,
    max_records: int | None = None,
    seed: int = 0,
    directory: Path | str = "contamination-stores",
    experiment: Experiment | None = None,
    published: Path | str | None = None,
    open_scorer: Open = open_scorer,
) -> pd.DataFrame:
    """Test every model on every set, and correct for their number.

    A row for each model, set and test, those that failed included. `holm_p` and `bh_p` (FDR)
    correct each test over all cells but those of negative controls, which have none. `published_p`
    is the paper's sharded t-test whatever our test, `dup_count` how often the set was planted,
    where that is known, `verdict` that of `contamination.audit.diagnostics` on the records.
    `control_p` is the same test under the first negative control of the audit, or the exact test
    under a compressor; `control` says which. `status` is "ok", "failed: reason", or "not run here:
    reason" where the hub is out of reach. `tokens_scored` is what the model had to read for the
    test, now or before, `model_revision` the commit of a hub id, else the checksum of what was
    loaded.

    Raises InputError for no model, set or test, one that is unknown or ambiguous, or no
    permutation.

    Parameters
    ----------
    models : names for `contamination.scoring.models.find_model`, or entries; with `experiment` also
        the models that it trained.
    sets : names for `contamination.testsets.sources.open_test_set`; with `experiment` also its
        canary sets, `profile/<name>` where a registered set is called alike.
    tests : names from `contamination.audit.battery.TESTS`.
    permutations : m, shuffled orderings per shard, in tests of whole orderings. The models of
        `experiment` on its canary sets keep the shards and permutations of the profile, which the
        score stage has scored.
    max_records : only so many records of a set, from its start; canary sets stay whole.
    seed : of the orderings.
    directory : where the stores lie, one for each revision of a model and a set.
    published : directory of the papers' tables; None leaves `published_p` empty.
    open_scorer : how a model is opened, with other precision or placement for instance.
    """
    each = tuple(dict.fromkeys(tests))
    request = Request(each, permutations=permutations, seed=seed, directory=directory)
    entries, names = _entries(models, experiment), set_names(sets, experiment)
    opened = ExampleSets(names, experiment, max_records)
    audit = _Audit(names, opened, request, experiment, published, open_scorer)
    rows: list[Row] = []
    with tqdm(total=len(entries) * len(names) * len(request.tests), desc="audit", unit="p") as bar:
        for entry in entries:
            for row in audit.rows(entry):
                rows.append(row)
                bar.update()
            free_memory()  # the model goes before the next one comes
    add_controls(rows, opened)
    return corrected(rows)


def _entries(models: Sequence[str | ModelEntry], experiment: Experiment | None) -> list[ModelEntry]:
    """Return each model once, in the order asked for."""
    if isinstance(models, str) or not models:
        raise InputError(f"models is {models!r}: give a list of names, paths or hub ids")
    here = {entry.name: entry for entry in trained_here(experiment)} if experiment else {}
    entries: list[ModelEntry] = []
    for model in models:
        entry = model if isinstance(model, ModelEntry) else here.get(model) or find_model(model)
        if entry not in entries:
            entries.append(entry)
    name, count = Counter(entry.name for entry in entries).most_common(1)[0]
    if count > 1:
        raise InputError(f"{count} models are called {name!r}: audit them one after the other")
    return entries


@dataclass(frozen=True)
class _Audit:
    names: list[SetName]
    sets: ExampleSets
    request: Request
    experiment: Experiment | None
    published: Path | str | None
    open_scorer: Open

    def rows(self, entry: ModelEntry) -> Iterator[Row]:
        """Yield a row for each set and test, whatever happens."""
        revision, problem = "", ""
        try:
            scorer = self.open_scorer(entry)
            source = getattr(scorer, "source", None)
            revision = (source.revision if source else None) or scorer.revision
        except FAILURES as error:
            problem = status_of(error)
        for name in self.names:
            examples = self.sets.opened.get(name)
            for test in self.request.tests:
                row: Row = {
                    "name": name,
                    "model": entry.name,
                    "role": entry.role,
                    "dataset": name.label,
                    "examples": len(examples.examples) if examples else None,
                    "test": test,
                    "published_p": published_p(entry, name.asked, self.published),
                    "dup_count": entry.dup_count(name.asked),
                    "model_id": entry.id,
                    "model_revision": revision,
                    "dataset_revision": examples.revision if examples else "",
                    "status": problem or self.sets.problems.get(name) or OK,
                }
                if row["status"] == OK:
                    try:
                        row |= self._result(entry, scorer, name, test)
                    except FAILURES as error:
                        row["status"] = status_of(error)
                yield row

    def _result(self, entry: ModelEntry, scorer: Scorer, name: SetName, test: str) -> Row:
        run, permutations = self.experiment, self.request.permutations
        if run and name.canary and entry.name in MODELS and entry.id == str(run.model(entry.name)):
            store, permutations = run.store_for(entry.name, name.canary, TESTS[test])
            result = TESTS[test].result(store, permutations)
        else:
            request = replace(self.request, name=entry.name)
            examples = self.sets.opened[name]
            result, store = score_and_test(test, scorer, examples, request, keep_revisions=True)
        header = store.header
        return outcome_row(result) | {
            "store": {
                "kind": header.kind,
                "shards": header.shards,
                "permutations": permutations,
                "seed": header.seed,
            },
            "verdict": self.sets.verdict(name, header.shards, header.seed),
            "tokens_scored": header.tokens_of(permutations),
        }
