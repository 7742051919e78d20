"""What notebook 12 scores: checkpoints and controls, and the store of each test of each set."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from contamination.audit.battery import TESTS
from contamination.errors import InputError
from contamination.scoring.models import ModelEntry, find_model
from contamination.testsets.registry import entries

STORES = Path("stores") / "checkpoints"  # in the build directory
TABLE, ABLATION = "table 1", "figure 3a"  # what a cell is scored for
SHARDED = "sharded_t"  # names the store that both tests on shards read
SETS = ("dataset", "examples", "revision", "status")
CELLS = ("model", "dataset", "purpose", "test", "shards", "permutations", "store", "status")
SPANS = ("model", "dataset", "score", "status")


@dataclass(frozen=True)
class Checkpoint:
    """A model of the notebook; a control cannot have read the sets in the order that was planted.

    Raises InputError as `contamination.scoring.models.find_model`.
    """

    entry: ModelEntry
    control: bool

    def dup_count(self, dataset: str) -> int | None:
        """How often the set was planted: 0 in a control, None where that is not known."""
        return 0 if self.control else self.entry.dup_count(dataset)


def checkpoints(models: Sequence[str], controls: Sequence[str]) -> list[Checkpoint]:
    """Return the released models, then the controls, each of them once.

    Raises InputError for a bare string in the place of a list, and two models of one name.
    """
    for name, given in (("models", models), ("controls", controls)):
        if isinstance(given, str):
            raise InputError(f"{name} is {given!r}: give a list of names, paths or hub ids")
    found = [Checkpoint(find_model(name), name in controls) for name in [*models, *controls]]
    names = [one.entry.name for one in found]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"models and controls name {repeated[0]!r} twice; name it once")
    return found


def title(dataset: str) -> str:
    """What the paper's tables call a set; one that is not registered goes by its file."""
    return entries()[dataset].title if dataset in entries() else Path(dataset).stem


@dataclass(frozen=True)
class Setting:
    """A test with its shards and permutations; `shards` None leaves ten examples a shard."""

    purpose: str
    test: str
    shards: int | None
    permutations: int


def table_settings(
    tests: Sequence[str], *, shards: int, permutations: int, whole_set_permutations: int
) -> list[Setting]:
    """Return the settings of Table 1, one for each test."""
    settings = []
    for name in dict.fromkeys(tests):
        test = TESTS[name]
        whole = test.shard_size is None
        # Successors have shards of their own: their number is no parameter of the paper.
        count = shards if test.kind == "orderings" else None
        asked = whole_set_permutations if whole else permutations
        settings.append(Setting(TABLE, name, count, asked))
    return settings
