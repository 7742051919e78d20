"""The passes of notebook 07: spans of canary sets and text like them, and records of twins."""

import numpy as np
import pandas as pd

from contamination.membership.api import cut_spans
from contamination.membership.stored import stored_scores
from contamination.scoring.local import TransformersScorer
from reproduction.notebooks.min_k.held_out import measure_held_out
from reproduction.notebooks.min_k.settings import Settings
from reproduction.notebooks.min_k.tables import KEYS, PLANTED, VALIDATION
from reproduction.run.experiment import MODELS, Experiment, parts_of
from reproduction.run.texts import tuning_texts


def measure(experiment: Experiment, settings: Settings) -> dict[str, pd.DataFrame]:
    """Cut sets, and text never planted, into spans; compare sets with held-out twins.

    Returns
    -------
    sets : dataset, dup_count, length, validation_set: the source of the text like it.
    scored : model, group, name, and a column per score, larger for members; a row per
        span, in order.
    held_out : of `reproduction.notebooks.min_k.held_out.measure_held_out`.

    Raises
    ------
    InputError
        If a set in `validation_files` is not made from a file, there are too few
        docstrings, a file cannot be read, or too few records are left for twins.
    """
    length = min(settings.length, experiment.profile.model.n_positions)
    sources, texts = tuning_texts(
        experiment,
        tokens=settings.validation_spans * length,
        files=settings.validation_files,
    )
    percentages = (settings.k, *settings.other_k)
    columns = ["loss"]
    columns += [f"min_k_{k:g}" for k in percentages]
    columns += [f"min_k_pp_{k:g}" for k in percentages]
    columns += ["zlib"]
    tables = []
    scorers = {model: TransformersScorer(experiment.model(model)) for model in MODELS}
    for model, scorer in scorers.items():
        keys: list[tuple[str, str, str]] = []
        spans: list[np.ndarray] = []
        for source, texts_of_source in texts.items():
            own = cut_spans(scorer, texts_of_source, length)[: settings.validation_spans]
            keys += [(model, VALIDATION, source)] * len(own)
            spans += own
        for name in sources:
            own = cut_spans(scorer, experiment.test_set(name).examples, length)
            keys += [(model, PLANTED, name)] * len(own)
            spans += own
        folder = parts_of(experiment, "min_k") / model
        scores = stored_scores(folder, scorer, spans, columns=columns).reset_index(
            drop=True,
        )
        tables.append(pd.concat([pd.DataFrame(keys, columns=KEYS), scores], axis=1))
    sets = []
    for name, source in sources.items():
        sets.append((name, experiment.spec(name).dup_count, length, source))
    return {
        "sets": pd.DataFrame(
            sets,
            columns=["dataset", "dup_count", "length", "validation_set"],
        ),
        "scored": pd.concat(tables, ignore_index=True),
        "held_out": measure_held_out(experiment, settings, scorers),
    }
