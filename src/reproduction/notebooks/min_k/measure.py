"""The passes of notebook 07: spans of every canary set, and of text like it, under both models."""

from collections.abc import Mapping, Sequence

import pandas as pd

from contamination.membership.api import cut_spans, stored_scores
from contamination.scoring.local import TransformersScorer
from reproduction.notebooks.min_k.tables import KEYS, PLANTED, VALIDATION
from reproduction.run.experiment import MODELS, Experiment, parts_of
from reproduction.run.texts import tuning_texts


def measure(
    experiment: Experiment,
    *,
    length: int,
    k: float,
    other_k: Sequence[float],
    validation_spans: int,
    validation_files: Mapping[str, str],
) -> dict[str, pd.DataFrame]:
    """Cut all sets, and text that was never planted, into spans, and score them.

    Tables: `sets` (dataset, dup_count, length, validation_set: the source of the text like it) and
    `scored` (model, group, name, and a column per score, larger for members; a row per span, in
    order). Spans have `length` tokens, at most the context of the model, so that each token is read
    after all of its span, as in the paper. `k` and `other_k` are percentages of Min-K%. There are
    at most `validation_spans` of each kind of text that was never planted; it comes from the
    `validation_files`, as in `tuning_texts`, which raises InputError.
    """
    size = min(length, experiment.profile.model.n_positions)
    wanted = validation_spans * size
    sources, texts = tuning_texts(experiment, tokens=wanted, files=validation_files)
    columns = [f"{name}_{each:g}" for name in ("min_k", "min_k_pp") for each in (k, *other_k)]
    tables = []
    for model in MODELS:
        scorer = TransformersScorer(experiment.model(model))
        spans = {
            (model, VALIDATION, source): cut_spans(scorer, found, size)[:validation_spans]
            for source, found in texts.items()
        }
        for name in sources:
            found = experiment.test_set(name).examples
            spans[model, PLANTED, name] = cut_spans(scorer, found, size)
        scores = stored_scores(
            parts_of(experiment, "min_k") / model,
            scorer,
            [ids for found in spans.values() for ids in found],
            columns=["loss", *columns, "zlib"],
        )
        named = pd.DataFrame([key for key, found in spans.items() for _ in found], columns=KEYS)
        tables.append(pd.concat([named, scores.reset_index(drop=True)], axis=1))
    counts = {spec.name: spec.dup_count for spec in experiment.profile.canaries}
    sets = [(name, counts[name], size, source) for name, source in sources.items()]
    return {
        "sets": pd.DataFrame(sets, columns=["dataset", "dup_count", "length", "validation_set"]),
        "scored": pd.concat(tables, ignore_index=True),
    }
