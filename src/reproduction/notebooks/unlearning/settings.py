"""Settings of notebook 11, and the names of its models."""

from reproduction.run.settings import NotebookSettings

ORIGINAL = "original"
UNLEARNED = "unlearned"
CLEAN = "clean"
MODELS = (ORIGINAL, UNLEARNED, CLEAN)


class Settings(NotebookSettings):
    """The text, how a model learns it and is made to forget a part, and the score.

    Attributes
    ----------
    dataset
        Canary set of questions with answers; a chunk is a record.
    chunks
        Number of chunks, taken from the start of the set.
    dup_count, learning_rate
        How often, and at which learning rate, the original model reads all chunks.
    share
        Share of the chunks that are to be forgotten.
    forget_dup_count
        Number of times that each of these is read with other answers.
    keep_dup_count
        Number of times that each other chunk is read as it is.
    forgetting_rate
        Learning rate of the forgetting.
    batch_size
        Spans of an optimiser step.
    k
        Percentage of Min-K%.
    """

    dataset: str
    chunks: int
    dup_count: int
    learning_rate: float
    share: float
    forget_dup_count: int
    keep_dup_count: int
    forgetting_rate: float
    batch_size: int
    k: float
