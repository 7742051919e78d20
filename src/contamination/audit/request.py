"""The request of an audit: tests, shards, permutations, and where its stores are."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from contamination.audit.registry import DEFAULT_TESTS, OPTION_TEST, TESTS
from contamination.errors import InputError
from contamination.scoring.plan import check_shards

if TYPE_CHECKING:
    from contamination.testsets.example_set import ExampleSet
    from contamination.testsets.variants import FixedOptions, VariantSet

Axis = Literal["order", "options", "both"]
# of each shard; all are listed in memory before the first is scored
MOST_PERMUTATIONS = 100_000
MOST_ARRANGEMENTS = 10_000  # of each item, as above
CHOICES = 4  # arrangements of an item, or records, in a quiz of what the model writes


@dataclass(frozen=True)
class Request:
    """The request of an audit.

    Raises InputError for one that cannot be tested or decides nothing.

    Attributes
    ----------
    tests
        Names from `TESTS`; None takes those that the axis has by default.
    axis
        The order that is tested: "order" of the records, "options" of each item, or
        "both".
    shards
        r; None takes as many as leave ten examples a shard for tests of successors, and
        four for those of whole orderings; 50 at most for either.
    permutations
        m, shuffled orderings per shard, in tests of whole orderings.
    arrangements
        Number of arrangements of an item's options, the published one included; four
        options have 24.
    keep_answer
        Keep the right option in place and permute the others.
    drawn
        The option order of every item was randomised by a seed. So numbers move as
        well, and the test of options needs no control.
    order_drawn
        The author states that the order of the records was drawn at random, so that the
        tests of this order need no control.
    seed
        Seed of the orderings.
    directory
        Folder of all stores; a second audit reads what it finds there.
    name
        Name of the model, for people and for the store; None derives it from the place
        of the model.
    """

    tests: Sequence[str] | None = None
    shards: int | None = None
    permutations: int = 25
    axis: Axis = "order"
    arrangements: int = 24
    keep_answer: bool = False
    drawn: bool = False
    order_drawn: bool = False
    seed: int = 0
    directory: Path | str = "contamination-stores"
    name: str | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be carried out, before a model is loaded."""
        self._check_names_of_tests()
        _check_limits("permutations", self.permutations, 1, MOST_PERMUTATIONS)
        _check_limits("arrangements", self.arrangements, 2, MOST_ARRANGEMENTS)
        for test in self.order_tests:
            if self.shards is not None:
                check_shards(TESTS[test], self.shards)
        if self.axis not in get_args(Axis):
            raise InputError(
                f"axis is {self.axis!r}: give one of {', '.join(get_args(Axis))}",
                parameter="axis",
            )
        if self.axis == "order":
            self._check_order()
        elif self.axis == "options":
            self._check_options()
        elif len(self.order_tests) != 1:
            raise InputError(
                f"both axes take one test of records with {OPTION_TEST}: give one",
                parameter="tests",
            )

    def _check_names_of_tests(self) -> None:
        """Raise InputError for an unknown test, and where no test is named."""
        if self.tests is None:
            return
        if isinstance(self.tests, str):
            raise InputError(
                f"tests is the text {self.tests!r}: give a list, as in [{self.tests!r}]",
                parameter="tests",
            )
        known = ", ".join(TESTS)
        if not self.tests:
            raise InputError(f"tests is empty: choose from {known}", parameter="tests")
        for test in self.tests:
            if test not in TESTS:
                raise InputError(
                    f"unknown test {test!r}: choose from {known}",
                    parameter="tests",
                )
        if len(set(self.tests)) < len(self.tests):
            repeated = max(self.tests, key=list(self.tests).count)
            raise InputError(
                f"the test {repeated!r} is named twice, and would be corrected for twice: "
                "name it once",
                parameter="tests",
            )

    def _check_order(self) -> None:
        """Raise InputError for what only the axis of options has."""
        needs_options = []
        if self.tests is not None and OPTION_TEST in self.tests:
            needs_options.append(f"the test {OPTION_TEST!r}")
        if self.keep_answer:
            needs_options.append("keep_answer")
        if self.drawn:
            needs_options.append("drawn")
        if needs_options:
            raise InputError(
                f"{needs_options[0]} needs options that move: give axis='options' or 'both'",
                parameter="axis",
            )

    def _check_options(self) -> None:
        """Raise InputError for what only the order of records has."""
        if self.order_drawn:
            raise InputError(
                "an order of records that was drawn says nothing of options: leave it out",
                parameter="order_drawn",
            )
        for test in self.tests or ():
            if test != OPTION_TEST:
                raise InputError(
                    f"{test} tests the order of records: give axis='both'",
                    parameter="axis",
                )
        if self.shards is not None:
            raise InputError(
                "shards cut the order of records: leave them out",
                parameter="shards",
            )

    @property
    def order_tests(self) -> tuple[str, ...]:
        """The requested tests of the order of records."""
        if self.axis == "options":
            return ()
        requested = DEFAULT_TESTS if self.tests is None else self.tests
        return tuple(test for test in requested if test != OPTION_TEST)

    @property
    def stopping_test(self) -> str:
        """The one test whose evidence is followed shard by shard.

        Raises InputError if the request has no such test, or several tests.
        """
        self.require_stopping_test()
        (test,) = self.order_tests
        return test

    def require_stopping_test(self) -> None:
        """Raise InputError if the request has no test that can stop early, or several tests."""
        stopping = [name for name, test in TESTS.items() if test.stops]
        one = len(self.order_tests) == 1 and self.order_tests[0] in stopping
        if self.axis != "order" or not one:
            raise InputError(
                "stopping early follows one test of the order of records by shards: give "
                f"one of {', '.join(stopping)}, and leave out the axis",
                parameter="tests",
            )

    def option_variants(
        self,
        test_set: "ExampleSet",
        *,
        template: str | None = None,
    ) -> "VariantSet":
        """Return the arrangements of the options of each item, rendered.

        `template` renders an item; None takes the set's own, if it shows every option.
        Raises InputError if the set has no items, or too few whose options may move.
        """
        from contamination.testsets.variants import option_variants

        return option_variants(
            test_set,
            permutations=self.arrangements - 1,
            seed=self.seed,
            keep=self.keep,
            template=template,
        )

    @property
    def keep(self) -> "FixedOptions":
        """The options that keep their place."""
        from contamination.testsets.variants import FixedOptions

        return FixedOptions(self.keep_answer, habits=not self.drawn)


def _check_limits(name: str, value: int, least: int, most: int) -> None:
    """Raise InputError for a number outside its limits."""
    if not least <= value <= most:
        raise InputError(f"{name} is {value}: give {least} to {most:,}", parameter=name)
