"""Settings of notebook 03."""

from reproduction.run.settings import NotebookSettings


class Settings(NotebookSettings):
    """Models, sets and tests of an audit, and how the sets are read.

    Attributes
    ----------
    models
        Names of the models; without any those trained here.
    sets
        Names or paths of the sets; without any the profile's canary sets and the
        registered sets that need no network.
    tests
        Names of the tests.
    permutations
        m, shuffled orderings per shard. Models that were trained here keep the shards
        and permutations of the profile on its canary sets, which the score stage has
        scored.
    max_records
        Most records of a set, from its start; canary sets stay whole. None for all.
    start_each
        Whether every example begins with a start token, as
        `contamination.testsets.example_set.start_each` says; not in sets that the score
        stage has scored.
    arrangements
        Number of arrangements of an item's options in the test of their order, the
        published one included.
    by_line
        Whether an example is a line of the file, with all of its fields; not in canary
        sets.
    """

    models: tuple[str, ...]
    sets: tuple[str, ...]
    tests: tuple[str, ...]
    permutations: int
    max_records: int | None
    start_each: bool
    arrangements: int = 24
    by_line: bool = False
