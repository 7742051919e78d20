"""Settings of notebook 07."""

from typing import Literal

from reproduction.run.injection import Planting
from reproduction.run.settings import NotebookSettings


class Settings(NotebookSettings):
    """Spans that are scored, the scores, and sets with their held-out twins.

    Attributes
    ----------
    length
        Tokens of a span, at most the context of the model, so that each token is read
        after all of its span, as in the paper.
    k, other_k
        Percentages of Min-K%.
    validation_spans
        Most spans of each kind of text that was never planted.
    validation_files
        Canary set -> file of such text, instead of the set's own file.
    alpha
        Level of the verdicts on sets and their held-out twins.
    divisions
        Divisions of the records of a set and its twin that are drawn.
    kinds, plantings, dup_counts
        Sets that the clean model reads further: one for each combination of kind,
        planting and number of copies. Without kinds it reads none.
    examples
        Records of such a set.
    background_tokens
        Number of tokens of the corpus in which these sets are planted.
    learning_rate
        Learning rate of the model that reads these sets.
    batch_size
        Blocks of an optimiser step.
    """

    length: int
    k: float
    other_k: tuple[float, ...]
    validation_spans: int
    validation_files: dict[str, str]
    alpha: float
    divisions: int
    kinds: tuple[Literal["signature", "question", "parameter", "medium", "long"], ...]
    plantings: tuple[Planting, ...]
    dup_counts: tuple[int, ...]
    examples: int
    background_tokens: int
    learning_rate: float
    batch_size: int
