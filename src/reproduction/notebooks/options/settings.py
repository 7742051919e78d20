"""Settings of notebook 14."""

from reproduction.run.settings import NotebookSettings


class Settings(NotebookSettings):
    """Items, how often and where they are planted, and how both axes are tested.

    Attributes
    ----------
    examples
        Items of a set.
    dup_counts
        Numbers of times that sets are planted.
    permutations
        Other arrangements of the options of an item.
    packages
        Packages whose docstrings become items; without any, those that the corpus holds
        out.
    longest
        Largest number of characters of an option.
    background_tokens
        Number of tokens of the corpus in which the sets are planted.
    learning_rate
        Learning rate of the model that reads them.
    batch_size
        Blocks of an optimiser step.
    """

    examples: int
    dup_counts: tuple[int, ...]
    permutations: int
    packages: tuple[str, ...]
    longest: int
    background_tokens: int
    learning_rate: float
    batch_size: int
