"""Held-out twins of planted sets: as many records of the same kind that no model has read.

The corpus stage shuffles all records of a kind and deals them out, the first to the
canary sets. The twins are drawn from what is left, by a random stream of their own: so
every division of the records of a set and its twin was as likely as the real one, and
the p-value of `contamination.statistics.held_out` is exact. A record whose text comes
twice among all of its kind is excluded, since it could be on both sides: which
texts these are does not depend on the draw. A set from a file has no twin, since it
takes the first records of the file, which is no draw.

A few further sets are drawn from what is left, with twins as well, for the model that
reads sets shuffled or record by record.
"""

from collections import Counter
from dataclasses import dataclass
from itertools import product

from contamination.errors import InputError
from contamination.randomness import random_stream
from contamination.testsets.example_set import ExampleSet, make_test_set
from contamination.testsets.records import read_records
from reproduction.notebooks.min_k.settings import Settings
from reproduction.run.canaries import KINDS, LEFT
from reproduction.run.experiment import Experiment
from reproduction.run.further import PlantedSet


@dataclass(frozen=True, eq=False)
class TwinSets:
    """A set that is planted, and as many records that were held back by a draw.

    Attributes
    ----------
    planted
        The set as it is planted, whole.
    published
        The records of the planted set that are compared.
    held_out
        Equally many records of the same kind.
    kind
        Kind of the records.
    """

    planted: PlantedSet
    published: ExampleSet
    held_out: ExampleSet
    kind: str

    @property
    def name(self) -> str:
        """Return the name of the planted set."""
        return self.planted.test_set.name


def draw_twins(
    experiment: Experiment,
    settings: Settings,
) -> tuple[list[TwinSets], list[TwinSets]]:
    """Draw a twin for each set that the profile makes, and the further sets with twins.

    No record is in two of all these sets.

    Parameters
    ----------
    experiment
        The run, whose corpus stage has finished.
    settings
        The further sets: kinds, plantings, numbers of copies, examples.

    Returns
    -------
    of_profile : the canary sets of the profile, with their twins.
    further : the sets that the clean model reads further.

    Raises
    ------
    InputError
        If too few records of a kind are left.
    """
    made_here = [spec for spec in experiment.profile.canaries if spec.kind]
    pools = {}
    for kind in dict.fromkeys([*(str(spec.kind) for spec in made_here), *settings.kinds]):
        pools[kind] = _Pool(experiment, kind)

    of_profile = []
    for spec in made_here:
        pool = pools[str(spec.kind)]
        test_set = experiment.test_set(spec.name)
        published = pool.compared(test_set)
        held_out = pool.draw(_name_of_twin(spec.name), len(published.examples))
        planted = PlantedSet(test_set, spec.planting, spec.dup_count)
        of_profile.append(TwinSets(planted, published, held_out, kind=pool.kind))
    further = []
    for kind, planting, dup_count in product(
        settings.kinds, settings.plantings, settings.dup_counts
    ):
        name = f"{kind}-{dup_count}-{planting}-further"
        test_set = pools[kind].draw(name, settings.examples)
        held_out = pools[kind].draw(_name_of_twin(name), settings.examples)
        planted = PlantedSet(test_set, planting, dup_count)
        further.append(TwinSets(planted, test_set, held_out, kind=kind))
    return of_profile, further


def _name_of_twin(name: str) -> str:
    return f"{name}, held out"


class _Pool:
    """The records of a kind that no set of the profile holds, in a random order."""

    def __init__(self, experiment: Experiment, kind: str) -> None:
        self.kind = kind
        self.path = experiment.corpus / LEFT / f"{kind}.jsonl"
        self.template = KINDS[kind].template
        records = list(read_records(self.path))
        left = make_test_set(kind, records, self.template, str(self.path))
        texts = list(left.examples)
        for spec in experiment.profile.canaries:
            if spec.kind == kind:
                texts += experiment.test_set(spec.name).examples
        self._count_of_text = Counter(texts)
        rng = random_stream(experiment.profile.seed, "held-out twins", kind)
        order = rng.permutation(len(records)).tolist()
        self._left = [records[i] for i in order if self._is_single(left.examples[i])]

    def _is_single(self, text: str) -> bool:
        """Return whether a text comes once among all records of the kind."""
        return self._count_of_text[text] == 1

    def compared(self, test_set: ExampleSet) -> ExampleSet:
        """Return the records of a set whose text comes once."""
        records = []
        for number, text in enumerate(test_set.examples):
            if self._is_single(text):
                place = f"{test_set.name}, record {number + 1}"
                records.append((place, test_set.records[number]))
        return make_test_set(test_set.name, records, self.template, test_set.name)

    def draw(self, name: str, count: int) -> ExampleSet:
        """Draw a set of records that no other set has.

        Raises InputError if too few are left.
        """
        if count > len(self._left):
            raise InputError(
                f"{self.path}: {len(self._left)} records are left of the kind, and "
                f"{name} wants {count}: lower `examples`, or add a held-out package",
            )
        own = self._left[:count]
        self._left = self._left[count:]
        return make_test_set(name, own, self.template, str(self.path))
