"""Settings of notebook 05."""

from reproduction.run.settings import NotebookSettings


class Settings(NotebookSettings):
    """Stores of the power study and of the null, and sets that are tested by generated texts.

    Attributes
    ----------
    permutations
        Numbers m of shuffled orderings per shard that the power study compares.
    successor_shards
        Numbers of shards of the successor test; the null has the first.
    null_datasets
        Canary sets that the clean model scores; the first is scored in other orders.
    null_permutations
        Numbers m of shuffled orderings per shard of the null.
    generated_datasets
        Canary sets that both models continue.
    """

    permutations: tuple[int, ...]
    successor_shards: tuple[int, ...]
    null_datasets: tuple[str, ...]
    null_permutations: tuple[int, ...]
    generated_datasets: tuple[str, ...]
