"""Settings of notebook 02."""

from reproduction.run.settings import NotebookSettings


class Settings(NotebookSettings):
    """Canary sets that are scored again, and into how many shards they are cut.

    Attributes
    ----------
    datasets : names of canary sets.
    shards : numbers of shards.
    """

    datasets: tuple[str, ...]
    shards: tuple[int, ...]
