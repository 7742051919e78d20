"""Settings of notebook 04."""

from reproduction.run.settings import NotebookSettings


class Settings(NotebookSettings):
    """Models and controls that score the subsets, and how these are tested.

    Attributes
    ----------
    models
        Names of the models that are audited, by record.
    controls
        Names of models that cannot have read MMLU; they score by record and by line.
    tests
        Names of the tests.
    permutations
        m, shuffled orderings per shard.
    max_records
        Most records of a subset, from its start.
    shards
        Number of shards of whole orderings; None takes as many as leave four records in
        each.
    start_each
        Whether every example begins with a start token, as
        `contamination.testsets.example_set.start_each` says.
    """

    models: tuple[str, ...]
    controls: tuple[str, ...]
    tests: tuple[str, ...]
    permutations: int
    max_records: int
    shards: int | None
    start_each: bool
