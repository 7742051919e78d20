"""Settings of notebook 09."""

from reproduction.run.settings import NotebookSettings


class Settings(NotebookSettings):
    """Contaminants, the runs in which models read them, and the scores.

    Attributes
    ----------
    outliers
        Canary sets whose sources give the outlier sets.
    examples
        Number of examples in each half of a set.
    sizes
        Tokens of the mixtures that are compared.
    fixed_tokens
        The mixture, one of `sizes`, in which the other experiments are made.
    dup_counts
        Numbers of times that examples are injected in the run for duplication counts.
    learning_rate
        Learning rate of all runs but those that compare it.
    other_rates
        Learning rates that are compared with it.
    batch_size
        Blocks of an optimiser step.
    k
        Percentage of Min-K%.
    neighbours
        Number of neighbours of each text for "Neighbor"; 0 leaves the score out.
    validation_files
        Canary set -> file of the data directory, instead of the set's own file.
    """

    outliers: tuple[str, ...]
    examples: int
    sizes: tuple[int, ...]
    fixed_tokens: int
    dup_counts: tuple[int, ...]
    learning_rate: float
    other_rates: tuple[float, ...]
    batch_size: int
    k: float
    neighbours: int
    validation_files: dict[str, str]
