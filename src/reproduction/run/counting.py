"""What a measurement will read and take: the measurement itself, on models that count.

`Counting` takes the place of `reproduction.run.grid.Access`. What is at hand is counted: examples
by the tokenizer of the model, a model by its configuration. What is not is estimated: a set by the
records and tokens that others counted, a model by its parameters. Nothing is scored, and nothing
but configurations is fetched. An estimate is never called a count.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from huggingface_hub import try_to_load_from_cache

from contamination.audit.plan import choose_store
from contamination.audit.request import Request
from contamination.errors import InputError
from contamination.membership.blind import SCORED
from contamination.scoring import loading
from contamination.scoring.contract import Scorer
from contamination.scoring.cost import Shape, Workload, sequence_workload
from contamination.scoring.loading import ModelSource
from contamination.scoring.models import ModelEntry
from contamination.testsets.example_set import ExampleSet, make_test_set
from contamination.testsets.hub import in_reach, missing_bytes
from contamination.testsets.records import Record
from contamination.testsets.registry import FIRST, Entry, entries
from contamination.testsets.sources import available, locate
from contamination.testsets.tokens import tokenize, tokenize_set
from reproduction.run.grid import TOKEN, Access, Row, placeholders

if TYPE_CHECKING:
    from contamination.membership.api import Text

CONTEXT = 2048  # of most models that the papers ask, where nothing else is known
TOKENS = 100.0  # of an example, where nothing else is known
BYTES = 2  # of a parameter in files, unless the hub knows better


class CountingTokenizer:
    """Tokens of a model whose tokenizer is at hand, else one for every four characters.

    `exact` until a text was a placeholder, or its tokens were estimated.
    """

    def __init__(self, real: Any = None) -> None:
        self.real = real
        self.exact = real is not None

    def __call__(self, texts: Sequence[str], **settings: Any) -> dict[str, Any]:
        """Encode as a tokenizer does."""
        self.exact &= not any(text.startswith(2 * TOKEN) for text in texts)
        if self.real is not None:
            return self.real(texts, **settings)  # type: ignore[no-any-return]
        width = len(TOKEN)
        return {"input_ids": [np.zeros(max(1, len(text) // width), np.int32) for text in texts]}

    def decode(self, ids: np.ndarray) -> str:
        """Write a text of so many tokens."""
        return TOKEN * len(ids)

    def get_vocab(self) -> dict[str, int]:
        """Return no vocabulary: which tokens two models share decides nothing about the work."""
        return {}


class CountingScorer:
    """What is known of a model, by its configuration if that is at hand, else estimated.

    Attributes
    ----------
    context : tokens read at once. shape : weights of its matrix products.
    parameters : None where nobody says. download : bytes that are still to be fetched.
    """

    revision, batch_tokens = "planned", 1
    parameters: int | None

    def __init__(self, entry: ModelEntry, *, online: bool) -> None:
        self.entry = entry
        source = ModelSource(entry.id, revision=entry.revision, context=entry.context)
        local, estimate = Path(entry.id).exists(), entry.parameters or 0
        at_hand = local or _is_cached(entry.id, "tokenizer_config.json")
        self.tokenizer: Any = CountingTokenizer(loading.load_tokenizer(source) if at_hand else None)
        if local or online or _is_cached(entry.id, "config.json"):
            with suppress(InputError):  # gated, or gone: the registry's numbers have to do
                config = loading.load_config(source)
                self.parameters = count = loading.count_parameters(config)
                self.shape = loading.model_shape(config)
                self.context = loading.context_length(source, config)
                self.download = 0 if local else _missing(source, BYTES * count, online=online)
                self._exact = True
                return
        layers = (estimate / 120_000) ** (1 / 3)  # 12 x layers x width^2, width 100 x layers
        self.parameters, self.context = entry.parameters, entry.context or CONTEXT
        self.shape = Shape(body=estimate, head=0, channels=round(100 * layers**2))
        self.download, self._exact = _missing(source, BYTES * estimate, online=online), False

    @property
    def exact(self) -> bool:
        """Whether nothing of its work is an estimate."""
        return self._exact and bool(self.tokenizer.exact)


class Counting(Access):
    """Access that counts what it is asked for; `works` has it by notebook, model and purpose.

    Parameters
    ----------
    measured : tokens of registered sets by the tokenizer of GPT-2, with columns set, form ("record"
        or "line", of which an example is made), records and tokens
        (`docs/measurements/set_tokens.csv`).
    """

    def __init__(self, measured: pd.DataFrame) -> None:
        rows = measured.set_index(["set", "form"])
        self._mean = (rows["tokens"] / rows["records"]).to_dict()
        self._online = in_reach()
        self._lengths: dict[tuple[str, str], list[int]] = {}
        self.notebook = ""  # whose work is being counted
        self.works: dict[tuple[str, str, Any], Workload] = {}
        self.models: dict[str, CountingScorer] = {}

    def open_set(self, name: str, *, max_records: int | None, lines: bool = False) -> ExampleSet:
        """Open a set that is at hand; of another one make up as many records and tokens."""
        if available(name) if name in entries() else Path(name).exists():
            return super().open_set(name, max_records=max_records, lines=lines)
        # A line has every field of its record, and so at least its tokens.
        forms = ["line", "record"] if lines else ["record"]
        known = [self._mean[name, form] for form in forms if (name, form) in self._mean]
        records = entries()[name].records if name in entries() else None
        count = min(records or FIRST, max_records or FIRST)
        made = placeholders(count, known[0] if known else TOKENS, "text")
        return make_test_set(name, [("", row) for row in made], "text/1", name)

    def read(
        self, entry: Entry, expected: Callable[[], list[Row]]
    ) -> tuple[list[Record], str, str]:
        """Read a file that is at hand; of another one return what is expected of it."""
        if locate(entry) is not None:
            return super().read(entry, expected)
        return [("", row) for row in expected()], entry.name, ""

    def open_model(self, entry: ModelEntry) -> Any:
        """Return a model that counts; its weights are not fetched, and need fit no device."""
        if entry.name not in self.models:
            self.models[entry.name] = CountingScorer(entry, online=self._online)
        return self.models[entry.name]

    def score_orders(
        self, test: str, scorer: Scorer, examples: ExampleSet, request: Request, **settings: Any
    ) -> str:
        """Count what a store takes, once for all tests that read it."""
        key = (_model(scorer), examples.revision)
        if key not in self._lengths:
            self._lengths[key] = list(tokenize_set(scorer.tokenizer, examples).lengths)
        lengths = self._lengths[key]
        store = choose_store(test, lengths, scorer.context, request)
        work = store.work(lengths, request.permutations, scorer.context)
        self._add(scorer, (examples.name, store), work)
        return ""

    def score_texts(
        self, folder: Path, scorer: Scorer, texts: "Sequence[Text]", **settings: Any
    ) -> pd.DataFrame:
        """Count the texts, as they are, in lower case and changed, and once for a reference."""
        columns, reference = settings["columns"], settings.get("reference")
        times = 1 + ("lowercase" in columns) + settings.get("neighbours", 0)
        for one, count in ((scorer, times), (reference, 1)):
            if one is not None:
                written = [text for text in texts if isinstance(text, str)]
                lengths = list(map(len, tokenize(one.tokenizer, written) if written else texts))
                work = sequence_workload(lengths, count, one.context)
                self._add(one, (folder, _model(scorer)), work)
        return pd.DataFrame(0.0, index=range(len(texts)), columns=list(columns))

    def score_blind(self, splits: Sequence[Row]) -> pd.DataFrame:
        """Leave out what reads no model."""
        return pd.DataFrame(columns=list(SCORED))

    def _add(self, scorer: Scorer, what: Any, work: Workload) -> None:
        key = (self.notebook, _model(scorer), what)
        if key not in self.works or self.works[key].scored < work.scored:
            self.works[key] = work


def _model(scorer: Any) -> str:
    return str(scorer.entry.name)


def _missing(source: ModelSource, estimate: int, *, online: bool) -> int:
    """Bytes of the weights that are not here: as the hub says if it does, else the estimate."""
    known = None
    files = loading.weight_files(source) if online else []
    with suppress(InputError), loading.explain_load_errors(source.name):  # gated, or gone
        known = missing_bytes(source.name, files, revision=source.revision) if files else None
    return estimate if known is None else known


def _is_cached(repository: str, file: str) -> bool:
    return isinstance(try_to_load_from_cache(repository, file), str)
