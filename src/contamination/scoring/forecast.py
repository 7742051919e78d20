"""What passes over released models will read and take, before model or test set is there.

What is at hand is counted: examples by the tokenizer of the model, a model by its configuration.
What is not is estimated: examples by the tokens per record of a table that was measured elsewhere,
a model by its parameters. An estimate is never called a count.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
from huggingface_hub import try_to_load_from_cache

from contamination.errors import InputError
from contamination.scoring.cost import Shape, Workload
from contamination.scoring.models import ModelEntry
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.hub import in_reach, missing_bytes
from contamination.testsets.lines import open_lines
from contamination.testsets.registry import FIRST, entries
from contamination.testsets.sources import available, open_test_set
from contamination.testsets.tokens import tokenize

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from contamination.scoring.loading import ModelSource

CONTEXT = 2048  # of most models that the papers ask, where nothing else is known
TOKENS = 100.0  # of an example, where nothing else is known
CHARACTERS = 4.0  # of a token of English, where nothing else is known
TOKENS_PER_WORD = 1.35  # of English, with punctuation, where nothing else is known
BYTES = 2  # of a parameter in files, unless the registry knows better

RECORD, LINE = "record", "line"  # what an example is made of


@dataclass(frozen=True)
class Pass:
    """What one model has to read for one purpose; not `exact` if any of it is estimated."""

    model: ModelEntry
    what: str
    work: Workload
    exact: bool


@dataclass(frozen=True)
class Facts:
    """What is known of a model.

    Attributes
    ----------
    parameters : None where nobody says.
    context : tokens read at once. shape : weights of its matrix products.
    download : bytes that are still to be fetched.
    exact : from its configuration, not estimated.
    """

    parameters: int | None
    context: int
    shape: Shape
    download: int
    exact: bool


@dataclass(frozen=True)
class Lengths:
    """Tokens of each example of a set; not `exact` if estimated."""

    tokens: tuple[int, ...]
    exact: bool


class Forecast:
    """Counts and estimates for models and test sets; asks the hub for configurations at most.

    Parameters
    ----------
    measured : tokens of registered sets by the tokenizer of GPT-2, with columns set, form, records
        and tokens (`docs/measurements/set_tokens.csv`).
    """

    def __init__(self, measured: pd.DataFrame) -> None:
        rows = measured.set_index(["set", "form"])
        self._mean = (rows["tokens"] / rows["records"]).to_dict()
        self._reachable = in_reach()
        self._known: dict[ModelSource, Facts] = {}
        self._examples = cache(_examples)
        self._tokenizer = cache(_tokenizer)

    def facts(self, entry: ModelEntry) -> Facts:
        """What is known of a model: by its configuration if that is at hand, else estimated."""
        source = _source(entry)
        if source not in self._known:
            self._known[source] = self._find_out(entry, source)
        return self._known[source]

    def _find_out(self, entry: ModelEntry, source: "ModelSource") -> Facts:
        from contamination.scoring import loading

        local, estimate = Path(entry.id).exists(), entry.parameters or 0
        if local or self._reachable or _is_cached(entry.id, "config.json"):
            try:
                config = loading.load_config(source)
                parameters, shape = loading.count_parameters(config), loading.model_shape(config)
                context = loading.context_length(source, config)
                download = 0 if local else self._missing(source, parameters)
                return Facts(parameters, context, shape, download, True)
            except InputError:  # gated, or gone
                pass  # what the registry says of it has to do
        layers = (estimate / 120_000) ** (1 / 3)  # 12 x layers x width^2, width 100 x layers
        shape = Shape(body=estimate, head=0, channels=round(100 * layers**2))
        context = entry.context or CONTEXT
        return Facts(entry.parameters, context, shape, self._missing(source, estimate), False)

    def _missing(self, source: "ModelSource", parameters: int) -> int:
        """Bytes of the weights that are not here: as the hub says if it does, else estimated."""
        from contamination.scoring.loading import explain_load_errors, weight_files

        known = None
        files = weight_files(source) if self._reachable else []
        with suppress(InputError), explain_load_errors(source.name):  # gated, or gone
            known = missing_bytes(source.name, files, revision=source.revision) if files else None
        return parameters * BYTES if known is None else known

    def lengths(
        self, entry: ModelEntry, name: str, max_records: int | None, form: str = RECORD
    ) -> Lengths:
        """Tokens of the examples of a set under the tokenizer of a model.

        A set that is not at hand is as long as the table says, else as most sets are.
        """
        found = self._examples(name, max_records, form)
        # A line has every field of its record, and so at least its tokens.
        mean = self._mean.get((name, form)) or self._mean.get((name, RECORD))
        if found is not None:
            return self.tokens(entry, found.examples, mean)
        records = entries()[name].records if name in entries() else None
        count = min(records or FIRST, max_records or FIRST)
        return estimated(count, mean or TOKENS)

    def tokens(
        self, entry: ModelEntry, examples: Sequence[str], mean: float | None = None
    ) -> Lengths:
        """Tokens of examples: counted if the tokenizer is at hand, else estimated.

        `mean` is how many an example has on average; None takes its characters for it.
        """
        tokenizer = self._tokenizer(_source(entry))
        if tokenizer is not None:
            return Lengths(tuple(map(len, tokenize(tokenizer, examples))), True)
        mean = mean or sum(map(len, examples)) / len(examples) / CHARACTERS
        return estimated(len(examples), mean)


def _source(entry: ModelEntry) -> "ModelSource":
    from contamination.scoring.loading import ModelSource

    return ModelSource(entry.id, revision=entry.revision, context=entry.context)


def _tokenizer(source: "ModelSource") -> "PreTrainedTokenizerBase | None":
    """Load the tokenizer of a model; None if it would have to be fetched."""
    from contamination.scoring.loading import load_tokenizer

    at_hand = Path(source.name).exists() or _is_cached(source.name, "tokenizer_config.json")
    return load_tokenizer(source) if at_hand else None


def _examples(name: str, max_records: int | None, form: str) -> ExampleSet | None:
    """Open a set; None if it would have to be fetched."""
    at_hand = available(name) if name in entries() else Path(name).exists()
    opened = open_lines if form == LINE else open_test_set
    return opened(name, max_records=max_records) if at_hand else None


def estimated(count: int, mean: float) -> Lengths:
    """Lengths of so many examples with that mean, as even as whole numbers can be."""
    ends = [int(mean * i) for i in range(count + 1)]
    return Lengths(tuple(max(1, b - a) for a, b in pairwise(ends)), False)


def _is_cached(repository: str, file: str) -> bool:
    return isinstance(try_to_load_from_cache(repository, file), str)
