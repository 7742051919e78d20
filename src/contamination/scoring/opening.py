"""Opening a model of the registry, or any other that runs here, with its weights still unread."""

from functools import cached_property

from transformers import PreTrainedModel

from contamination.errors import InputError
from contamination.scoring.contract import Scorer
from contamination.scoring.loading import ModelSource
from contamination.scoring.local import TransformersScorer
from contamination.scoring.models import ModelEntry


class _Scorer(TransformersScorer):
    """Remembers that its weights cannot be loaded: no further set waits for them to fail again."""

    _failure: InputError | None = None

    @cached_property
    def model(self) -> PreTrainedModel:
        if self._failure is not None:
            raise self._failure
        try:
            return super().model
        except InputError as error:
            self._failure = error
            raise


def open_scorer(entry: ModelEntry) -> Scorer:
    """Open a model here, with its weights still unread; code that comes with it is not run."""
    return _Scorer(ModelSource(entry.id, revision=entry.revision, context=entry.context))
