"""Settings of notebook 04."""

from reproduction.run.settings import NotebookSettings


class Settings(NotebookSettings):
    """Models and controls that score the subsets, and how these are tested.

    Attributes
    ----------
    models : names of the models that are audited, by record.
    controls : names of models that cannot have read MMLU; they score by record and by
        line.
    tests : names of the tests.
    permutations : m, shuffled orderings per shard.
    max_records : most records of a subset, from its start.
    shards : of whole orderings; None for as many as leave four records in each.
    start_each : whether every example begins with a start token, as
        `contamination.testsets.example_set.start_each` says.
    """

    models: tuple[str, ...]
    controls: tuple[str, ...]
    tests: tuple[str, ...]
    permutations: int
    max_records: int
    shards: int | None
    start_each: bool
