"""Settings of notebook 12."""

from reproduction.run.settings import NotebookSettings


class Settings(NotebookSettings):
    """Models and sets of Figure 3 and of Table 5; those of Figure 2 are notebook 03's.

    Attributes
    ----------
    models
        Names of the checkpoints.
    ablation_sets
        Sets that are scored in several numbers of shards (Figure 3).
    shards
        Numbers of shards in which these sets are scored.
    permutations
        Shuffled orderings of each shard.
    max_records
        Most records of a set, from its start.
    min_k_sets
        Planted sets of which spans are judged (Table 5).
    tuning_members, tuning_non_members
        Sets that tune the threshold: planted ones, and ones that no checkpoint has
        read. The paper has five of each, and does not name them.
    length
        Tokens of a span.
    spans
        Number of spans of each set.
    k
        Percentage of Min-K%.
    """

    models: tuple[str, ...]
    ablation_sets: tuple[str, ...]
    shards: tuple[int, ...]
    permutations: int
    max_records: int | None
    min_k_sets: tuple[str, ...]
    tuning_members: tuple[str, ...]
    tuning_non_members: tuple[str, ...]
    length: int
    spans: int
    k: float
