"""The cells of an audit: a model, a set and a test, and the store that was scored for them."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from contamination.errors import InputError
from contamination.scoring.models import ModelEntry, find_model
from reproduction.notebooks.open_models.sets import SetName
from reproduction.run.experiment import Experiment, trained_here

STORES = Path("stores") / "open_models"  # in the build directory
CELLS = ("model", "asked", "test", "permutations", "store", "model_revision", "status")

Cell = dict[str, Any]  # of `CELLS`


def is_scored_by_profile(experiment: Experiment, entry: ModelEntry, name: SetName) -> bool:
    """Whether the score stage has scored a set: a canary set, under a model that was trained."""
    trained = {(here.name, here.id) for here in trained_here(experiment)}
    return name.canary is not None and (entry.name, entry.id) in trained


def model_entries(
    models: Sequence[str | ModelEntry], experiment: Experiment | None
) -> list[ModelEntry]:
    """Return each model once, in the order asked for.

    Raises InputError for no model, a bare string, and two models of one name.
    """
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
