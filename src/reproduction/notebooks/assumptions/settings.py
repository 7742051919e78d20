"""Settings of notebook 08."""

from reproduction.run.settings import NotebookSettings


class Settings(NotebookSettings):
    """Texts that are scored, and how models are fine-tuned in between.

    Attributes
    ----------
    models
        Names for `find_model` of models that score the public set. Without any, the
        models trained here score texts of the run.
    length
        Tokens of a text.
    shortest
        Fewest tokens of a public text; None for `length`.
    texts
        Most texts of a domain, on each side.
    spare
        Most texts of a domain that models trained here read in fine-tuning.
    epochs
        Number of times that models read the texts.
    learning_rate
        Learning rate of fine-tuning.
    asked
        Most texts of a domain, on each side, that the clean model also continues,
        completes and chooses.
    """

    models: tuple[str, ...]
    length: int
    shortest: int | None
    texts: int
    spare: int
    epochs: int
    learning_rate: float
    asked: int
