"""The test sets of an audit: each opened once, and what is known of them without a model.

Beside every p-value stand a verdict on the order of the records and the p-value of a compressor,
which has seen no test set (Oren, section 4.3).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tqdm import tqdm

from contamination.audit.compressor import compressor_scores, compressor_test
from contamination.audit.diagnosis import Verdict
from contamination.audit.diagnostics import diagnose_order
from contamination.errors import InputError
from contamination.scoring.status import FAILURES, status_of
from contamination.statistics import pooled_exact_test
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.registry import registered
from contamination.testsets.sources import available, open_test_set
from reproduction.run.experiment import Experiment

OF_PROFILE = "profile/"  # before a canary set's name; needed where a registered set is called alike
# Subsets that notebook 04 combines; text to train on; lines that notebook 12 reads.
NOT_ALONE = ("mmlu/", "wikitext/", "contam-1.4b/")


@dataclass(frozen=True)
class SetName:
    """A test set as it was asked for."""

    asked: str  # registered name, path or hub id; `profile/<name>` is a canary set of the profile
    label: str  # in tables
    canary: str | None = None  # its name in the profile; None if it comes from elsewhere


def set_names(asked: Sequence[str], experiment: Experiment | None) -> list[SetName]:
    """Find out which sets are canary sets of the profile; each set once, in the order asked for.

    Raises InputError for no set, a bare string in the place of a list, and two sets that tables
    could not tell apart.
    """
    if isinstance(asked, str) or not asked:
        raise InputError(f"sets is {asked!r}: give a list of registered names, paths or hub ids")
    names = list(dict.fromkeys(_set_name(name, experiment) for name in asked))
    label, count = Counter(name.label for name in names).most_common(1)[0]
    if count > 1:
        raise InputError(f"{count} sets are called {label!r}: audit them one after the other")
    return names


def _set_name(asked: str, experiment: Experiment | None) -> SetName:
    name, known = asked.removeprefix(OF_PROFILE), registered()
    canaries = [spec.name for spec in experiment.profile.canaries] if experiment else []
    if name in canaries and (name != asked or name not in known):
        return SetName(OF_PROFILE + name, OF_PROFILE + name if name in known else name, name)
    path = Path(asked)
    return SetName(asked, path.stem if path.is_file() else asked)


def sets_at_hand(experiment: Experiment) -> list[str]:
    """Return the profile's canary sets, and the registered sets that need no network.

    The subsets of MMLU are not among them: notebook 04 combines them.
    """
    canaries = [OF_PROFILE + spec.name for spec in experiment.profile.canaries]
    others = [name for name in registered() if not name.startswith(NOT_ALONE) and available(name)]
    return canaries + others


class ExampleSets:
    """Test sets by name, read before any model is: those `opened`, and the `problems` of others.

    Canary sets come whole from `experiment`, of the other sets at most `max_records` records.
    """

    def __init__(
        self, names: Sequence[SetName], experiment: Experiment | None, max_records: int | None
    ) -> None:
        self.opened: dict[SetName, ExampleSet] = {}
        self.problems: dict[SetName, str] = {}
        for name in tqdm(names, desc="test sets", unit="set", leave=False):
            try:
                if name.canary is not None and experiment is not None:
                    self.opened[name] = experiment.test_set(name.canary)
                else:
                    self.opened[name] = open_test_set(name.asked, max_records=max_records)
            except FAILURES as error:
                self.problems[name] = status_of(error)
        # Every model gets the same answer.
        self.verdict = cache(self._verdict)
        self.compressor_p = cache(self._compressor_p)
        self.pooled_compressor_p = cache(self._pooled_compressor_p)

    def _verdict(self, name: SetName, shards: int, seed: int) -> Verdict:
        """Diagnose the order of the records within the shards of a test."""
        return diagnose_order(self.opened[name], seed=seed, shards=shards).verdict

    def _compressor_p(self, name: SetName, **store: Any) -> float:
        """Test the shards of a store under a compressor: the p-value."""
        return compressor_test(self.opened[name], **store).p

    def _pooled_compressor_p(
        self, stores: tuple[tuple[SetName, tuple[tuple[str, Any], ...]], ...]
    ) -> float:
        """Test the shards of several sets at once under a compressor; each with its store."""
        scores = [compressor_scores(self.opened[name], **dict(store)) for name, store in stores]
        return pooled_exact_test(scores).p
