"""What is asked of an audit: which tests, of how much, and where it is kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from contamination.audit.battery import DEFAULT_TESTS, TESTS, names_of
from contamination.errors import InputError


@dataclass(frozen=True)
class Request:
    """Asked of `contamination.audit.verdict.audit`, and of whatever plans or follows it.

    Attributes
    ----------
    tests : names from `TESTS`.
    shards : r; None takes as many as leave ten examples a shard for tests of successors, and four
        for those of whole orderings, 50 at most.
    budget : tokens that the model may read for each test, which must be one of successors: it takes
        the largest shards that cost no more. In place of `shards`.
    permutations : m, shuffled orderings per shard, in tests of whole orderings.
    seed : of the orderings.
    directory : where the stores of all audits lie; a second audit reads what it finds there.
    name : of the model, for people and for the store; None takes it from where the model is.

    Raises
    ------
    InputError
        An unknown test or none, no permutations, or a budget that decides nothing.
    """

    tests: Sequence[str] = DEFAULT_TESTS
    shards: int | None = None
    budget: int | None = None
    permutations: int = 25
    seed: int = 0
    directory: Path | str = "contamination-stores"
    name: str | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be carried out, before a model is loaded."""
        unknown = [test for test in self.tests if test not in TESTS]
        if unknown or not self.tests:
            asked = repr(unknown[0]) if unknown else "''"
            raise InputError(f"unknown test {asked}: choose from {', '.join(TESTS)}")
        if self.permutations < 1:
            raise InputError(f"permutations is {self.permutations}: give at least 1")
        if self.budget is None:
            return
        if self.shards is not None:
            raise InputError("--budget chooses the number of shards: leave out --shards")
        if whole := [test for test in self.tests if TESTS[test].kind == "orderings"]:
            raise InputError(
                f"--budget chooses the shards of {names_of('successors')}; what {whole[0]} reads "
                "is set by --permutations"
            )
