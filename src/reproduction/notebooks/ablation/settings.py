"""Settings of notebook 02."""

from reproduction.run.settings import NotebookSettings


class Settings(NotebookSettings):
    """Canary sets that are scored again, and into how many shards they are cut.

    Attributes
    ----------
    datasets
        Names of canary sets.
    shards
        Numbers of shards.
    """

    datasets: tuple[str, ...]
    shards: tuple[int, ...]
