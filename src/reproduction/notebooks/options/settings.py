"""Settings of notebook 14."""

from reproduction.run.settings import NotebookSettings


class Settings(NotebookSettings):
    """Items, how often and where they are planted, and how both axes are tested.

    Attributes
    ----------
    examples : items of a set.
    dup_counts : how often sets are planted.
    permutations : other arrangements of the options of an item.
    packages : whose docstrings become items; without any those that the corpus holds
        out.
    longest : characters of an option, at most.
    background_tokens : of the corpus in which the sets are planted.
    learning_rate : of the model that reads them.
    batch_size : blocks of an optimiser step.
    """

    examples: int
    dup_counts: tuple[int, ...]
    permutations: int
    packages: tuple[str, ...]
    longest: int
    background_tokens: int
    learning_rate: float
    batch_size: int
